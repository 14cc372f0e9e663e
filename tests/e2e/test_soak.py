"""Minutes of real load: ``pytest -m soak tests/e2e/test_soak.py``; ``make bench-soak`` loads for an hour."""

import threading
import time
from collections import defaultdict
from contextlib import suppress

import numpy as np
import psutil
import pytest

from tests.support.answering import answering, locustfile


class Watch(threading.Thread):
    """Of Locust and the processes that it started, every five seconds: memory, open files, and the folder's sizes."""

    def __init__(self, process, runs_dir):
        super().__init__(daemon=True)
        self._process, self._runs_dir = process, runs_dir
        self.memory = defaultdict(list)  # MiB, by process
        self.sizes, self.live, self.files = [], [], []

    def run(self):
        locust = psutil.Process(self._process.pid)
        while self._process.poll() is None:
            for each in (locust, *locust.children(recursive=True)):
                with suppress(psutil.Error):
                    name = f"{each.pid} {' '.join(each.cmdline()[-6:])}"
                    self.memory[name].append(each.memory_info().rss / 2**20)
            with suppress(OSError, psutil.Error):
                self.files.append(locust.num_fds())
                self.sizes.append(sum(each.stat().st_size for each in self._runs_dir.glob("*/*.jsonl")))
                self.live.append(sum(each.stat().st_size for each in self._runs_dir.glob("*/live.json")))
            time.sleep(5)


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("minutes", "rate"), [(2, 50), (10, 50)])
def test_a_long_load_neither_loses_arrivals_nor_drifts_nor_grows(locust, tmp_path, minutes, rate):
    with answering() as service:
        process = locust.start(
            *locustfile(tmp_path), "--headless", "--host", service.url, "--schedule", "constant", "--rate", f"{rate}/s",
            "--for", f"{minutes}m", "--yes", KUBECONFIG=str(tmp_path / "none"),
        )  # fmt: skip
        watch = Watch(process, tmp_path / "runs")
        watch.start()
        finished = locust.finish(process, timeout=minutes * 60 + 120)
    assert finished.code == 0 or finished.was_late(), finished.err + finished.out
    rows = sorted(finished.rows(), key=lambda row: row["seq"])
    count = minutes * 60 * rate
    assert [row["seq"] for row in rows] == list(range(count))
    assert {row["run"] for row in rows} == set(service.runs()), "arrivals and runs correspond one to one"
    assert finished.report()["ledger"]["succeeded"] == count

    lags_ms = np.array([(row["sent_at"] - row["due_at"]) / 1e6 for row in rows])
    tenth = count // 10
    drift_ms = np.median(lags_ms[-tenth:]) - np.median(lags_ms[:tenth])
    assert drift_ms < 1.0 or finished.was_late(), "no drift, unless others take the machine"
    for name, memory in watch.memory.items():
        steady = memory[len(memory) // 4 : -2]
        if "--findings" in name:  # it reads the newest 100 MB of the records
            assert max(memory) < 600, (name, memory)
        elif len(memory) > 12:  # others begin or end meanwhile
            assert max(steady) < 1.1 * steady[0], (name, memory)
    assert max(watch.files) < count // 10, "connections are reused"
    grown = np.array(watch.sizes[2 : minutes * 11])
    straight = np.polyval(np.polyfit(np.arange(grown.size), grown, 1), np.arange(grown.size))
    assert abs(grown - straight).max() < 0.05 * grown[-1], "files grow evenly"
    assert max(watch.live) < 2 * np.median(watch.live)
    assert "Traceback" not in (finished.folder / "observer.log").read_text() + finished.err
