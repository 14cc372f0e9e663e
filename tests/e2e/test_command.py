"""A command as a platform: Locust, real processes, the observer and the report."""

import sys

from tests.support.e2e import ROOT

STEP = """
import json, subprocess, sys
if sys.argv[1] == "fails":
    sys.exit("no such table")
if sys.argv[1] == "leaves":
    subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(60)"])
print(json.dumps({"phase": "read", "seconds": 0.01}))
"""


def test_processes_are_runs_with_a_ledger_slos_phases_and_errors(locust, tmp_path):
    (tmp_path / "step.py").write_text(STEP)
    (tmp_path / "kinds.csv").write_text("id,scenario_name,kind\n1,a,works\n2,b,fails\n3,c,leaves\n")
    finished = locust.headless(
        "-f", str(ROOT / "locustfiles/command.py"), "--command", f"{sys.executable} -S step.py {{kind}}",
        "--scenarios", "kinds.csv", "--over", "1s", "--slo", "failed_ratio < 10%", "--slo", "max(run.duration) < 1m",
    )  # fmt: skip
    assert finished.code == 3, finished.err
    report = finished.report()
    counts = report["ledger"]
    assert (counts["intended"], counts["succeeded"], counts["failed"], counts["in_flight"]) == (3, 2, 1, 0)
    assert [slo["state"] for slo in report["slos"]] == ["failed", "met"]
    assert [error["message"] for error in report["errors"]] == ["exit code <n>: no such table"]
    assert {phase["name"] for phase in report["processes"]["phases"]} == {"read", "rest of step.py"}
    assert report["processes"]["remarks"] == [["a process was left behind and ended", 1]]
    assert "cluster" not in finished.err, "nobody expects a command to run on one"
