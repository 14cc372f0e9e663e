"""A distributed test whose processes can be killed, and what must hold afterwards."""

import json
import os
import subprocess
from collections import Counter

from tests.support.answering import locustfile
from tests.support.e2e import BIN, free_port, wait_for


class Cluster:
    """A master and its workers, with their spools in a folder of the test's own."""

    def __init__(self, locust, service, *load, workers=2):
        (locust.place / "tmp").mkdir()
        self.locust, self.bus, self.service = locust, str(free_port()), service
        self.options = locustfile(locust.place)
        self.master = self.start_master(*load, "--expect-workers", str(workers))
        self.workers = [self.start_worker() for _ in range(workers)]

    def start(self, *arguments):
        place = self.locust.place
        return self.locust.start(*arguments, TMPDIR=str(place / "tmp"), KUBECONFIG=str(place / "none"))

    def start_master(self, *load):
        return self.start(
            *self.options, "--headless", "--master", "--master-bind-port", self.bus, "--host", self.service.url,
            "--schedule", "constant", *load,
        )  # fmt: skip

    def start_worker(self):
        return self.start(*self.options[:2], "--worker", "--master-port", self.bus)

    def answered(self, count):
        wait_for(lambda: len(self.service.runs()) >= count)

    def spools(self):
        return sorted((self.locust.place / "tmp").glob("pipeswarm-spool-*"))

    def recover(self, *arguments):
        (folder,) = (self.locust.place / "runs").iterdir()
        done = subprocess.run(
            [BIN / "pipeswarm", "recover", folder, *arguments, "--json"], capture_output=True, text=True, timeout=60,
            check=False, env={**os.environ, "TMPDIR": str(self.locust.place / "tmp")},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout), done.stderr


def demand_each_acknowledged_run_once(finished, service):
    """Rows are those of arrivals, once each, and hold every run whose answer the load has certainly read."""
    rows = finished.rows()
    assert max(Counter(row["seq"] for row in rows).values()) == 1
    assert service.acknowledged() <= {row["run"] for row in rows if row["run"]} <= set(service.runs())
    return rows
