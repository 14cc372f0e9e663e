"""Ctrl-C or SIGTERM at any moment of a test: exit code 130; recorded data is sealed and marked as interrupted."""

import json
import signal
import socket
import subprocess
import sys

import pytest

from tests.support.e2e import FEW, PIPELINE, QUICK, free_port, wait_for
from tests.support.web_ui import start_web_ui


def stage(place):
    (live,) = place.glob("runs/*/live.json")
    return json.loads(live.read_text()).get("load", {}).get("stage")


def test_while_a_test_is_prepared_nothing_is_left_behind(locust):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        process = locust.start("--headless", "--host", address, "--pipeline", PIPELINE)
        connection, _ = silent.accept()
        process.send_signal(signal.SIGINT)
        finished = locust.finish(process, 20)
        connection.close()
    assert (finished.code, finished.folder) == (130, None), finished.err
    assert "exit code 130" in finished.out
    assert "Traceback" not in finished.err


@pytest.mark.fault("none")
@pytest.mark.parametrize(
    ("number", "moment", "load"),
    [
        (signal.SIGTERM, "dispatching", ("--schedule", "constant", "--rate", "2/s", "--for", "10m")),
        (signal.SIGINT, "draining", ("--schedule", "burst", "--runs", "20")),
    ],
    ids=["SIGTERM while dispatching", "SIGINT while draining"],
)
def test_an_interrupted_test_is_sealed_as_interrupted(locust, number, moment, load):
    process = locust.start("--headless", "--simulate", QUICK, *FEW, *load)
    wait_for(lambda: list(locust.place.glob("runs/*/live.json")) and stage(locust.place) == moment)
    process.send_signal(number)
    finished = locust.finish(process)
    assert finished.code == 130, finished.err
    assert (finished.folder / "report.html").is_file()
    report = finished.report()
    assert report["validity"]["verdict"] == "INVALID"
    assert any("interrupted" in reason for reason in report["validity"]["reasons"])
    assert len(finished.rows()) == report["ledger"]["intended"] > 0, "unsent arrivals are booked as missed"
    assert "Traceback" not in finished.err


@pytest.mark.fault("none")
def test_while_the_report_is_written_it_is_completed(locust):
    process = locust.start("--headless", "--simulate", QUICK, *FEW, "--runs", "3", "--over", "1s")
    wait_for(lambda: list(locust.place.glob("runs/*/tables")))
    process.send_signal(signal.SIGINT)
    finished = locust.finish(process)
    assert finished.code == 130, finished.err
    assert finished.report()["ledger"]["succeeded"] == 3
    assert not any("interrupted" in reason for reason in finished.report()["validity"]["reasons"])


def test_the_web_ui_of_a_master_with_a_running_test(locust, platform):
    bus = str(free_port())
    ui = start_web_ui(
        locust, "--master", "--master-bind-port", bus, "--host", platform.url, "--pipeline", PIPELINE, *FEW,
        "--schedule", "constant", "--rate", "2/s", "--for", "10m",
    )  # fmt: skip
    worker = locust.start("--worker", "--master-port", bus)
    wait_for(lambda: ui.json("/stats/requests")["workers"])
    assert ui.start(host=platform.url)[1]["success"]
    wait_for(lambda: list(locust.place.glob("runs/*/submissions.jsonl")))
    ui.process.send_signal(signal.SIGINT)
    finished = locust.finish(ui.process)
    assert finished.code == 130, finished.err
    assert any("interrupted" in reason for reason in finished.report()["validity"]["reasons"])
    assert len(finished.rows()) == 1200
    worker.wait(30)


@pytest.mark.soak
def test_sigterm_of_a_headless_master_is_no_time_limit(locust):
    bus, runs = str(free_port()), ("--schedule", "constant", "--rate", "2/s", "--for", "10m")
    master = locust.start(
        "--headless", "--master", "--master-bind-port", bus, "--expect-workers", "1", "--simulate", QUICK, *FEW, *runs
    )
    worker = locust.start("--worker", "--master-port", bus)
    wait_for(lambda: list(locust.place.glob("runs/*/submissions.jsonl")))
    master.send_signal(signal.SIGTERM)
    finished = locust.finish(master)
    assert finished.code == 130, finished.err
    assert any("interrupted" in reason for reason in finished.report()["validity"]["reasons"])
    worker.wait(30)


# Ctrl-C at the moment this module is imported.
INTERRUPTED_AT = """
import sys

class CtrlC:
    def find_spec(self, name, path=None, target=None):
        if name == "{module}":
            raise KeyboardInterrupt

sys.meta_path.insert(0, CtrlC())
"""


@pytest.mark.parametrize(
    ("command", "module"),
    [
        ("harness.cli", "harness.model.errors"),
        ("harness.cli", "harness.cli.loading.options"),
        ("generators.cli", "harness.model.errors"),
        ("generators.cli", "generators.request"),
    ],
)
def test_while_a_command_line_tool_starts(tmp_path, command, module):
    code = f"{INTERRUPTED_AT.format(module=module)}\nfrom {command} import main\nsys.exit(main())"
    words = ["load", "kfp", "--options"] if command == "harness.cli" else []
    done = subprocess.run(
        [sys.executable, "-c", code, *words], check=False, cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 130
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


SIGNALLED = """
import os, signal
from locust import events

@events.init_command_line_parser.add_listener
def ctrl_c(**_):
    os.kill(os.getpid(), signal.SIGINT)
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [(INTERRUPTED_AT.format(module="harness.model.slo"), ""), ("", SIGNALLED)],
    ids=["its imports", "its options"],
)
def test_while_the_locustfile_is_read(locust, before, after):
    ours = locust.locustfile.read_text()
    locust.locustfile = locust.place / "mine.py"
    locust.locustfile.write_text(f"{before}\n{ours}\n{after}")
    finished = locust.finish(locust.start("--headless"), 30)
    assert (finished.code, finished.folder) == (130, None)
    assert "Traceback" not in finished.err


def test_while_a_master_waits_for_workers(locust):
    master = locust.start("--headless", "--master", "--expect-workers", "2", "--master-bind-port", str(free_port()))
    assert any("Waiting for workers" in line for line in master.stderr)
    master.send_signal(signal.SIGINT)
    finished = locust.finish(master, 30)
    assert (finished.code, finished.folder) == (130, None)
    assert "Traceback" not in finished.err
