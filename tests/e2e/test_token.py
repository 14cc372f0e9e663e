"""The bearer token is sent only to the origin it was given for, whatever host is entered in the web form."""

import json
import threading
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.support.e2e import ROOT, free_port, wait_for

SECRET = "s3cret-t0ken"


@pytest.fixture
def listener():
    """Starts servers that keep the Authorization header of each request."""
    servers = []

    def listen():
        seen = []

        class Keep(BaseHTTPRequestHandler):
            def do_GET(self):
                seen.append(self.headers.get("Authorization", ""))
                self.send_error(503)

            do_POST = do_GET  # noqa: N815  # the name that http.server looks for

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Keep)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_address[1]}", seen

    yield listen
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("given", ["option", "file", "nothing"])
def test_another_host_from_the_web_form_gets_no_token_and_the_page_warns(locust, listener, given):
    (own, at_own), (foreign, at_foreign), port = listener(), listener(), free_port()
    (locust.place / "token").write_text(SECRET)
    credentials = ["--token-file", str(locust.place / "token")] if given == "file" else []
    secrets = {} if given == "file" else {"PIPESWARM_TOKEN": SECRET}
    host = [] if given == "nothing" else ["--host", own]
    pipeline = ["--pipeline", str(ROOT / "harness/targets/training.yaml")]
    locust.start("--web-host", "127.0.0.1", "--web-port", str(port), *pipeline, *host, *credentials, **secrets)

    def get(path):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.read()

    def start(host):
        form = {"user_count": "1", "spawn_rate": "1", "host": host, "token-file": str(locust.place / "token")}
        body = urllib.parse.urlencode({**form, "token_file": form["token-file"]}).encode()
        urllib.request.urlopen(f"http://127.0.0.1:{port}/swarm", body, timeout=5).close()

    wait_for(lambda: get("/"))
    start(foreign)
    wait_for(lambda: at_foreign)
    state = wait_for(lambda: (told := json.loads(get("/pipeline-runs/state")))["verdict"] and told)
    assert set(at_foreign) == {""}
    assert "gets no bearer token" in state["warning"]
    assert foreign in state["warning"]
    if given != "nothing":
        start(own)
        wait_for(lambda: at_own)
        assert set(at_own) == {f"Bearer {SECRET}"}, "the host given on the command line gets it"
        assert json.loads(get("/pipeline-runs/state"))["warning"] == ""
