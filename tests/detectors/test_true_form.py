"""Each failure as a real platform shows it, with the sources that a kubeconfig gives: it is named first."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.detectors import diagnose
from harness.model import Event
from harness.simulator.engine.distributions import fixed
from harness.simulator.faults import inject, parse_fault
from harness.simulator.platform import Platform
from harness.simulator.profile.file import load_profile
from tests.support.watched_platform import WatchedPlatform

_DOUBTS = {"censoring", "too-few-samples", "failures"}


def planted(fault: str) -> Callable[[Platform], None]:
    plan = parse_fault(fault)
    assert plan is not None
    return lambda platform: inject(platform, plan)


def lose_nodes(platform: Platform) -> None:
    """Two machines on which steps run die."""

    def lose() -> None:
        hosts = {
            pod.node.name: pod.node
            for pod in platform.cluster.pods.values()
            if pod.role == "executor" and pod.node and not pod.over
        }
        for name in sorted(hosts)[:2]:
            platform.cluster.lose_node(hosts[name])

    platform.loop.at(40.0, lose)


@pytest.mark.parametrize(
    ("name", "breaks", "says"),
    [
        ("oom", planted("oom@1s"), "main: OOMKilled (exit code 137)"),
        *(
            pytest.param(*case, marks=pytest.mark.soak)
            for case in (
                ("node-pressure", planted("node-pressure@1s"), "The node was low on resource: memory."),
                ("image-missing", planted("image-missing@1s"), "Failed to pull image"),
            )
        ),
        ("quota", planted("quota@1s"), "is forbidden: exceeded quota: workflows"),
        ("node-status-unknown", lose_nodes, "pod deleted"),  # no spot machines
    ],
)
def test_a_failure_is_named_first_from_what_a_kubeconfig_shows(
    name: str, breaks: Callable[[Platform], None], says: str, tmp_path: Path
) -> None:
    profile = load_profile("demo")
    steps = tuple(replace(step, duration=fixed(12.0)) for step in profile.steps)
    watched = WatchedPlatform(tmp_path, replace(profile, steps=steps))
    breaks(watched.platform)
    timeline = watched.load(40, 1.0, 400.0)
    found = [each.name for each in diagnose(timeline).findings if each.name not in _DOUBTS]
    assert found[:1] == [name]
    events = watched.folder.records(Event)
    assert any(says in each.message and each.run for each in events)
    assert not any(each.message for each in events if each.kind == "Run")
    assert not any("error" in text for run in watched.documents() for text in (run, *_tasks(run)))


def _tasks(run: dict[str, dict[str, list[dict[str, object]]]]) -> list[dict[str, object]]:
    return run.get("run_details", {}).get("task_details", [])


def test_a_quota_can_not_be_judged_where_workflows_can_not_be_read(tmp_path: Path) -> None:
    profile = load_profile("demo")
    watched = WatchedPlatform(tmp_path, profile, reads_workflows=False)
    planted("quota@1s")(watched.platform)
    diagnosis = diagnose(watched.load(40, 1.0, 200.0))
    assert "quota" not in {each.name for each in diagnosis.findings}
    assert "none could be read" in {each.name: each.reason for each in diagnosis.not_judged}["quota"]
