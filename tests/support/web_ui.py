"""Locust's web UI as its own page uses it, without a browser."""

import json
import re
import urllib.error
import urllib.parse
import urllib.request
from contextlib import ExitStack

import pytest

from harness.model.http import HttpAnswer
from tests.support.e2e import free_port, wait_for
from tests.support.servers import serving

TOKEN_HEADER = "X-Pipeswarm-Token"


class WebUi:
    """The web UI at `address`; `process` is the Locust that serves it."""

    def __init__(self, address, process=None):
        self.address = address
        self.process = process
        self.token = ""

    def read(self, path="/", **headers):
        request = urllib.request.Request(self.address + path, headers=headers)
        with urllib.request.urlopen(request, timeout=5) as answer:
            return answer.read()

    def json(self, path, **headers):
        return json.loads(self.read(path, **headers))

    def state(self):
        """What the tab "Pipeline runs" shows."""
        return self.json("/pipeline-runs/state")

    def wait(self):
        page = wait_for(lambda: self.read().decode())
        self.token = re.search(r'data-token="([^"]+)"', page)[1]
        return self

    def post(self, path, body, **headers):
        """The status and the JSON of the answer; `body` is a form, or the bytes of a file."""
        data = body if isinstance(body, bytes) else urllib.parse.urlencode(body).encode()
        request = urllib.request.Request(self.address + path, data, {TOKEN_HEADER: self.token, **headers})
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refused:
            return refused.code, json.load(refused)

    def start(self, **fields):
        """Start a test, as the form does."""
        return self.post("/swarm", {"user_count": 1, "spawn_rate": 1, **fields})

    def verdict(self):
        """That of the test that was started last, as soon as there is one."""
        return wait_for(lambda: self.state()["verdict"])


def start_web_ui(locust, *arguments, **environment):
    """Locust with a web UI, which answers."""
    port = free_port()
    process = locust.start("--web-port", str(port), *arguments, **environment)
    return WebUi(f"http://127.0.0.1:{port}", process).wait()


@pytest.fixture
def listener():
    """Starts servers that keep the Authorization header of each request."""
    with ExitStack() as stack:

        def listen():
            seen = []

            def keep(request):
                seen.append(request.headers.get("Authorization", ""))
                return HttpAnswer(503, b"nothing here")  # a browser shows a page of an error only with a body

            return stack.enter_context(serving(keep)), seen

        yield listen
