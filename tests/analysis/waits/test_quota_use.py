"""Quotas that were used up while runs waited for pods."""

import pytest

from harness.analysis.waits.quota_use import used_up
from harness.detectors import diagnose
from harness.model.phases import QUOTA_AMOUNT, REQUESTED_CPU_CORES
from tests.support.injected.loads import steady


def waiting(resource: str, hard: float, *used: tuple[float, float]):
    """Runs that each wait for their first pod for 30 s, and the amounts of a quota."""
    story = steady(40, first=lambda _: 30.0)
    labels = {"namespace": "team-a", "quota": "tight", "resource": resource}
    story.sample(0.0, QUOTA_AMOUNT, hard, **labels, type="hard")
    for second, amount in used:
        story.sample(second, QUOTA_AMOUNT, amount, **labels, type="used")
    return story


@pytest.mark.parametrize(
    ("resource", "hard", "used", "of_waits"),
    [
        ("pods", 6.0, ((0.0, 6.0),), 1.0),
        ("pods", 6.0, ((0.0, 5.0),), None),
        ("requests.cpu", 4.0, ((0.0, 3.75),), 1.0),  # a pod requests half a core
        ("requests.cpu", 4.0, ((0.0, 3.25),), None),
        ("pods", 6.0, ((0.0, 6.0), (60.0, 2.0)), 0.6),
    ],
)
def test_a_quota_without_room_for_another_pod_while_runs_wait_is_used_up(resource, hard, used, of_waits, tmp_path):
    story = waiting(resource, hard, *used)
    story.sample(1.0, REQUESTED_CPU_CORES, 0.5, task="train")
    found = used_up(story.timeline(tmp_path))
    assert [each.of_waits for each in found] == ([] if of_waits is None else [pytest.approx(of_waits, abs=0.15)])


def test_it_is_found_before_the_controller_though_no_refusal_was_read(tmp_path):
    first = diagnose(waiting("pods", 6.0, (0.0, 6.0)).timeline(tmp_path)).findings[0]
    assert first.name == "quota"
    assert "tight had no room for another pod (pods: 6 of 6 used)" in first.title
