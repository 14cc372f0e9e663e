"""Runs as a real KFP reported them, from the observer's listing to validity and findings, without a cluster."""

import json
import threading
from datetime import UTC, datetime
from urllib.parse import urlsplit

import pytest

from harness.analysis.ledger import ledger
from harness.analysis.timeline import Timeline
from harness.analysis.validity import validity
from harness.collectors.collector import ObserverSettings
from harness.collectors.journal import Journal
from harness.collectors.runs.listing import RunListing
from harness.detectors import diagnose
from harness.model import Event, Outcome, Plan, Submission
from harness.model.http import HttpAnswer
from harness.store import RunFolder
from harness.store.tables import load, seal
from harness.targets.kfp import KfpTarget
from tests.support.observations import observation as observed_by
from tests.support.recorded_runs import recorded_run

START_AT = int(datetime(2026, 11, 22, 12, 40, tzinfo=UTC).timestamp()) * 10**9
NOT_FOUND = HttpAnswer(404, b'{"code": 5, "message": "Run not found"}', {"content-type": "application/json"})


def observed(tmp_path, *names, readable=True):
    """The timeline of a test that started these recorded runs; unless `readable`, the platform only lists them."""
    bodies = {}
    for seq, name in enumerate(names):
        run = f"run-{seq}"
        bodies[run] = recorded_run(name).body | {"run_id": run, "display_name": run}

    def exchange(request):
        path = urlsplit(request.path).path
        if path.endswith("/runs"):
            listed = [{key: value for key, value in body.items() if key != "run_details"} for body in bodies.values()]
            return HttpAnswer(200, json.dumps({"runs": listed}).encode(), {})
        return HttpAnswer(200, json.dumps(bodies[path.rpartition("/")[2]]).encode(), {}) if readable else NOT_FOUND

    folder = RunFolder.create(tmp_path, "test")
    plan = Plan("kfp", "http://127.0.0.1:8888", {"name": "burst"}, len(names), 7, False, started_at=START_AT)
    folder.write_plan(plan)
    with folder.recorder() as recorder:
        recorder.write(Event(START_AT, "Test", "test", "Started"))
        for seq, run in enumerate(bodies):
            at = (START_AT, START_AT, START_AT + 10**7)
            recorder.write(Submission(seq, f"s{seq}", run, *at, Outcome.ACCEPTED, run, 0, 200, None))
    target = KfpTarget({"experiment_id": "e"}, since=START_AT)
    recorder = folder.recorder()
    observation = observed_by(folder, Journal(recorder, now=lambda: START_AT + 900 * 10**9), plan=plan, target=target, settings=ObserverSettings(host="http://127.0.0.1:8888"))  # fmt: skip
    stop = threading.Event()
    stop.set()
    listing = RunListing(observation, target, exchange, clock=lambda: 0.0)
    listing.look()
    listing.collect(stop)
    recorder.close()
    seal(folder)
    return Timeline.from_frames(plan, load(folder))


def silent(timeline):
    return {each.name: each.reason for each in diagnose(timeline).not_judged}


def test_a_test_whose_runs_came_from_the_cache_is_invalid(tmp_path):
    timeline = observed(tmp_path, "cached", "cached", "cached")
    assert [reason for reason in validity(timeline).reasons if "from the cache" in reason]
    assert "caching" in {finding.name for finding in diagnose(timeline).findings}


def test_a_test_whose_tasks_were_executed_is_valid(tmp_path):
    timeline = observed(tmp_path, "three", "three", "resources")
    assert validity(timeline).reasons == ()
    assert "caching" not in silent(timeline)
    assert "caching" not in {finding.name for finding in diagnose(timeline).findings}


def test_a_single_cached_iteration_of_a_loop_is_enough(tmp_path):
    assert any("from the cache" in reason for reason in validity(observed(tmp_path, "nested")).reasons)


@pytest.mark.parametrize("name", ["three", "cached"])
def test_tasks_that_could_not_be_read_leave_caching_open(tmp_path, name):
    timeline = observed(tmp_path, name, name, readable=False)
    assert validity(timeline).valid
    assert "neither was observed" in silent(timeline)["caching"]


def test_without_a_run_that_succeeded_nothing_is_open(tmp_path):
    assert "caching" not in silent(observed(tmp_path, "oom", "evicted"))


@pytest.mark.parametrize("name", ["terminated", "terminated_early"])
def test_a_terminated_run_is_canceled_and_no_failure_of_the_platform(tmp_path, name):
    timeline = observed(tmp_path, "three", name, "oom")
    counts = ledger(timeline)
    assert (counts.succeeded, counts.canceled, counts.failed) == (1, 1, 1)
    (finding,) = [each for each in diagnose(timeline).findings if each.name == "failures"]
    assert finding.title.startswith("33%")


def test_runs_without_an_end_stay_in_flight(tmp_path):
    assert ledger(observed(tmp_path, "bad_image", "unschedulable", "node_gone")).in_flight == 3
