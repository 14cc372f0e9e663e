import csv
import json

import pytest

from harness.analysis.waits.cached import caching, runs_with_cached_tasks
from harness.cli import main
from harness.detectors.doubts.caching import detect
from harness.model import Span
from harness.model.phases import CACHED, FAILED, GAP, RESUMED, RUNNING
from tests.support.timelines import Story, at


def pod(story, run, role, task, start=2.0):
    name = f"{run}-system-container-{role}-{task}"
    story.records.append(Span(run, name, RUNNING, at(start), at(start + 1), task, 0, "n", "kubernetes", 1.0))


def story(*tasks, state="SUCCEEDED", executed=("train", "evaluate")):
    told = Story(intended=1)
    run = told.submit(0, due=1.0)
    for task in tasks:
        pod(told, run, "driver", f"{task}-driver")
        if task in executed:
            pod(told, run, "impl", task, 3.0)
    told.run(run, 1.0, 9.0, state)
    return told


def test_a_driver_without_an_executor_after_it_was_answered_from_the_cache(tmp_path):
    assert list(runs_with_cached_tasks(story("train", "evaluate").timeline(tmp_path / "a"))) == []
    assert list(runs_with_cached_tasks(story("train", "prepare").timeline(tmp_path / "b"))) == [0]


def test_a_run_that_failed_may_end_between_driver_and_executor(tmp_path):
    assert list(runs_with_cached_tasks(story("train", "prepare", state=FAILED).timeline(tmp_path))) == []


@pytest.mark.parametrize("reason", [GAP, RESUMED])
def test_observation_gaps_give_no_verdict_on_caching(reason, tmp_path):
    told = story("train", "prepare")
    told.event(5.0, "Observer", "kubernetes pods", reason, "not seen for 9 s")
    assert list(runs_with_cached_tasks(told.timeline(tmp_path))) == []


def loop(*, executed, lost=()):
    """A run whose loop has three drivers and these executors of the task ``step``; `lost` pods were evicted."""
    told = Story(intended=1)
    run = told.submit(0, due=1.0)
    roles = [("driver", f"-{k}") for k in range(3)] + [("impl", f"-{k}") for k in range(executed)]
    for role, number in roles:
        task = "step-driver" if role == "driver" else "step"
        name = f"{run}-system-container-{role}{number}"
        told.records.append(Span(run, name, RUNNING, at(2.0), at(3.0), task, 0, "n", "kubernetes", 1.0))
        if f"{role}{number}" in lost:
            told.event(3.0, "Pod", name, "Evicted", run=run)
    told.run(run, 1.0, 9.0)
    return told


@pytest.mark.parametrize(("executed", "cached", "tasks"), [(3, [], []), (4, [], []), (2, [0], [1]), (0, [0], [3])])
def test_in_a_loop_each_driver_has_an_executor_of_its_own(tmp_path, executed, cached, tasks):
    found = caching(loop(executed=executed).timeline(tmp_path))
    assert (found.cached.tolist(), found.tasks.tolist()) == (cached, tasks)


@pytest.mark.parametrize(("executed", "cached"), [(2, []), (1, []), (0, [0])])
def test_a_driver_that_was_lost_ran_twice(tmp_path, executed, cached):
    told = loop(executed=executed, lost={"driver-0"})
    assert list(runs_with_cached_tasks(told.timeline(tmp_path))) == cached


def test_other_runs_show_nothing_about_this_tests_tasks(tmp_path):
    told = story(executed=())
    pod(told, "others", "driver", "train-driver")
    found = caching(told.timeline(tmp_path))
    assert (list(found.judged), list(found.cached)) == ([], [])


def test_task_details_reveal_cached_tasks_without_pods(tmp_path):
    story = Story(intended=2)
    for seq in range(2):
        story.run(story.submit(seq), 0.0, 9.0)
    story.event(9.0, "Task", "train", CACHED, run="run-0001")
    story.event(9.0, "Task", "evaluate", CACHED, run="run-0001")
    found = caching(story.timeline(tmp_path))
    assert (found.cached.tolist(), found.tasks.tolist()) == ([1], [2])


def test_a_task_that_pods_and_details_show_is_counted_once(tmp_path):
    told = story("train", "prepare")
    told.event(9.0, "Task", "prepare", CACHED, run="run-0000")
    assert caching(told.timeline(tmp_path)).tasks.tolist() == [1]


def test_the_finding_says_how_many_tasks_the_cache_spared(tmp_path):
    (finding,) = detect(loop(executed=1).timeline(tmp_path))
    assert "100% of the runs were answered from the cache, which spared it 2 tasks" in finding.title
    assert [(each.value, each.unit) for each in finding.evidence] == [(1.0, "runs"), (2.0, "tasks")]


def test_without_pods_no_run_counts_as_cached(tmp_path):
    told = Story(intended=1)
    told.run(told.submit(0, due=1.0), 1.0, 9.0)
    assert list(runs_with_cached_tasks(told.timeline(tmp_path))) == []


@pytest.mark.parametrize(("caching", "cached", "code"), [("keep", 9, 4), ("off", 0, 0)])
def test_a_test_whose_scenarios_repeat_is_valid_only_without_the_cache(tmp_path, capsys, caching, cached, code):
    command = [
        "simulate",
        "run",
        "--schedule",
        "spread",
        "--runs",
        "12",
        "--over",
        "2m",
        "--runs-dir",
        str(tmp_path),
    ]
    main([*command, "--run-name", "first", "--quiet"])
    header, *rows = csv.reader((tmp_path / "first/scenarios.csv").open())
    with (tmp_path / "same.csv").open("w", newline="") as out:
        csv.writer(out).writerows([header, *([str(k), *rows[k % 3][1:]] for k in range(12))])
    again = [*command, "--run-name", "again", "--scenarios", str(tmp_path / "same.csv"), "--caching", caching, "--json"]
    assert main(again) == code
    reasons = json.loads(capsys.readouterr().out)["validity"]["reasons"]
    assert [reason for reason in reasons if "cache" in reason] == (
        [f"{cached} runs came from the cache, in whole or in part: their cost is unknown"] if cached else []
    )
