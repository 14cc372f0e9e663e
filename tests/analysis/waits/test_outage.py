"""A controller that does nothing although runs wait for it, told from one that is slow."""

import pytest

from harness.analysis.waits.controller_limit import BUSY
from harness.analysis.waits.outage import outage
from harness.model.phases import GAP
from tests.support.injected.loads import steady, stopped


def test_the_time_without_any_act_while_runs_waited_is_an_outage(tmp_path):
    found = outage(stopped().timeline(tmp_path))
    assert found is not None
    assert found.length_s == pytest.approx(39, abs=2)
    assert found.runs > 10
    assert not found.silent


@pytest.mark.parametrize("story", [steady(60), steady(3, every=100.0)])
def test_runs_that_do_not_wait_or_arrive_seldom_show_none(story, tmp_path):
    assert outage(story.timeline(tmp_path)) is None


@pytest.mark.parametrize(("missing", "silent"), [(range(60, 100), True), (range(0), None)])
def test_metrics_that_were_missing_confirm_it_and_metrics_that_went_on_rule_it_out(missing, silent, tmp_path):
    story = stopped()
    for second in range(0, 160, 15):
        if second not in missing:
            story.sample(float(second), BUSY, 1.0, worker_type="workflow_queue")
    found = outage(story.timeline(tmp_path))
    assert (found and found.silent) is silent


def test_what_the_observer_could_not_see_is_no_outage(tmp_path):
    story = stopped()
    story.event(80.0, "Observer", "kubernetes pods", GAP, "unreachable for 30 s")
    assert outage(story.timeline(tmp_path)) is None
