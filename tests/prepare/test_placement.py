import pytest

from harness.model.errors import ConfigError
from harness.prepare.placement import place
from harness.prepare.settings import Placement, placement_of
from harness.simulator.cluster import Requirement
from harness.simulator.workflows.containers import read_container


def wanted(selectors=(), tolerations=(), affinity=(), spot=""):
    return placement_of(selectors, tolerations, affinity, spot)


def term(*expressions, **more):
    return {
        "matchExpressions": [dict(zip(("key", "operator", "values"), each, strict=False)) for each in expressions],
        **more,
    }


@pytest.mark.parametrize(
    ("spot", "key", "value"),
    [
        ("aks", "kubernetes.azure.com/scalesetpriority", "spot"),
        ("gke", "cloud.google.com/gke-spot", "true"),
        ("eks", "eks.amazonaws.com/capacityType", "SPOT"),
        ("karpenter", "karpenter.sh/capacity-type", "spot"),
        ("pool=cheap", "pool", "cheap"),
    ],
)
def test_spot_is_said_in_the_providers_own_terms_and_the_simulator_reads_them(spot, key, value):
    placed = place({}, wanted(spot=spot), "train")
    assert placed == {
        "nodeSelector": {"labels": {key: value}},
        "tolerations": [{"key": key, "operator": "Equal", "value": value, "effect": "NoSchedule"}],
        "nodeAffinity": [term((key, "In", [value]))],
    }
    shape = read_container({}, placed, {}).shape
    assert (shape.selector, shape.affinity) == (((key, value),), ((Requirement(key, "In", (value,)),),))
    assert [(each.key, each.value, each.effect) for each in shape.tolerations] == [(key, value, "NoSchedule")]


def test_a_selector_replaces_the_pools_label_and_keeps_others():
    before = {"nodeSelector": {"labels": {"agentpool": "gpu", "zone": "a"}}}
    assert place(before, wanted(["agentpool=cpu"]), "t")["nodeSelector"] == {
        "labels": {"agentpool": "cpu", "zone": "a"}
    }


def test_tolerations_are_added_once():
    one = {"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}
    placed = place({"tolerations": [one]}, wanted(tolerations=["sku=gpu:NoSchedule", "a:NoExecute", "b"]), "t")
    others = [{"key": "a", "operator": "Exists", "effect": "NoExecute"}, {"key": "b", "operator": "Exists"}]
    assert placed["tolerations"] == [one, *others]


def test_a_requirement_goes_into_each_alternative():
    before = {"nodeAffinity": [term(("a", "Exists")), term(("b", "In", ["1"])), term(("c", "Exists"), weight=5)]}
    placed = place(before, wanted(affinity=["zone=x,y", "old!=1@7"]), "t")["nodeAffinity"]
    zone = ("zone", "In", ["x", "y"])
    preferred = [term(("c", "Exists"), weight=5), term(("old", "NotIn", ["1"]), weight=7)]
    assert placed == [term(("a", "Exists"), zone), term(("b", "In", ["1"]), zone), *preferred]
    assert place({"nodeAffinity": placed}, wanted(affinity=["zone=x,y", "old!=1@7"]), "t")["nodeAffinity"] == placed


@pytest.mark.parametrize(
    ("text", "operator", "values"),
    [
        ("zone=a,b", "In", ["a", "b"]),
        ("zone!=a", "NotIn", ["a"]),
        ("zone", "Exists", None),
        ("!zone", "DoesNotExist", None),
        ("zone>3", "Gt", ["3"]),
        ("zone<3", "Lt", ["3"]),
    ],
)
def test_every_operator_can_be_written(text, operator, values):
    expression = {"key": "zone", "operator": operator} | ({"values": values} if values else {})
    assert place({}, wanted(affinity=[text]), "t") == {"nodeAffinity": [{"matchExpressions": [expression]}]}


@pytest.mark.parametrize(
    ("before", "selectors", "affinity"),
    [
        ({"nodeAffinity": [term(("pool", "NotIn", ["spot"]))]}, ["pool=spot"], []),
        ({"nodeAffinity": [term(("pool", "In", ["a"])), term(("pool", "In", ["b"]))]}, ["pool=spot"], []),
        ({"nodeAffinity": [term(("pool", "DoesNotExist"))]}, ["pool=spot"], []),
        ({"nodeSelector": {"labels": {"pool": "a"}}}, [], ["pool=b"]),
        ({"nodeAffinity": [term(("pool", "In", ["a"]))]}, [], ["pool=b"]),
        ({}, ["pool=spot"], ["pool>3"]),  # a value that is no number is not above one
    ],
)
def test_placement_that_no_node_fits_is_refused(before, selectors, affinity):
    with pytest.raises(ConfigError, match=r"step train: no node fits both .*pool.* and .*pool"):
        place(before, wanted(selectors, affinity=affinity), "train")


@pytest.mark.parametrize(
    ("before", "affinity"),
    [
        ([term(("pool", "In", ["a"])), term(("pool", "In", ["spot", "c"]))], []),  # one alternative fits
        ([term(("pool", "NotIn", ["spot"]), weight=1)], []),  # a preference
        ([], ["pool"]),
    ],
)
def test_placement_that_some_node_fits_is_kept(before, affinity):
    assert place({"nodeAffinity": before}, wanted(["pool=spot"], affinity=affinity), "t")


def test_contradictions_of_a_pipeline_that_is_not_placed_are_its_own():
    before = {"nodeAffinity": [term(("pool", "NotIn", ["a"]))], "nodeSelector": {"labels": {"pool": "a"}}}
    assert place(before, Placement(), "t") == before


@pytest.mark.parametrize(
    ("before", "changes"),
    [
        ({"nodeSelector": {"nodeSelectorJson": {"componentInputParameter": "pool"}}}, wanted(["a=b"])),
        ({"nodeAffinity": [{"nodeAffinityJson": {"componentInputParameter": "pool"}}]}, wanted(affinity=["a"])),
    ],
)
def test_a_pool_from_a_runs_parameter_is_not_overridden_in_vain(before, changes):
    with pytest.raises(ConfigError, match=r"step train: its .* comes from .*Json"):
        place(before, changes, "train")
