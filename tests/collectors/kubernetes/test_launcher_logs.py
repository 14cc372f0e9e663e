"""What is read from a launcher's log. The lines are written after the launcher's source, not recorded."""

import pytest

from harness.collectors.kubernetes.launcher_logs import LauncherLog, ended_pod, read_log
from harness.collectors.kubernetes.timestamps import stamp

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
