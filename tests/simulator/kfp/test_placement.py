"""What the Kubernetes platform spec says of a step's pod: where it runs, for how long, and its labels."""

from dataclasses import replace
from typing import Any

import pytest
import yaml

from harness.model.errors import ConfigError
from harness.simulator.cluster import Change, Requirement, Shape, Toleration
from harness.simulator.engine.distributions import fixed
from harness.simulator.kfp.errors import RpcError
from harness.simulator.kfp.packages import parse_package
from harness.simulator.kube_objects.pods import render_pod
from harness.simulator.kube_objects.snapshots import pod_snapshot
from harness.simulator.platform import Platform
from harness.simulator.profile import Taint
from harness.simulator.workflows.graph import flatten
from harness.simulator.workflows.parameters import Known, placed
from tests.support.compiled import OLDER, POOLS, documents
from tests.support.platforms import Journal, pool, profile, submit, upload

CPU = {"agentpool": "cpu"}
SPOT = {"key": "pool", "operator": "Equal", "value": "spot", "effect": "NoSchedule"}
ZONES = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [each]}]} for each in "ab"]
REQUIRED = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": ZONES}}
PREFERRED = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 7, "preference": ZONES[0]}]}


def shapes(**parameters: object) -> dict[str, Shape]:
    """Shapes of the executors' pods by their position."""
    given = {"n": 1.0, "pool": CPU, "taints": [], "where": {}} | parameters
    graph = flatten(*parse_package(POOLS.read_bytes()), given, 1)
    return {plan.path.rpartition(".")[0]: plan.container.shape for plan in graph.plans if plan.role == "executor"}


def test_a_runs_parameter_chooses_the_pool_in_each_nested_pipeline() -> None:
    found = shapes(pool={"agentpool": "spot", "zone": "a"})
    fixed = [shape.selector for path, shape in found.items() if "condition" in path]
    given = [shape.selector for path, shape in found.items() if "condition" not in path]
    assert fixed == [(("agentpool", "fixed"),)]
    assert given == [(("agentpool", "spot"), ("zone", "a"))] * 4  # the root's, two iterations, the inner pipeline's


@pytest.mark.parametrize("given", [SPOT, [SPOT]])
def test_tolerations_come_one_by_one_or_as_a_list(given: object) -> None:
    tolerant = [shape for shape in shapes(taints=given).values() if shape.tolerations]
    assert [shape.tolerations for shape in tolerant] == [(Toleration("pool", "Equal", "spot", "NoSchedule"),)] * 2


def test_only_required_terms_of_a_parameters_affinity_are_required() -> None:
    first = shapes(where=REQUIRED | PREFERRED)["root(0).step(0)"]
    assert first.affinity == ((Requirement("zone", "In", ("a",)),), (Requirement("zone", "In", ("b",)),))


def test_optional_parameters_without_a_value_set_nothing() -> None:
    bare = Shape()
    assert shapes(pool=None, taints=None, where=None)["root(0).step(0)"] == bare
    assert shapes(pool={}, taints={}, where={})["root(0).step(0)"] == bare


PARAMETER = {"componentInputParameter": "x"}
WRONG = [
    ({"nodeSelector": {"nodeSelectorJson": PARAMETER}}, ["a"], "nodeSelectorJson"),
    ({"nodeSelector": {"nodeSelectorJson": PARAMETER}}, {"a": 1.0}, "nodeSelectorJson"),
    ({"tolerations": [{"tolerationJson": PARAMETER}]}, ["a"], "tolerationJson"),
    (
        {"nodeAffinity": [{"nodeAffinityJson": PARAMETER}]},
        {"requiredDuringSchedulingIgnoredDuringExecution": 1},
        "nodeA",
    ),
]


@pytest.mark.parametrize(("platform", "value", "field"), WRONG)
def test_a_value_of_another_form_is_refused_by_its_field(platform: Any, value: object, field: str) -> None:
    with pytest.raises(ConfigError, match=field):
        placed(platform, {"x": Known(value)}, {})


def test_an_output_of_a_step_cannot_choose_the_pool_here() -> None:
    computed = {"taskOutputParameter": {"producerTask": "a", "outputParameterKey": "pool"}}
    with pytest.raises(ConfigError, match="nodeSelectorJson: the simulated platform does not know"):
        placed({"nodeSelector": {"nodeSelectorJson": computed}}, {}, {})


def test_runs_of_one_version_go_to_the_pool_of_their_parameter() -> None:
    journal = Journal()
    spot = pool("spot", taints=(Taint("pool", "spot"),))
    platform = Platform(replace(profile(pool("cpu"), spot, pool("fixed")), caching=False), 5, journal)
    version = upload(platform, POOLS.read_bytes())
    submit(platform, version, taints=[SPOT])
    submit(platform, version, taints=[SPOT], pool={"agentpool": "spot"})
    answers: list[object] = []
    wrong = platform.server.prepare_run("wrong", "", version, {"pool": {"agentpool": 1.0}}, by_reference=True)
    platform.server.start_run(wrong, answers.append)
    platform.loop.run(600)
    assert [isinstance(each, RpcError) for each in answers] == [True]
    first, second = ({}, {})
    for pod in journal.saw(Change.SCHEDULED):
        if pod.role == "executor":
            (first if pod.owner.parameters["pool"] == CPU else second).setdefault(pod.path, pod.node.pool.name)
    assert set(first.values()) == {"cpu", "fixed"}
    # Where the pipeline gives no toleration, the pods wait for ever.
    assert set(second.values()) == {"spot", "fixed"}
    assert len(second) < len(first)


def one_step(**settings: object) -> bytes:
    """A pipeline whose first step has these settings."""
    spec, platform = documents(OLDER)
    platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"]["exec-prepare"] = settings
    return yaml.safe_dump_all([spec, platform]).encode()


@pytest.mark.parametrize(("work_s", "request_s"), [(10.0, 0.0), (1.0, 100.0)])  # while it computes, or uploads
def test_a_step_that_takes_too_long_fails_with_its_pod(work_s: float, request_s: float) -> None:
    journal, base = Journal(), profile()
    step = replace(base.steps[0], duration=fixed(work_s), output=fixed(1.0))
    slow = replace(base, steps=(step,), store=replace(base.store, request_s=request_s), caching=False)
    platform = Platform(slow, 5, journal)
    (run,) = submit(platform, upload(platform, one_step(activeDeadlineSeconds="5")))
    platform.loop.run(3000)
    first = next(pod for pod in journal.saw(Change.OVER) if pod.role == "executor")
    assert (run.state, first.phase, first.reason) == ("FAILED", "Failed", "DeadlineExceeded")
    assert first.finished - first.scheduled == 5.0
    step = next(step for plan, step in run.workflow.made() if (plan.task, plan.role) == ("prepare", "executor"))
    assert step.message == "Pod was active on the node longer than the specified deadline"


def test_a_pods_manifest_has_what_the_pipeline_says() -> None:
    journal = Journal()
    platform = Platform(profile(pool("cpu")), 5, journal)
    affinity = [{"matchExpressions": [{"key": "agentpool", "operator": "Exists"}]}, *ZONES]
    labels = {"nodeSelector": {"labels": CPU}, "podMetadata": {"labels": {"test": "a"}}}
    submit(platform, upload(platform, one_step(**labels, nodeAffinity=affinity, activeDeadlineSeconds="900")))
    platform.loop.run(60)
    pod = next(pod for pod in journal.saw(Change.OVER) if pod.role == "executor")
    shown = render_pod(pod_snapshot(pod, ""), str)
    assert shown["metadata"]["labels"]["test"] == "a"
    assert shown["spec"]["nodeSelector"] == CPU
    assert shown["spec"]["activeDeadlineSeconds"] == 900
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": affinity}}
    assert shown["spec"]["affinity"] == {"nodeAffinity": required}
