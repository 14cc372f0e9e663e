"""The example of a custom platform in docs/load.md, exactly as documented."""

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from tests.support.e2e import ROOT


class Jobs(BaseHTTPRequestHandler):
    """A service that answers with the result, and rejects every fifth request."""

    protocol_version = "HTTP/1.1"
    names: ClassVar[list[str]] = []

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.names.append(asked["name"])
        good = len(self.names) % 5 != 0
        body = json.dumps({"id": f"job-{len(self.names)}"}).encode() if good else b"no room"
        self.send_response(200 if good else 503)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def service():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Jobs)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


def test_the_documented_example_loads_a_platform_of_its_own(locust, tmp_path, service):
    platform, locustfile = re.findall(r"```python\n(.*?)```", (ROOT / "docs/load.md").read_text(), re.DOTALL)
    assert max(len(platform.splitlines()), len(locustfile.splitlines())) <= 20
    (tmp_path / "jobs.py").write_text(platform)
    (tmp_path / "load.py").write_text(locustfile)
    (tmp_path / "few.csv").write_text("id,scenario_name\n" + "".join(f"{k},s\n" for k in range(20)))
    nowhere = locust.headless("-f", str(tmp_path / "load.py"), "--scenarios", "few.csv")
    assert nowhere.code == 2, nowhere.err
    assert "JOBS_ENDPOINT" in nowhere.err
    finished = locust.headless(
        "-f", str(tmp_path / "load.py"), "--scenarios", "few.csv", "--over", "2s", JOBS_ENDPOINT=service,
        KUBECONFIG=str(tmp_path / "none"),
    )  # fmt: skip
    assert finished.code in {3, 4}, finished.err + finished.out
    outcomes = [row["outcome"] for row in finished.rows()]
    assert (outcomes.count("accepted"), outcomes.count("rejected")) == (16, 4)
    assert sorted(Jobs.names[-20:]) == sorted(f"{k}-s" for k in range(20))  # of the last try
    ledger = finished.report()["ledger"]
    assert ledger["in_flight"] == 0, ledger
    assert (finished.folder / "observer.log").read_text().count("Traceback") == 0
