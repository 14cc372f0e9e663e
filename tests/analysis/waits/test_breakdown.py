"""The runs' phases summed up, worked by hand."""

import numpy as np
import pytest

from harness.analysis.waits.breakdown import phase_breakdown
from harness.model.phases import RUN_PHASES, RUNNING, UNSCHEDULABLE
from tests.support.stories import lasting, waiting


def test_phases_of_finished_runs_are_summed_up(tmp_path):
    found = phase_breakdown(lasting(10, 20, 30, 40).timeline(tmp_path))
    phases = {phase.name: phase for phase in found.phases}
    assert tuple(phases) == RUN_PHASES
    running = phases[RUNNING]
    assert (found.runs, found.mean_total_s, found.reversed) == (4, 25.0, 0)
    assert (running.share, running.mean_s) == pytest.approx((92 / 100, 23.0))
    assert (running.least_s, running.p50_s, running.p95_s, running.most_s) == (8.0, 18.0, 38.0, 38.0)
    assert running.seen
    assert not phases[UNSCHEDULABLE].seen
    assert sum(phase.share for phase in found.phases) == pytest.approx(1.0)


def test_without_finished_runs_nothing_is_known(tmp_path):
    found = phase_breakdown(waiting((0.0, None)).timeline(tmp_path))
    assert (found.runs, found.caveat) == (0, "")
    assert np.isnan(found.mean_total_s)
    assert all(np.isnan(phase.mean_s) and not phase.seen for phase in found.phases)
