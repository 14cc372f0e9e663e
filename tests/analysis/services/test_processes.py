"""What processes used, and the phases that they reported, by scenario."""

from dataclasses import replace

import pytest

from harness.analysis.services.processes import figures, is_of_phase, processes
from harness.targets.command.ended import Ended
from tests.support.timelines import Story, at

ENDED = Ended(exit_code=0, took_s=2.0, cpu_s=1.0, peak_bytes=2**20)


def story(*runs: tuple[str, Ended]) -> Story:
    """Runs of these scenarios one after the other, ten seconds each."""
    told = Story(intended=len(runs), target="command")
    for seq, (scenario, ended) in enumerate(runs):
        due = 10.0 * seq
        run = told.submit(seq, due=due, lag=0.0, service=5.0)
        row = told.records[-1]
        told.records[-1] = replace(row, scenario_id=scenario, run_name=f"{scenario}-size-{scenario}")
        told.records += ended.as_run(run, "step.py", 60.0).records(at(due), at(due + 5.0), "command")
    return told


def test_runs_that_are_no_processes_have_none(tmp_path):
    told = Story(intended=1)
    told.run(told.submit(0), 0.0, 1.0)
    timeline = told.timeline(tmp_path)
    assert processes(timeline) is None
    assert figures(timeline) == {}


def test_cpu_and_memory_are_means_and_maxima_over_all_runs(tmp_path):
    failed = replace(ENDED, exit_code=1, cpu_s=3.0, peak_bytes=3 * 2**20)
    found = processes(story(("a", ENDED), ("a", failed)).timeline(tmp_path))
    assert (found.runs, found.cpu_s, found.most_cpu_s) == (2, 2.0, 3.0)
    assert (found.peak_bytes, found.most_peak_bytes) == (2 * 2**20, 3 * 2**20)


def test_phases_are_summed_by_run_and_averaged_by_scenario_over_runs_that_succeeded(tmp_path):
    runs = (
        ("a", replace(ENDED, phases=(("read", 0.5), ("write", 0.25)))),
        ("b", replace(ENDED, phases=(("read", 2.0),))),
        ("a", replace(ENDED, phases=(("read", 1.0), ("write", 0.75)))),
        ("a", replace(ENDED, exit_code=1, phases=(("read", 1.75),))),
    )
    timeline = story(*runs).timeline(tmp_path)
    assert {(each.scenario, each.name): (each.runs, each.mean_s) for each in processes(timeline).phases} == {
        ("size-a", "rest of step.py"): (2, pytest.approx(0.75)),
        ("size-a", "read"): (2, pytest.approx(0.75)),
        ("size-a", "write"): (2, pytest.approx(0.5)),
        ("size-b", "rest of step.py"): (1, pytest.approx(0.0)),
        ("size-b", "read"): (1, pytest.approx(2.0)),
    }
    found = figures(timeline)
    assert found["size-a: phase read mean (s)"] == pytest.approx(0.75)
    assert found["size-b: run.duration mean (s)"] == pytest.approx(5.0)


def test_the_figures_of_a_single_scenario_do_not_name_it(tmp_path):
    found = figures(story(("a", replace(ENDED, phases=(("read", 0.5),)))).timeline(tmp_path))
    assert {name: found[name] for name in ("phase read mean (s)", "CPU time mean (s)", "peak memory mean (MiB)")} == {
        "phase read mean (s)": pytest.approx(0.5), "CPU time mean (s)": 1.0, "peak memory mean (MiB)": 1.0,
    }  # fmt: skip


def test_processes_that_report_no_phases_have_none(tmp_path):
    assert processes(story(("a", ENDED)).timeline(tmp_path)).phases == ()


def test_what_was_said_of_runs_that_succeeded_is_counted(tmp_path):
    left = replace(ENDED, left_behind=1)
    found = processes(story(("a", left), ("a", left), ("a", replace(left, exit_code=1))).timeline(tmp_path))
    assert found.remarks == (("a process was left behind and ended", 2),)


@pytest.mark.parametrize(("metric", "of_phase"), [
    ("phase read mean (s)", True), ("size: a: phase read mean (s)", True), ("phase: run.duration mean (s)", False),
    ("CPU time mean (s)", False),
])  # fmt: skip
def test_figures_of_phases_are_told_from_others(metric, of_phase):
    assert is_of_phase(metric) is of_phase
