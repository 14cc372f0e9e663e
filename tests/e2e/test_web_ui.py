"""The web UI in a real browser: the form shows Pipeswarm's options, Start runs a test, Stop drains and seals it."""

import re

from harness.model import Submission
from harness.store import RunFolder
from tests.support.browser import browser, page
from tests.support.e2e import QUICK, wait_for
from tests.support.web_ui import start_web_ui

__all__ = ["browser", "page"]


def start_with_invalid_options(page):
    """The error is shown beside Start, and in place of the test before."""
    page.get_by_role("button", name="New").click()
    dialog = page.get_by_role("dialog").or_(page.get_by_role("presentation")).last
    dialog.locator("input[name=runs]").fill("many")
    dialog.get_by_role("button", name="Start").click()
    dialog.get_by_text("Runs: 'many' is not a whole number").wait_for(timeout=20_000)
    page.keyboard.press("Escape")
    tab = page.get_by_role("region", name="Pipeline runs")
    tab.get_by_text("not started").wait_for(timeout=20_000)
    assert "'many' is not a whole number" in tab.get_by_label("Verdict").inner_text()
    assert not tab.get_by_role("link", name="Open the report").is_visible()


def choose_schedules_and_objectives(page):
    """Only what the chosen schedule reads is shown; a list has a line per entry, and is sent as one text."""
    schedule, rate, over = (
        page.get_by_label("Schedule", exact=True),
        page.locator("input[name=rate]"),
        page.locator("input[name=over]"),
    )
    schedule.select_option("poisson")
    rate.wait_for()
    assert not over.is_visible()
    schedule.select_option("spread")
    over.wait_for()
    assert not rate.is_visible()
    page.get_by_role("textbox", name="Slo").fill("failed_ratio < 0.9\np95(run.duration) < 20m")
    assert page.locator("input[name=slo]").input_value() == "failed_ratio < 0.9; p95(run.duration) < 20m"


SECTIONS = ("Platform", "Pipeline", "Records and limits")


def open_sections(page):
    for name in SECTIONS:
        page.locator(f"form button[data-group='{name}']:not([aria-expanded=true])").click()
        page.locator(f"form button[data-group='{name}'][aria-expanded=true]").wait_for()


def check_groups(page):
    """Five things are asked; all else is folded in sections, which name what is set; the simulated platform is named."""
    schedule = page.get_by_label("Schedule", exact=True)
    schedule.wait_for()
    page.get_by_role("button", name=re.compile("Platform.*fault: api-errors")).wait_for()
    shown = page.locator("form input[name]:visible, form select[name]:visible, form textarea:visible")
    assert shown.count() == 8, "address, schedule with three fields, pipeline, scenarios, objectives with their list"
    users = page.locator("input[name=userCount]")
    assert not users.is_visible()
    schedule.select_option("concurrency")
    users.wait_for()
    schedule.select_option("spread")
    open_sections(page)
    order = page.locator("form h3.pipeline-runs-group button, form label").all_inner_texts()
    assert [text for text in order if text in SECTIONS] == ["Pipeline", *SECTIONS]
    for field, value in {"fault": "store-full", "simulate": "demo", "param_mode": "columns"}.items():
        offered = page.locator(f"datalist#files-{field} option[value={value}]")
        offered.wait_for(state="attached")
    places = [
        order.index(name)
        for name in ("Schedule", "Runs", "Pipeline", "Slo", "Platform", "Simulate", "Records and limits", "Drain")
    ]
    assert places == sorted(places)
    assert {"Over", "Drain", "Scenarios", "Fault", "Experiment", "Namespace"} <= {*order}
    page.get_by_text(f"Simulated platform '{QUICK}'").wait_for()


def test_start_runs_a_test_and_stop_drains_it(locust, page, tmp_path):
    ui = start_web_ui(locust, "--simulate", QUICK, "--fault", "api-errors", "--over", "3m", "--runs", "360")
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(ui.address)
    check_groups(page)
    choose_schedules_and_objectives(page)
    labels = page.locator("form label").all_inner_texts()
    assert not any("oken" in label for label in labels), "the page would show a token in plain text"
    page.screenshot(path=tmp_path / "form.png", full_page=True)

    page.get_by_role("button", name="Start").click()
    runs = locust.place / "runs"
    wait_for(lambda: list(runs.glob("*/submissions.jsonl")))
    (folder,) = runs.iterdir()
    tab = page.get_by_role("region", name="Pipeline runs")  # Start leads to it
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

    scraped = ui.read("/metrics").decode()
    assert "pipeswarm_arrivals_intended 360" in scraped.splitlines()

    page.get_by_role("button", name="Stop").click()
    wait_for((folder / "report.html").is_file)
    page.get_by_role("button", name="New").wait_for(timeout=20_000)
    tab.get_by_role("link", name="Open the report").wait_for()
    assert "api-errors" in tab.get_by_label("Verdict").inner_text()
    page.screenshot(path=tmp_path / "stopped.png")
    served = ui.read("/pipeline-runs/report.html")
    assert served == (folder / "report.html").read_bytes()
    run = RunFolder.open(folder)
    rows = {row.seq for row in run.records(Submission)}
    assert rows == set(range(360)), "every arrival is booked: sent, or missed because of the stop"
    assert run.read_live("observer")
    with page.expect_popup() as opened:
        tab.get_by_role("link", name="Open the report").click()
    assert opened.value.evaluate("window.origin") == "null", "its scripts can't act as the page that opened it"
    start_with_invalid_options(page)
    page.screenshot(path=tmp_path / "refused.png")
    assert errors == []
    ui.process.terminate()
    assert locust.finish(ui.process).code is not None


def test_the_form_offers_files_of_the_folder_and_uploads_others(locust, page, tmp_path):
    (locust.place / "specs").mkdir()
    (locust.place / "specs/mine.csv").write_text("id,scenario_name,data_multiplier\n1,a,many\n")
    (tmp_path / "more.csv").write_text("id,scenario_name\n1,a\n2,b\n")
    ui = start_web_ui(locust, "--simulate", QUICK, "--over", "1s", "--web-files", "specs")
    page.goto(ui.address)
    field = page.locator("input[name=scenarios]")
    offered = page.locator("datalist#files-scenarios option")
    offered.first.wait_for(state="attached")
    assert field.get_attribute("list") == "files-scenarios"
    assert [each.get_attribute("value") for each in offered.all()] == ["mine.csv"]
    page.get_by_label("Schedule", exact=True).select_option("stages")
    open_sections(page)
    for name in ("schedule file", "scenarios", "baseline", "simulate", "pipeline"):
        page.get_by_role("button", name=f"Upload a file for {name}").wait_for()
    page.screenshot(path=tmp_path / "form.png", full_page=True)
    page.get_by_label("Schedule", exact=True).select_option("spread")

    field.fill("../secret.csv")
    page.get_by_role("button", name="Start").click()
    page.get_by_text("the form may use no file '../secret.csv'").wait_for()
    page.screenshot(path=tmp_path / "refused.png", full_page=True)

    with page.expect_file_chooser() as chosen:
        page.get_by_role("button", name="Upload a file for scenarios").click()
    chosen.value.set_files(tmp_path / "more.csv")
    page.wait_for_function("document.querySelector('input[name=scenarios]').value === 'uploads/more.csv'")
    assert [each.get_attribute("value") for each in offered.all()] == ["mine.csv", "uploads/more.csv"]
    page.screenshot(path=tmp_path / "uploaded.png", full_page=True)
    page.get_by_role("button", name="Start").click()
    wait_for(lambda: ui.state()["load"].get("intended") == 2)


def test_a_page_of_a_locust_that_was_restarted_says_so(locust, page):
    ui = start_web_ui(locust, "--simulate", QUICK)
    page.goto(ui.address)
    page.get_by_text("Custom parameters").wait_for()
    page.route("**/swarm", lambda route: route.continue_(headers={**route.request.headers, "x-pipeswarm-token": "old"}))
    page.get_by_role("button", name="Start").click()
    page.get_by_text("reload the page: Locust was restarted").wait_for()
