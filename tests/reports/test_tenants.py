"""The line about the tenants."""

from dataclasses import replace

from harness.analysis.result import analyse
from harness.detectors import diagnose
from harness.model.phases import FAILED
from reports.tenants import tenants_line
from tests.support.timelines import Story


def test_the_line_names_tenants_that_fairness_leaves_out(tmp_path):
    """A tenant whose runs never succeed has no speed: even shares of the others must not pass for fairness to it."""
    told = Story(intended=3)
    for seq, tenant in enumerate(("alpha", "beta", "gamma")):
        run = told.submit(seq, due=100.0 * seq)
        told.records[-1] = replace(told.records[-1], tenant=tenant, scenario_id="1", run_name="1-a")
        told.run(run, 100.0 * seq, 100.0 * seq + 4.0, *((FAILED,) if tenant == "gamma" else ()))
    timeline = told.timeline(tmp_path)
    line = tenants_line(analyse(timeline, diagnose(timeline)))
    assert "fairness 1.00" in line
    assert line.endswith("; not in it, as no run succeeded: gamma")
