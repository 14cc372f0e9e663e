"""The web UI serves its own page and nobody else: no site that the user's browser has open, no name, no foreign file."""

import os
import signal
import socket
import urllib.error

import pytest

from tests.support.browser import EVIL, browser, page
from tests.support.e2e import PIPELINE, QUICK, Locust, wait_for
from tests.support.web_ui import TOKEN_HEADER, listener, start_web_ui

__all__ = ["browser", "listener", "page"]

NOBODY = "http://127.0.0.1:9"  # the port of a service that nobody runs
FILES = {
    "in.csv": "id,scenario_name,data_multiplier\n1,a,hunter2\n",
    "stages.yaml": "- {schedule: constant, rate: hunter2, for: 1m}\n",
    "pipeline.yaml": "hunter2: [",
    "profile.yaml": "hunter2: 1\n",
    "report.json": '{"hunter2": 1}',
}


@pytest.fixture(scope="module")
def ui(tmp_path_factory):
    """One Locust for all tests that start no test."""
    started = Locust(tmp_path_factory.mktemp("place"))
    (started.place / "outside.csv").write_text("hunter2")
    files = started.place / "files"
    files.mkdir()
    (files / "in.csv").write_text("id,scenario_name\n1,a\n")
    served = start_web_ui(started, "--host", NOBODY, "--pipeline", PIPELINE, "--web-files", str(files))
    served.files = files
    yield served
    os.killpg(served.process.pid, signal.SIGKILL)
    served.process.wait()


def status(ui, path, **headers):
    try:
        ui.read(path, **headers)
    except urllib.error.HTTPError as refused:
        return refused.code
    return 200


@pytest.mark.parametrize("path", ["/swarm", "/stop", "/stats/reset", "/user", "/pipeline-runs/form/x.csv"])
@pytest.mark.parametrize(
    "headers",
    [{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Referer": "http://evil.example/x"}, {TOKEN_HEADER: "guessed"},
     {"Host": "evil.example:8089", "Origin": "http://evil.example:8089"}],
)  # fmt: skip
def test_nothing_changes_for_another_site(ui, path, headers):
    form = {"user_count": "1", "spawn_rate": "1", "host": "http://evil.example"}
    assert ui.post(path, form, **headers)[0] == 403
    assert ui.json("/stats/requests")["state"] == "ready"
    assert f'"host": "{NOBODY}"' in ui.read().decode()
    assert [path.name for path in ui.files.iterdir()] == ["in.csv"]


@pytest.mark.parametrize(
    "path",
    ["/", "/stats/requests", "/logs", "/metrics", "/pipeline-runs/state", "/pipeline-runs/form", "/no-such-page"],
)
def test_nothing_can_be_read_by_another_site(ui, path):
    assert status(ui, path, Host="evil.example") == 403
    with socket.create_connection(("127.0.0.1", int(ui.address.rpartition(":")[2])), 5) as raw:
        raw.sendall(f"GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\nOrigin: http://evil.example\r\n\r\n".encode())
        answer = raw.makefile("rb").read().lower()
    assert b"access-control-" not in answer
    assert b"cross-origin-resource-policy: same-origin" in answer
    assert b"frame-ancestors 'none'" in answer


@pytest.mark.parametrize(
    ("field", "message"),
    [({"runs_dir": "/tmp/x"}, "--runs-dir can't be set"), ({"token-file": "in.csv"}, "--token-file can't be set"),
     ({"yes": "true"}, "--yes can't be set"), ({"max_runs": "9"}, "--max-runs can't be set"),
     ({"redact": ""}, "--redact can't be set"), ({"html_file": "x.html"}, "--html-file can't be set"),
     ({"csv_prefix": "x"}, "--csv-prefix can't be set"), ({"kube_context": "x"}, "--kube-context can't be set"),
     ({"scenarios": "/etc/shadow"}, "may use no file"), ({"scenarios": "../outside.csv"}, "may use no file"),
     ({"pipeline": "/proc/self/environ"}, "may use no file")],
)  # fmt: skip
def test_the_form_sets_nothing_if_one_of_its_fields_is_refused(ui, field, message):
    code, answer = ui.start(host="http://other.example", **field)
    assert (code, answer["success"]) == (400, False)
    assert message in answer["message"]
    assert ui.json("/stats/requests")["state"] == "ready"
    assert f'"host": "{NOBODY}"' in ui.read().decode()


def test_files_are_uploaded_and_then_listed(ui):
    assert ui.json("/pipeline-runs/form")["scenarios"] == ["in.csv"]
    assert ui.post("/pipeline-runs/form/more.csv", b"id\n") == (200, {"success": True, "name": "uploads/more.csv"})
    assert (ui.files / "uploads/more.csv").read_bytes() == b"id\n"
    assert ui.json("/pipeline-runs/form")["scenarios"] == ["in.csv", "uploads/more.csv"]
    (ui.files / "uploads/more.csv").unlink()
    (ui.files / "uploads").rmdir()
    assert ui.post("/pipeline-runs/form/locust.conf", b"x")[0] == 400
    assert [path.name for path in ui.files.iterdir()] == ["in.csv"]


def test_only_this_machine_reaches_the_web_ui_unless_asked_for_and_then_it_says_so(locust, ui):
    port = int(ui.address.rpartition(":")[2])
    with pytest.raises(ConnectionRefusedError):  # all of 127/8 is this machine; the server has one address of it
        socket.create_connection(("127.0.0.2", port), 5)
    arguments = ("--host", NOBODY, "--pipeline", PIPELINE, "--web-host", "0.0.0.0", "--web-host-name", "load.example")
    open_to_all = start_web_ui(locust, *arguments)
    socket.create_connection(("127.0.0.2", int(open_to_all.address.rpartition(":")[2])), 5).close()
    assert status(open_to_all, "/", Host="load.example") == 200
    assert status(open_to_all, "/", Host="other.example") == 403
    open_to_all.process.terminate()
    told = locust.finish(open_to_all.process).err
    assert "the web UI has no login" in told
    assert "--web-login" in told


def test_no_page_repeats_what_is_in_a_file_that_the_form_named(locust):
    for name, content in FILES.items():
        (locust.place / name).write_text(content)
    ui = start_web_ui(locust, "--simulate", QUICK)
    fields = {"scenarios": "in.csv", "schedule_file": "stages.yaml", "pipeline": "pipeline.yaml", "simulate": "profile.yaml",
              "baseline": "report.json"}  # fmt: skip
    for field, name in fields.items():
        blank = dict.fromkeys(fields, "") | {"simulate": QUICK}
        assert (
            ui.start(**{**blank, "schedule": "stages" if field == "schedule_file" else "spread", field: name})[0] == 400
        )
        verdict = wait_for(lambda name=name: (told := ui.state()["verdict"]) and name in told and told)
        assert "the terminal in which Locust runs shows what is wrong" in verdict
        for path in ("/", "/logs", "/exceptions", "/pipeline-runs/state"):
            assert b"hunter2" not in ui.read(path), (field, path)
    ui.process.terminate()
    told = locust.finish(ui.process).err
    assert "'hunter2' is not an integer" in told


# What a page elsewhere tries: to start a test at a host of its own, to read, to frame.
ATTACK = """
async ([ui, host]) => {
  const form = () => new URLSearchParams({ user_count: 1, spawn_rate: 1, host });
  const tried = (attempt) => attempt.then((answer) => answer.text()).catch(() => "blocked");
  const read = await Promise.all([
    tried(fetch(`${ui}/swarm`, { method: "POST", mode: "no-cors", body: form() })),
    tried(fetch(`${ui}/swarm`, { method: "POST", body: form() })),
    tried(fetch(`${ui}/swarm`, { method: "POST", body: form(), headers: { "X-Pipeswarm-Token": "guessed" } })),
    tried(fetch(`${ui}/pipeline-runs/state`)), tried(fetch(`${ui}/`)), tried(fetch(`${ui}/logs`)),
  ]);
  const frame = document.createElement("iframe");
  frame.name = "frame";
  document.body.append(frame);
  const sent = document.createElement("form");
  Object.assign(sent, { method: "POST", action: `${ui}/swarm`, target: "frame" });
  for (const [name, value] of form()) sent.append(Object.assign(document.createElement("input"), { name, value }));
  document.body.append(sent);
  await new Promise((resolve) => { frame.onload = resolve; sent.submit(); });
  return read.map((text) => text.slice(0, 60));
}
"""


def test_a_page_from_elsewhere_in_the_users_browser_gets_nothing(locust, page, listener):
    (own, at_own), (theirs, at_theirs), (site, _) = listener(), listener(), listener()
    ui = start_web_ui(locust, "--host", own, "--pipeline", PIPELINE, PIPESWARM_TOKEN="s3cret-t0ken")
    here, there = (f"http://{EVIL}:{address.rpartition(':')[2]}" for address in (ui.address, site))
    page.goto(ui.address)
    page.get_by_text("Start new load test").wait_for()
    page.goto(there)
    read = page.evaluate(ATTACK, [ui.address, theirs])
    assert set(read) <= {"blocked", ""}, "no-cors requests are sent, and their answers are opaque"
    page.goto(here)  # the attacker's name now points at this machine
    assert "the web UI is not known as" in page.content()
    state = page.evaluate("fetch('/pipeline-runs/state').then((answer) => answer.text())")
    assert "history" not in state
    assert ui.json("/stats/requests")["state"] == "ready"
    assert (at_own, at_theirs) == ([], [])


HOSTILE = "<img src=x onerror=window.run=1>\x1b]0;owned\x07 \u202egnp.exe"


def test_the_tab_shows_what_a_platform_says_as_text(locust, page):
    ui = start_web_ui(locust, "--host", NOBODY, "--pipeline", PIPELINE)
    finding = {"name": HOSTILE, "title": HOSTILE, "confidence": 0.9, "evidence": [HOSTILE], "fix": HOSTILE}
    state = ui.state() | {
        "load": {"stage": HOSTILE, "load": HOSTILE, "intended": 1}, "observer": {"store_free_bytes": {HOSTILE: 1}},
        "findings": [finding], "warning": HOSTILE, "verdict": f"two\nlines\t{HOSTILE}",
    }  # fmt: skip
    page.route("**/pipeline-runs/state", lambda route: route.fulfill(json=state))
    page.route("**/swarm", lambda route: route.fulfill(json={"success": True}))
    page.goto(ui.address)
    page.get_by_role("button", name="Start").click()
    page.get_by_label("Verdict").wait_for()
    text = page.get_by_role("region", name="Pipeline runs").text_content()
    assert text.count(r"<img src=x onerror=window.run=1>\u{1b}]0;owned\u{7} \u{202e}gnp.exe") == 9
    assert not {"\x1b", "\x07", "\u202e"} & set(text)
    assert "two\nlines\t<img" in text, "line ends stay"
    assert page.evaluate("window.run") is None
