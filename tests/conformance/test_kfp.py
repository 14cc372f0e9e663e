"""A KFP API answers as a real one was recorded to: the simulated one, and one that PIPESWARM_REAL_KFP names.

That one is only read, unless PIPESWARM_REAL_KFP_WRITES=1: then what the recorded questions make there is deleted again;
what was there before is left alone.
"""

import json
import os
import time
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml

from harness.simulator.profile.file import parse_profile
from tests.support.conformance import API, RECORDED, UUID, Answer, Comparison, Replay, rows_of, task_fields
from tests.support.skipping import skippable

TRAINING = Path(__file__).parents[2] / "harness" / "targets" / "training.yaml"
ANSWERS = json.loads((RECORDED / "kfp.json").read_text())["answers"]
BY_LABEL = {each["label"]: each for each in ANSWERS}
TABLE = yaml.safe_load(Path(__file__).with_name("differences.yaml").read_text())
PAGE = Path(__file__).parents[2] / "docs" / "simulator.md"
REAL, WRITES = "PIPESWARM_REAL_KFP", "PIPESWARM_REAL_KFP_WRITES"
RECORDED_TAG = "1b62b3"
OK, NOBODY = 200, "00000000-0000-4000-8000-000000000000"
# The controller takes its time, so that runs are as far as they were in the recording; nothing else takes any.
SLOW_CONTROLLER = """
pools: [{name: pool, cpu: 64, memory: 256Gi, initial: 2, min: 2, max: 2}]
kubelet: {start: 1s, pull_overhead_s: 0s, pull_bytes_per_s: 10Gi}
api: {qps: 1000, burst: 1000, latency: 0ms}
controller: {qps: 1000, burst: 1000, operation_s: 600s, requeue_s: 1s, driver: 1s, workers: 1000}
agent: {workers: 100, report_s: 1ms, lag_s: 60s}
steps: [{duration: 1s, output: 1Mi}]
"""
REPORTED_S, BEGUN_S, OVER_S = 61.0, 605.0, 20_000.0
# The recording's first look at its runs came after the persistence agent's, and before the controller's.
WAITS = {"list": REPORTED_S, "terminate": BEGUN_S, "good over": OVER_S}
OTHERS = 70  # runs that were there before the recording
OVER = {"SUCCEEDED", "FAILED", "CANCELED"}
Question = dict[str, Any]
Found = dict[str, dict[str, str]]  # what differs: by question, by place


@pytest.fixture(scope="module")
def simulated() -> Found:
    """What the simulator answers differently."""
    with skippable(parse_profile(SLOW_CONTROLLER, "the profile", "conformance")) as platform:
        replay = Replay(platform.url, TRAINING.read_text())
        others(replay, platform.skip)
        return asked(replay, lambda label: platform.skip(WAITS.get(label, 0.0)))


def asked(
    replay: Replay, wait: Callable[[str], None], made: list[Question] | None = None, *, only_read: bool = False
) -> Found:
    """Ask everything, after a wait of the question's own; `made` gets the questions that delete what that creates."""
    spec = json.loads(json.dumps(yaml.safe_load(replay.package)), parse_float=_whole)
    comparison = Comparison(replay.here, rows_of(ANSWERS), task_fields(ANSWERS), spec)
    found: Found = {}
    for each in filter(only_reads, ANSWERS) if only_read else ANSWERS:
        wait(each["label"])
        answered = replay.ask(each)
        if made is not None and each["method"] == "POST":
            made += _made(answered)
        replay.learn(each["answer"].get("body"), answered.body)
        found.setdefault(each["label"], {}).update(comparison.differences(each["answer"], answered))
        if each["answer"]["status"] != 200 and isinstance(answered.body, dict) and "run_id" in answered.body:
            replay.send("DELETE", f"{API}/runs/{answered.body['run_id']}")  # there is none in the recording
    return found


def only_reads(question: Question) -> bool:
    """Whether it changes nothing, and any installation has the same answer: it is about nothing that was made before."""
    asks = f"{question['path']} {question.get('query', '')}"
    made = RECORDED_TAG in asks or any(each != NOBODY for each in UUID.findall(asks))
    return question["method"] == "GET" and not made and (question["answer"]["status"] != OK or "healthz" in asks)


def _made(answered: Answer) -> list[Question]:
    """What deletes the object that an answer says was created."""
    if answered.status != 200 or not isinstance(answered.body, dict):
        return []
    kinds = (("run_id", "runs"), ("pipeline_id", "pipelines"), ("experiment_id", "experiments"))
    found = next(((kind, answered.body[name]) for name, kind in kinds if name in answered.body), None)
    if found is None:
        return []
    kind, its_id = found
    query = {"query": {"cascade": "true"}} if kind == "pipelines" else {}
    return [{"method": "DELETE", "path": f"{API}/{kind}/{its_id}", **query}]


def _whole(text: str) -> int | float:
    return int(float(text)) if float(text).is_integer() else float(text)


def others(replay: Replay, skip: Callable[[float], None]) -> None:
    """The experiment and the runs of others that were there before."""
    row = BY_LABEL["list ns"]["answer"]["body"]["runs"][0]
    skip(1.0)
    experiment = replay.send("POST", f"{API}/experiments", {"display_name": "pipeswarm"}).body["experiment_id"]
    file = {"field": "uploadfile", "filename": "pipeline.yaml", "content": replay.package}
    replay.ask({"method": "POST", "path": f"{API}/pipelines/upload", "query": {"name": "pipeswarm"}, "upload": file})
    (pipeline,) = replay.send("GET", f"{API}/pipelines").body["pipelines"]
    run = {
        "experiment_id": experiment,
        "pipeline_version_reference": {"pipeline_id": pipeline["pipeline_id"]},
        "runtime_config": row["runtime_config"],
    }
    first = replay.send("POST", f"{API}/runs", run | {"display_name": row["display_name"]})
    replay.learn(row, first.body)
    skip(1.0)
    for number in range(1, OTHERS):
        replay.send("POST", f"{API}/runs", run | {"display_name": f"other {number}"})
    skip(OVER_S)


def listed(kind: str, label: str, at: str) -> bool:
    """Whether the table has a difference."""
    return any(
        any(fnmatchcase(label, name) for name in row["answers"])
        and any(at == place or ("*" in place and fnmatchcase(at, place)) for place in row["at"])
        for row in TABLE[kind]
    )


def test_the_simulator_answers_as_recorded_but_for_the_listed_differences(simulated: Found) -> None:
    differing = {(label, at) for label, places in simulated.items() for at in places}
    new = [f"{label}: {at}: {simulated[label][at]}" for label, at in differing if not listed("simulated", label, at)]
    assert not new, "\n".join(sorted(new))
    rows = {(label, at) for row in TABLE["simulated"] for label in row["answers"] for at in row["at"]}
    assert rows == differing, "these no longer differ: take them off the table"


def test_nine_tenths_of_the_recorded_answers_agree(simulated: Found) -> None:
    assert len(ANSWERS) == 119
    agreeing = [each for each in ANSWERS if not simulated[each["label"]]]
    assert len(agreeing) >= 0.9 * len(ANSWERS)


def test_the_documentation_lists_the_differences(simulated: Found) -> None:
    agreeing = sum(not simulated[each["label"]] for each in ANSWERS)
    first = f"{agreeing} of {len(ANSWERS)} recorded answers of a real KFP API server (2.17) agree. The others:\n"
    rows = [f"* {row['reason']} ({', '.join(row['answers'])})" for row in TABLE["simulated"]]
    text = "\n".join((first, *rows))
    assert text in PAGE.read_text(), text


@pytest.fixture(scope="module")
def real() -> Iterator[Found]:
    """What the platform that is named answers differently; afterwards everything made there is deleted."""
    url = os.environ.get(REAL, "").rstrip("/")
    if not url:
        pytest.skip(f"{REAL} is not set: it names a KFP API server to compare with the recorded answers")
    token = os.environ.get("PIPESWARM_TOKEN", "")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    replay = Replay(url, TRAINING.read_text(), {RECORDED_TAG: uuid4().hex[:6]}, headers)
    if os.environ.get(WRITES) != "1":
        yield asked(replay, lambda _: None, only_read=True)
        return
    made: list[Question] = []
    try:
        yield asked(replay, lambda label: _until(replay, label), made)
    finally:
        for each in reversed(made):
            replay.ask(each)


def _until(replay: Replay, label: str) -> None:
    """Wait until real runs are about as far as they were in the recording."""
    if label in {"list", "terminate"}:
        time.sleep(2.0)
    elif label == "good over":
        deadline = time.monotonic() + 900
        for name in ("good over", "terminated over", "failed over"):
            while replay.ask(BY_LABEL[name]).body.get("state") not in OVER:
                assert time.monotonic() < deadline, f"{name}: not over after a quarter of an hour"
                time.sleep(2.0)


def test_a_real_platform_answers_as_recorded_but_for_what_is_its_own(real: Found) -> None:
    new = [f"{label}: {at}: {why}" for label, places in real.items() for at, why in places.items()]
    assert not [each for each in new if not listed("real", *each.split(": ", 2)[:2])]


def test_reading_only_asks_nothing_that_changes_or_needs_what_was_made(simulated: Found) -> None:
    asked_of = [each for each in ANSWERS if only_reads(each)]
    assert {each["method"] for each in asked_of} == {"GET"}
    assert {"healthz v2", "unknown api", "get unknown run", "list bad token"} <= {each["label"] for each in asked_of}
    assert not {"get run at once", "get deleted", "by name", "list ns"} & {each["label"] for each in asked_of}
    with skippable(parse_profile(SLOW_CONTROLLER, "the profile", "conformance")) as platform:
        found = asked(Replay(platform.url, TRAINING.read_text()), lambda _: None, only_read=True)
        assert found == {label: places for label, places in simulated.items() if label in found}
        assert "total_size" not in Replay(platform.url, "").send("GET", f"{API}/pipelines").body
