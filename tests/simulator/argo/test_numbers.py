"""Malformed values in workflows are refused with their field's name, or end as the error of a node; nothing breaks."""

from copy import deepcopy
from typing import Any

import pytest

from harness.simulator.engine.distributions import fixed
from harness.simulator.kube_api import ApiError
from harness.simulator.profile import Step
from tests.support.argo_platform import FAILS, POD, WORK, ArgoPlatform, dag, ended, nodes_of, steps, task

RETRY = {"limit": "2", "retryPolicy": "Always", "backoff": {"duration": "1s", "factor": 2, "maxDuration": "1m"}}
EVERYTHING = {
    **dag(task("a"), task("b", dependencies=["a"], withItems=[1]), task("wait", template="s")),
    "parallelism": 5,
    "priority": -1,
    "activeDeadlineSeconds": 100,
    "ttlStrategy": {"secondsAfterCompletion": 50, "secondsAfterSuccess": 50, "secondsAfterFailure": 50},
    "podGC": {"strategy": "OnPodCompletion"},
    "arguments": {"parameters": [{"name": "p", "value": "1"}]},
    "synchronization": {"mutexes": [{"name": "m"}]},
    "templateDefaults": {"retryStrategy": RETRY},
}
EVERYTHING["templates"][1] = {**POD, "retryStrategy": RETRY, "activeDeadlineSeconds": "50", "parallelism": 1}
EVERYTHING["templates"].append({"name": "s", "suspend": {"duration": "2s"}})


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"parallelism": "many"}, "spec.parallelism"),
        ({"parallelism": -1}, "spec.parallelism"),
        ({"priority": "high"}, "spec.priority"),
        ({"activeDeadlineSeconds": "1h"}, "spec.activeDeadlineSeconds"),
        ({"ttlStrategy": {"secondsAfterSuccess": "1d"}}, "spec.ttlStrategy.secondsAfterSuccess"),
        ({"podGC": {"strategy": "Always"}}, "spec.podGC.strategy"),
        ({"shutdown": "Now"}, "spec.shutdown"),
        ({"templates": [{"name": "s", "suspend": {"duration": "soon"}}]}, "spec.templates[0].suspend.duration"),
        ({"templates": [{"name": "s", "suspend": {"duration": "²"}}]}, "spec.templates[0].suspend.duration"),
        ({"templates": [{**POD, "parallelism": True}]}, "spec.templates[0].parallelism"),
        ({"templates": [{**POD, "activeDeadlineSeconds": "x"}]}, "spec.templates[0].activeDeadlineSeconds"),
        ({"templates": [{**POD, "retryStrategy": {"limit": "twice"}}]}, "spec.templates[0].retryStrategy.limit"),
        ({"templates": [{**POD, "retryStrategy": {"retryPolicy": "x"}}]}, "spec.templates[0].retryStrategy.retryPolicy"),
        ({"templates": [{**POD, "retryStrategy": {"backoff": {"duration": "x"}}}]},
         "spec.templates[0].retryStrategy.backoff.duration"),
        ({"templates": [{**POD, "retryStrategy": {"backoff": {"factor": 1.5}}}]},
         "spec.templates[0].retryStrategy.backoff.factor"),
        ({"templates": [{**POD, "retryStrategy": {"backoff": {"maxDuration": 10**400}}}]},
         "spec.templates[0].retryStrategy.backoff.maxDuration"),
        ({"templates": {}}, "spec.templates"),
        ({"templates": ["w"]}, "spec.templates[0]"),
        ({"templates": [{"name": "long", "container": {"image": "i", "args": ["x" * 2**21]}}]}, "spec"),
    ],
)  # fmt: skip
def test_a_malformed_value_is_refused_with_its_fields_name(change, field):
    platform = ArgoPlatform()
    with pytest.raises(ApiError) as refused:
        platform.create("Workflow", "wf", spec={**dag(task("a")), **change})
    assert refused.value.code == 422
    assert f"{field}: " in refused.value.message
    assert [each["field"] for each in refused.value.details["causes"]] == [field]  # what kubectl shows
    assert platform.names() == []


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    for key, below in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        found += _leaves(below, (*path, key))
    return found


@pytest.mark.parametrize("junk", [-1, 1e300, 10**400, True, "", "x", "{{x}}", "²", [], [1], {}, {"a": 1}, None])
def test_junk_in_any_field_is_refused_or_run_but_never_breaks_the_controller(junk):
    platform = ArgoPlatform(FAILS)
    for number, path in enumerate(_leaves(EVERYTHING)[1:]):
        spec = deepcopy(EVERYTHING)
        at: Any = spec
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = junk
        try:
            platform.create("Workflow", f"wf-{number}", spec=spec)
        except ApiError as refused:
            assert refused.code in {404, 422}, path  # noqa: PT017
            assert "Error(" not in refused.message, path  # noqa: PT017
    platform.run(20.0)


def test_the_example_itself_runs():
    assert ended(EVERYTHING, until_s=40.0)["status"]["phase"] == "Succeeded"


@pytest.mark.parametrize(("given", "phase"), [("3s", "Succeeded"), ("soon", "Error")])
def test_a_suspension_can_take_its_duration_from_a_parameter(given, phase):
    spec = steps([{"name": "s", "template": "s"}], arguments={"parameters": [{"name": "long", "value": given}]})
    spec["templates"].append({"name": "s", "suspend": {"duration": "{{workflow.parameters.long}}"}})
    assert nodes_of(ended(spec))["wf[0].s"][1] == phase


@pytest.mark.parametrize(
    ("backoff", "attempts", "why"),
    [
        ({"duration": "1s", "maxDuration": "1m"}, 4, "No more retries left"),
        ({"duration": "5s", "factor": 2, "maxDuration": "20s"}, 2, "Backoff would exceed max duration limit"),
        ({"duration": "1s", "maxDuration": "1s"}, 1, "Max duration limit exceeded"),
    ],
)
def test_retries_end_with_the_longest_duration(backoff, attempts, why):
    spec = dag(task("bad"))
    spec["templates"][1] = {**POD, "retryStrategy": {"limit": 3, "backoff": backoff}}
    nodes = nodes_of(ended(spec, Step(duration=fixed(3.0), failing=1.0, **WORK)))
    assert (nodes["wf.bad"][1], nodes["wf.bad"][2]) == ("Failed", why)
    assert sum(name.startswith("wf.bad(") for name in nodes) == attempts
