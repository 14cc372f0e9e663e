"""Two busy loops take a machine's cores: what matters to runs of seconds stays as it was."""

import subprocess
import sys

import numpy as np
import pytest

from tests.support.answering import answering, locustfile

SECONDS = 10.0


@pytest.mark.soak
def test_runs_of_ten_seconds_are_valid_beside_two_busy_loops_with_the_figures_of_a_quiet_machine(locust, tmp_path):
    place, figures = locustfile(tmp_path), []
    for loops in (0, 2):
        busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
        try:
            with answering(SECONDS) as service:
                finished = locust.finish(locust.start(
                    *place, "--headless", "--host", service.url, "--schedule", "constant", "--rate", "8/s", "--for", "20s",
                    "--run-name", f"beside-{loops}", KUBECONFIG=str(tmp_path / "none"),
                ))  # fmt: skip
        finally:
            for each in busy:
                each.kill()
                each.wait()
        assert finished.code == 0, finished.err + finished.out
        report = finished.report()
        assert not [each for each in report["findings"] if each["name"] == "generator-lag" and each["confidence"] > 0.8]
        figures.append(np.median([row["answered_at"] - row["due_at"] for row in finished.rows()]) / 1e9)
    assert figures == pytest.approx([SECONDS, SECONDS], rel=0.02)
