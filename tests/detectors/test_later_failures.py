"""Failures one after the other: what refuses runs is not the first thing to fix where accepted ones fail, too."""

import pytest

from harness.detectors import diagnose
from harness.detectors.detector import refused
from harness.model import Outcome
from tests.support.injected.loads import steady, with_volume

_UNREACHABLE = (
    "unable to write outputs: Put http://seaweedfs:9000/: dial tcp: i/o timeout: timed out waiting for the condition"
)
_CROWDED = "Error 1040: Too many connections"


def refusing(fails):
    """80 accepted runs, of which those that `fails` names can't write; 160 more find the database crowded."""
    story = with_volume(steady(fails=lambda seq: _UNREACHABLE if fails(seq) else ""))
    for seq in range(80, 240):
        story.submit(seq, due=2.0 * seq, outcome=Outcome.REJECTED, status=500, error=_CROWDED)
    story.intended = 240
    return story


@pytest.mark.parametrize(
    ("fails", "first"),
    [(lambda _: True, "store-unreachable-from-old-nodes"), (lambda seq: seq % 8 == 0, "db-connections")],
)
def test_refusals_come_after_what_all_accepted_runs_fail_of(fails, first, tmp_path):
    found = [each.name for each in diagnose(refusing(fails).timeline(tmp_path)).findings]
    assert found[0] == first
    assert {"store-unreachable-from-old-nodes", "db-connections"} <= {*found}


@pytest.mark.parametrize(("failing", "severity"), [(0, 0.5 + 0.5 * 2 / 3), (40, 0.5 + 0.5 / 3), (80, 1 / 6)])
def test_a_refusal_costs_what_would_have_ended_well(failing, severity, tmp_path):
    assert refused(refusing(lambda seq: seq < failing).timeline(tmp_path), 160) == pytest.approx(severity)


def test_runs_that_failed_of_the_same_later_on_do_not_excuse_it(tmp_path):
    assert refused(refusing(lambda _: True).timeline(tmp_path), 240, 80) == 1.0
