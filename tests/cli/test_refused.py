"""What the machine refuses is reported as an error of the configuration, not as an internal error."""

import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli import main
from harness.model.errors import ExitCode


def test_a_file_name_that_is_too_long(capsys: pytest.CaptureFixture[str]) -> None:
    name = "x" * 300
    assert main(["report", name]) == ExitCode.BAD_CONFIG
    message = capsys.readouterr().err
    assert "can't be used: File name too long" in message


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_a_full_disk() -> None:
    with Path("/dev/full").open("w") as out:
        command = [sys.executable, "-P", "-m", "harness.cli", "simulate", "profiles"]
        done = subprocess.run(command, check=False, stdout=out, stderr=subprocess.PIPE, text=True, timeout=60)
    assert (done.returncode, "Traceback" in done.stderr) == (ExitCode.BAD_CONFIG, False)
    assert done.stderr == (
        "error: the disk is full; the result can't be written\n  → free some space, or write to another disk\n"
    )


def test_a_simulated_run_leaves_nothing_to_clean_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["simulate", "run", "--schedule", "burst", "--runs", "2", "--runs-dir", str(tmp_path), "--run-name", "x",
          "--no-report", "--quiet"])  # fmt: skip
    assert main(["cleanup", str(tmp_path / "x")]) == ExitCode.BAD_CONFIG
    assert "simulated" in capsys.readouterr().err
