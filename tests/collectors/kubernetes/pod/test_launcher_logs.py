"""What is read from a launcher's log. The lines are written after the launcher's source, not recorded."""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from harness.collectors.journal import Journal
from harness.collectors.kubernetes.kube_api import KubeApi
from harness.collectors.kubernetes.pod.launcher_logs import EndedPod, LauncherLog, LauncherLogs, ended_pod, read_log
from harness.collectors.kubernetes.pod.observed import Pods
from harness.collectors.kubernetes.timestamps import stamp
from harness.collectors.source_health import UnreachableError
from harness.model import Event, Sample, Span
from harness.model.phases import LAUNCHER_ERROR, POD_LOGS, RUNNING, STORING, UPLOAD_SECONDS
from harness.store import RunFolder
from tests.support import manifests

BEFORE = ("11.000000001", "I1122 12:00:11.000000       1 main.go:94] Setting log level to: '1'")
PRINTED = ("12.5", "epoch 1 of 3")
NO_METADATA = (
    "20.25",
    "I1122 12:00:20.250000       1 launcher_v2.go:1214] output metadata file does not exist in /tmp/x",
)
METADATA = ("20.25", "I1122 12:00:20.250000       1 launcher_v2.go:1226] ExecutorOutput: {")
BEGUN = ("20.5", "I1122 12:00:20.500000       1 launcher_v2.go:872] Executing uploadOutputArtifacts attempt: 1")
FILE = (
    "24.0",
    'I1122 12:00:24.000000       1 object_store.go:221] uploadFile(localFilePath="/s3/a", blobFilePath="a")',
)
LAST_FILE = (
    "27.75",
    'I1122 12:00:27.750000       1 object_store.go:221] uploadFile(localFilePath="/s3/b", blobFilePath="b")',
)
PUBLISHED = ("28.0", "I1122 12:00:28.000000       1 launcher_v2.go:196] publish success.")
FATAL = (
    "40.0",
    "F1122 12:00:40.000000       1 main.go:131] failed to execute component: failed to upload output artifact",
)
COMMAND = ("15.0", "F1122 12:00:15.000000       1 main.go:131] failed to execute component: exit status 1")


def log(*lines: tuple[str, str]) -> str:
    return "".join(f"2026-11-22T12:00:{second}Z {said}\n" for second, said in lines)


def at(second: float) -> int:
    start = stamp("2026-11-22T12:00:00Z")
    assert start is not None
    return start.at + round(second * 1e9)


@pytest.mark.parametrize(
    ("lines", "uploading", "uploaded", "error", "ended"),
    [
        ((BEFORE, PRINTED, BEGUN, FILE, LAST_FILE, PUBLISHED), 20.5, 27.75, "", 28.0),
        ((BEFORE, NO_METADATA, BEGUN, FILE, PUBLISHED), 20.25, 24.0, "", 28.0),
        ((BEFORE, METADATA, FILE, PUBLISHED), 20.25, 24.0, "", 28.0),  # before 2.17
        ((BEFORE, BEGUN, PUBLISHED), 20.5, None, "", 28.0),  # nothing to upload
        ((BEFORE, ("20.5", f"100% done{BEGUN[1]}"), FILE), 20.5, 24.0, "", 24.0),  # the command's last line is open
        ((BEFORE, BEGUN, FILE, FATAL), 20.5, 24.0, "failed to upload output artifact", 40.0),
        ((BEFORE, PRINTED, COMMAND), None, None, "exit status 1", 15.0),
        ((BEFORE, PRINTED), None, None, "", 12.5),
        # A step that prints what another launcher logged: the last launcher is its own.
        ((("1.0", BEGUN[1]), ("2.0", FILE[1]), PRINTED, BEGUN, LAST_FILE), 20.5, 27.75, "", 27.75),
    ],
)
def test_a_log_tells_when_outputs_were_uploaded_and_why_the_launcher_failed(
    lines: tuple[tuple[str, str], ...], uploading: float | None, uploaded: float | None, error: str, ended: float
) -> None:
    told = [None if each is None else at(each) for each in (uploading, uploaded)]
    assert read_log(log(*lines)) == LauncherLog(told[0], told[1], error, at(ended))


@pytest.mark.parametrize("text", ["", "\n", "not a timestamp\n", 'time="2026-11-22T12:00:00Z" level=info msg="x"\n'])
def test_a_log_without_timestamps_tells_nothing(text: str) -> None:
    assert read_log(text) is None


def test_a_line_that_was_cut_off_is_left_out() -> None:
    assert read_log("rtifacts attempt: 1\n" + log(BEGUN, FILE)) == LauncherLog(at(20.5), at(24.0), "", at(24.0))


def pod(phase: str, *inits: str) -> dict[str, object]:
    return {
        "metadata": {"name": "p", "namespace": "ml", "uid": "u"},
        "spec": {"initContainers": [{"name": name} for name in inits]},
        "status": {"phase": phase},
    }


@pytest.mark.parametrize(
    ("phase", "inits", "run", "offered"),
    [
        ("Succeeded", ("init", "kfp-launcher"), "r", True),
        ("Failed", ("init", "kfp-launcher"), "r", True),
        ("Running", ("init", "kfp-launcher"), "r", False),
        ("Succeeded", ("init",), "r", False),  # a driver
        ("Succeeded", ("init", "kfp-launcher"), "", False),  # of nobody's run
    ],
)
def test_only_an_ended_pod_of_a_run_with_the_launcher_has_such_a_log(
    phase: str, inits: tuple[str, ...], run: str, offered: bool
) -> None:
    found = ended_pod(pod(phase, *inits), run, "train")
    assert (found is not None) is offered
    if found is not None:
        assert (found.failed, found.task, found.namespace) == (phase == "Failed", "train", "ml")


class Api:
    """Answers every request for a log with the same text, or error; with the status -1 not at all."""

    def __init__(self, text: str, status: int = 0) -> None:
        self.text, self.status = text, status
        self.asked: list[tuple[str, Mapping[str, str]]] = []

    def get_text(self, path: str, query: Mapping[str, str]) -> str:
        self.asked.append((path, query))
        if self.status:
            raise UnreachableError(f"GET {path}: {self.status}", max(self.status, 0))
        return self.text


class Reading:
    """A reader, its folder, and what it told."""

    def __init__(self, place: Path, api: Api) -> None:
        place.mkdir(exist_ok=True)
        self.folder = RunFolder(place)
        self.api = api
        self.told: list[str] = []
        self.logs = LauncherLogs(cast("KubeApi", api), Journal(self.folder.recorder(), now=lambda: at(60)))

    def offer(self, count: int, *, failed: bool = False) -> None:
        for k in range(count):
            self.logs.offer(EndedPod("ml", f"pod-{k}", f"uid-{k}", f"run-{k}", "train", failed))

    def read(self) -> None:
        over = threading.Event()
        over.set()
        self.logs.follow(over, lambda uid, _: self.told.append(uid))


def test_an_upload_is_a_sample_and_a_failure_an_event_of_the_run(tmp_path: Path) -> None:
    good = Reading(tmp_path / "good", Api(log(BEFORE, BEGUN, FILE, PUBLISHED)))
    good.offer(1)
    good.read()
    (sample,) = good.folder.records(Sample)
    assert (sample.metric, sample.value, sample.labels) == (UPLOAD_SECONDS, 3.5, {"task": "train", "pod": "pod-0"})
    assert good.folder.records(Event) == []
    assert good.api.asked[0][0] == "/api/v1/namespaces/ml/pods/pod-0/log"
    assert good.api.asked[0][1]["container"] == "main"
    bad = Reading(tmp_path / "bad", Api(log(BEFORE, BEGUN, FILE, FATAL)))
    bad.offer(1, failed=True)
    bad.read()
    (event,) = bad.folder.records(Event)
    assert (event.reason, event.object, event.run, event.at) == (LAUNCHER_ERROR, "pod-0", "run-0", at(40.0))
    assert event.message == "failed to upload output artifact"
    assert bad.folder.records(Sample) == [], "a failed upload says nothing of the store's speed"


def test_few_of_many_logs_are_read_and_more_of_failed_steps(tmp_path: Path) -> None:
    reading = Reading(tmp_path, Api(log(BEGUN, FILE)))
    reading.offer(5000)
    reading.read()
    uploads = len(reading.api.asked)
    assert 60 <= uploads <= 120
    reading.offer(5000, failed=True)
    reading.read()
    assert len(reading.api.asked) - uploads == 100
    assert len(reading.told) == len(reading.api.asked)


def test_without_the_permission_one_request_is_made_and_noted(tmp_path: Path) -> None:
    reading = Reading(tmp_path, Api("", 403))
    reading.offer(10)
    reading.read()
    reading.offer(10, failed=True)
    reading.read()
    assert len(reading.api.asked) == 1
    assert [(event.object, event.reason) for event in reading.folder.records(Event)] == [(POD_LOGS, "NotReachable")]


def test_an_unreachable_kubelet_is_noted_once_and_other_pods_are_tried(tmp_path: Path) -> None:
    reading = Reading(tmp_path, Api("", 500))
    reading.offer(3)
    reading.read()
    assert len(reading.api.asked) == 3
    assert [(event.object, event.reason) for event in reading.folder.records(Event)] == [(POD_LOGS, "NotReachable")]


@pytest.mark.parametrize("status", [404, 400])
def test_a_pod_that_is_gone_is_passed_over(tmp_path: Path, status: int) -> None:
    reading = Reading(tmp_path, Api("", status))
    reading.offer(3)
    reading.read()
    assert len(reading.api.asked) == 3
    assert (reading.folder.records(Event), reading.told) == ([], [])


def test_while_nothing_answers_one_log_is_tried_a_round(tmp_path: Path) -> None:
    reading = Reading(tmp_path, Api(log(BEGUN, FILE), -1))
    reading.offer(5)
    reading.read()
    assert len(reading.api.asked) == 1
    reading.api.status = 0
    reading.read()
    assert len(reading.told) == 4


def executor(**more: Any) -> dict[str, Any]:
    """A pod of a run with the launcher, whose main container ran from 10 s to 30 s and that ended at 31 s."""
    inits = [{"name": "init"}, {"name": "kfp-launcher"}]
    found = manifests.pod(**more)
    found["spec"]["initContainers"] = inits
    ended = [
        {"name": name, "state": {"terminated": {"exitCode": 0, "startedAt": manifests.time(10), "finishedAt": over}}}
        for name, over in (("main", manifests.time(30)), ("wait", manifests.time(31)))
    ]
    scheduled = manifests.condition("PodScheduled", "True", 1)
    found["status"] |= {"phase": "Succeeded", "containerStatuses": ended, "conditions": [scheduled]}
    return found


def test_an_ended_pod_is_offered_once_and_its_log_moves_the_beginning_of_storing(tmp_path: Path) -> None:
    folder, offered = RunFolder(tmp_path), list[EndedPod]()
    pods = Pods(Journal(folder.recorder(), now=lambda: manifests.at(100)), manifests.at(0), offered.append)
    pods.see("ADDED", executor())
    pods.see("MODIFIED", executor())
    (pod,) = offered

    def phases() -> dict[str, float]:
        last = {(span.phase, span.attempt): span for span in folder.records(Span)}
        lengths: dict[str, float] = {}
        for (phase, _), span in last.items():
            assert span.ended_at is not None
            lengths[phase] = lengths.get(phase, 0.0) + (span.ended_at - span.started_at) / 1e9
        return lengths

    before = phases()
    assert before[RUNNING] == pytest.approx(20, abs=1)
    pods.see_log(pod.uid, LauncherLog(manifests.at(22), manifests.at(29), "", manifests.at(29)))
    after = phases()
    assert after[RUNNING] == pytest.approx(12, abs=0.6)
    assert after[STORING] == pytest.approx(9, abs=0.6)
    assert sum(after.values()) == pytest.approx(sum(before.values()))
    pods.see("MODIFIED", executor())
    assert phases() == after, "a later change of the pod doesn't undo it"
