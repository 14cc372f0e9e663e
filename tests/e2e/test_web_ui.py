"""The web UI in a real browser: the form shows Pipeswarm's options, Start runs a test, Stop drains and seals it."""

import re
import shutil
import time
import urllib.request
from contextlib import suppress

import pytest

from harness.model import Submission
from harness.store import RunFolder
from tests.support.e2e import QUICK, free_port, wait_for

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture
def page():
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine: install Debian's package chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        page = browser.new_page(viewport={"width": 1280, "height": 1000})
        yield page
        browser.close()


@pytest.fixture
def ui(locust):
    port = free_port()
    process = locust.start(
        "--web-host",
        "127.0.0.1",
        "--web-port",
        str(port),
        "--simulate",
        QUICK,
        "--fault",
        "api-errors",
        "--over",
        "3m",
        "--runs",
        "360",
    )
    address = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with suppress(OSError):
            urllib.request.urlopen(address, timeout=2)
            break
        time.sleep(0.2)
    return process, address


def start_with_invalid_options(page):
    """The page shows the error in place of the test before."""
    page.get_by_role("button", name="New").click()
    dialog = page.get_by_role("dialog").or_(page.get_by_role("presentation")).last
    dialog.get_by_text("Custom parameters").click()
    dialog.locator("input[name=runs]").fill("many")
    dialog.get_by_role("button", name="Start").click()
    tab = page.get_by_role("region", name="Pipeline runs")
    tab.get_by_text("not started").wait_for(timeout=20_000)
    assert "'many' is not a whole number" in tab.get_by_label("Verdict").inner_text()
    assert not tab.get_by_role("link", name="Open the report").is_visible()


def test_start_runs_a_test_and_stop_drains_it(locust, ui, page, tmp_path):
    process, address = ui
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(address)
    page.get_by_text("Custom parameters").click()
    page.get_by_label("Schedule (").wait_for()
    labels = [text.split(" (")[0] for text in page.locator("label").all_inner_texts() if "(" in text]
    assert labels.index("Schedule") < labels.index("Runs") < labels.index("Pipeline"), (
        "in the order of their declaration"
    )
    assert {"Over", "Rate", "Drain", "Scenarios", "Simulate", "Fault", "Experiment", "Namespace"} <= set(labels)
    assert not any("oken" in label for label in labels), "the page would show a token in plain text"
    page.screenshot(path=tmp_path / "form.png", full_page=True)

    page.get_by_role("button", name="Start").click()
    runs = locust.place / "runs"
    wait_for(lambda: list(runs.glob("*/submissions.jsonl")))
    (folder,) = runs.iterdir()
    page.get_by_role("tab", name="Pipeline runs").click()
    tab = page.get_by_role("region", name="Pipeline runs")
    tab.get_by_text("unanswered").wait_for(timeout=20_000)
    tab.get_by_text("lag p99").wait_for()
    tab.locator(".chart svg").first.wait_for(timeout=20_000)
    assert tab.get_by_text("None found so far").or_(tab.locator(".findings small")).count()
    tab.get_by_text("api-errors").wait_for(timeout=30_000)
    page.screenshot(path=tmp_path / "running.png", full_page=True)
    lines = tab.locator(".chart").get_attribute("aria-label")
    assert re.fullmatch(r"Runs in flight: [\d,]+, ready nodes: \d+", lines), lines
    page.get_by_role("tab", name="Statistics").click()
    page.locator("#pipeline-runs").wait_for(state="hidden")
    page.get_by_role("tab", name="Pipeline runs").click()

    scraped = urllib.request.urlopen(f"{address}/metrics").read().decode()
    assert "pipeswarm_arrivals_intended 360" in scraped.splitlines()

    page.get_by_role("button", name="Stop").click()
    wait_for((folder / "report.html").is_file)
    page.get_by_role("button", name="New").wait_for(timeout=20_000)
    tab.get_by_role("link", name="Open the report").wait_for()
    assert "api-errors" in tab.get_by_label("Verdict").inner_text()
    page.screenshot(path=tmp_path / "stopped.png")
    served = urllib.request.urlopen(f"{address}/pipeline-runs/report.html").read()
    assert served == (folder / "report.html").read_bytes()
    run = RunFolder.open(folder)
    rows = {row.seq for row in run.records(Submission)}
    assert rows == set(range(360)), "every arrival is booked: sent, or missed because of the stop"
    assert run.read_live("observer")
    start_with_invalid_options(page)
    page.screenshot(path=tmp_path / "refused.png")
    assert errors == []
    process.terminate()
    assert locust.finish(process).code is not None
