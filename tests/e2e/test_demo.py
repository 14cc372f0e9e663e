"""``make demo``, as a newcomer runs it: the planted fault is found and the commands that mend it are named."""

import json
import os
import subprocess

import pytest

from tests.e2e.conftest import ROOT
from tests.support.punctuality import give_up_if_the_machine_is_late


@pytest.mark.timeout(300)
def test_the_demo_finds_the_full_store_and_says_how_to_mend_it():
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("LOCUST_", "PIPESWARM_", "KF_", "MAKE"))}
    for last in (False, True):
        before = set((ROOT / "runs").glob("*"))
        done = subprocess.run(
            ["make", "--no-print-directory", "demo"],
            cwd=ROOT,
            env=clean,
            capture_output=True,
            text=True,
            check=False,
            timeout=140,
        )
        if "arrivals left late" not in done.stdout:  # this machine may be too busy, and the verdict says so
            break
        give_up_if_the_machine_is_late(last=last)
    assert done.returncode == 0, done.stdout + done.stderr
    (folder,) = set((ROOT / "runs").glob("*")) - before
    assert str(folder.relative_to(ROOT) / "report.html") in done.stdout
    assert "exit code 3: SLO missed" in done.stdout
    report = json.loads((folder / "report.json").read_text())
    assert report["validity"]["verdict"] == "VALID", report["validity"]
    assert report["ledger"]["intended"] == 200
    first = report["findings"][0]
    assert first["name"] == "store-full"
    commands = "\n".join(first["commands"])
    assert "kubectl scale" in commands
    assert "kubectl patch pvc seaweedfs-pvc" in commands
    assert first["evidence"]
    assert "kubectl patch pvc seaweedfs-pvc" in done.stdout
