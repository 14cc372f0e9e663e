import pytest
import yaml

from harness.model.errors import ConfigError
from harness.prepare.changes import platform_of, prepared
from harness.prepare.pools import placing
from harness.prepare.settings import Settings, placement_of
from harness.simulator.kfp.packages import parse_package
from harness.simulator.workflows.graph import flatten
from tests.support.compiled import CURRENT, OLDER, POOLS, documents


def by_parameter(*selectors, spot="", tasks=(), name="pool"):
    return Settings(tasks, caching=True, placement=placement_of(selectors, [], [], spot, name))


def selectors(found, **parameters):
    """The node selectors of the executors' pods at the simulated platform, by task."""
    given = {key: each.get("defaultValue") for key, each in inputs(found).items()} | parameters
    graph = flatten(*parse_package(yaml.safe_dump_all(found).encode()), given, 1)
    return {plan.task: dict(plan.container.shape.selector) for plan in graph.plans if plan.role == "executor"}


def inputs(found):
    return found[0]["root"]["inputDefinitions"]["parameters"]


@pytest.mark.parametrize("pool", [{"agentpool": "spot", "zone": "a"}, {}])
def test_each_run_chooses_the_pool_of_every_step_however_deep(pool):
    nested = selectors(prepared(documents(), by_parameter("agentpool=cpu")), pool=pool)
    assert nested == dict.fromkeys(("prepare", "train", "train-2", "report"), pool)
    later = selectors(prepared(documents(OLDER), by_parameter("agentpool=cpu", name="nodes")), nodes=pool)
    assert later == dict.fromkeys(("prepare", "train"), pool)


def test_the_default_is_where_the_steps_are_now():
    after = prepared(documents(OLDER), by_parameter(tasks=("prepare",)))
    assert inputs(after)["pool"] == {
        "defaultValue": {"agentpool": "cpu"},
        "isOptional": True,
        "parameterType": "STRUCT",
    }
    assert selectors(after) == selectors(documents(OLDER))


def test_steps_on_different_pools_need_a_label_or_a_choice():
    with pytest.raises(ConfigError, match=r"different node selectors: agentpool=cpu and none(.|\n)*--task"):
        prepared(documents(OLDER), by_parameter())
    after = prepared(documents(OLDER), by_parameter("agentpool=spot"))
    assert selectors(after) == {"prepare": {"agentpool": "spot"}, "train": {"agentpool": "spot"}}


def test_spot_is_only_the_default_but_tolerated_by_all():
    after = prepared(documents(OLDER)[:1], by_parameter(spot="aks"))
    assert inputs(after)["pool"]["defaultValue"] == {"kubernetes.azure.com/scalesetpriority": "spot"}
    for settings in platform_of(after[1]).values():
        assert settings["tolerations"][0]["value"] == "spot"
        assert "nodeAffinity" not in settings


@pytest.mark.parametrize("path", [CURRENT, OLDER, POOLS])
def test_once_is_enough(path):
    wanted = by_parameter("agentpool=a", spot="gke", tasks=("step", "step-2") if path is POOLS else ())
    once = prepared(documents(path), wanted)
    assert once != documents(path)
    assert prepared(once, wanted) == once


def test_an_input_for_something_else_is_refused():
    with pytest.raises(ConfigError, match=r"input 'rows' is a NUMBER_INTEGER, not a STRUCT"):
        prepared(documents(OLDER), by_parameter("a=b", name="rows"))


def test_a_nested_pipelines_own_input_of_that_name_is_refused():
    found = documents(OLDER)
    found[0]["components"]["comp-condition-1"]["inputDefinitions"]["parameters"]["pool"] = {"parameterType": "STRUCT"}
    with pytest.raises(ConfigError, match=r"comp-condition-1 has an input 'pool' of its own"):
        prepared(found, by_parameter("agentpool=b"))


def test_a_pool_from_another_parameter_is_refused():
    with pytest.raises(ConfigError, match=r"step step: its nodeSelector comes from nodeSelectorJson"):
        prepared(documents(POOLS), by_parameter("a=b", name="other"))


def test_a_required_input_stays_required():
    found = documents(POOLS)
    inputs(found)["pool"] = {"parameterType": "STRUCT"}
    assert inputs(prepared(found, by_parameter(tasks=("step",))))["pool"] == {"parameterType": "STRUCT"}


@pytest.mark.parametrize("name", ["a b", "1", "pool-x"])
def test_a_name_that_no_parameter_can_have_is_refused(name):
    with pytest.raises(ConfigError, match="--pool-parameter"):
        by_parameter("a=b", name=name)


def test_parameters_that_place_pods_are_known_in_conditions_and_loops_too():
    assert placing(platform_of(documents(POOLS)[1])) == {"pool", "taints", "where"}
    assert placing(platform_of(documents(CURRENT)[1])) == {"pool"}
    assert placing(platform_of(documents(OLDER)[1])) == set()
