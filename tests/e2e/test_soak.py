"""Minutes of real load at 50/s: ``pytest -m soak tests/e2e/test_soak.py``."""

import re
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from tests.support.answering import answering, locustfile

RATE = 50


class Watch(threading.Thread):
    """Memory (MiB) and open files of a process, every five seconds."""

    def __init__(self, process):
        super().__init__(daemon=True)
        self._process, self.memory, self.files = process, [], []

    def run(self):
        proc = Path(f"/proc/{self._process.pid}")
        while self._process.poll() is None:
            try:
                status, files = (proc / "status").read_text(), len(list((proc / "fd").iterdir()))
            except OSError:
                return
            if resident := re.search(r"VmRSS:\s+(\d+)", status):
                self.memory.append(int(resident[1]) / 1024)
                self.files.append(files)
            time.sleep(5)


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("minutes", [2, 10])
def test_a_load_of_minutes_neither_loses_arrivals_nor_drifts_nor_grows(locust, tmp_path, minutes):
    with answering() as service:
        process = locust.start(
            *locustfile(tmp_path), "--headless", "--host", service.url, "--schedule", "constant", "--rate", f"{RATE}/s",
            "--for", f"{minutes}m", "--yes", KUBECONFIG=str(tmp_path / "none"),
        )  # fmt: skip
        watch = Watch(process)
        watch.start()
        finished = locust.finish(process, timeout=minutes * 60 + 120)
    assert finished.code == 0 or finished.was_late(), finished.err + finished.out
    rows = sorted(finished.rows(), key=lambda row: row["seq"])
    count = minutes * 60 * RATE
    assert [row["seq"] for row in rows] == list(range(count))
    assert {row["run"] for row in rows} == set(service.runs()), "arrivals and runs correspond one to one"
    assert finished.report()["ledger"]["succeeded"] == count

    lags_ms = np.array([(row["sent_at"] - row["due_at"]) / 1e6 for row in rows])
    tenth = count // 10
    assert abs(np.median(lags_ms[-tenth:]) - np.median(lags_ms[:tenth])) < 1.0, "no drift"
    steady = len(watch.memory) // 4
    assert max(watch.memory[steady:]) < 1.1 * watch.memory[steady], watch.memory
    assert max(watch.files) < 200, "connections are reused: there were thousands of requests"
    assert "Traceback" not in (finished.folder / "observer.log").read_text() + finished.err
