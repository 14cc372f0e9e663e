"""The report in a real browser: every figure is drawn, nothing is complained of, a phone need not scroll sideways."""

import shutil

import pytest

import reports
from reports.figures import figures
from tests.timelines import burst

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Debian's chromium is not installed")


@pytest.fixture(scope="module")
def page_address(tmp_path_factory):
    story = burst(store_full_from=0.6)
    story.slos = ("failed_ratio < 0.01",)
    folder = story.write(tmp_path_factory.mktemp("runs"))
    return (folder.path / reports.HTML).as_uri(), reports.rebuild(folder)


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        running = play.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        yield running
        running.close()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_the_page_draws_everything_without_a_complaint(browser, page_address, width, scheme):
    address, report = page_address
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme, offline=True)
    page, complaints = context.new_page(), []
    page.on(
        "console", lambda message: complaints.append(message.text) if message.type in {"error", "warning"} else None
    )
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("requestfailed", lambda request: complaints.append(request.url))
    page.goto(address)
    page.wait_for_function("document.documentElement.dataset.drawn")
    plots = page.locator(".plot")
    assert plots.count() == len(figures(report))
    for k in range(plots.count()):
        assert plots.nth(k).locator("svg.main-svg").count() > 0, plots.nth(k).get_attribute("id")
        assert plots.nth(k).get_attribute("aria-label")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.get_by_role("heading", level=1).inner_text() == report.headline
    page.locator("summary").first.press("Enter")
    assert page.locator("details[open]").count() == 1
    context.close()
    assert complaints == []


def test_an_experiment_is_one_page_with_its_searches_and_links(browser, tmp_path):
    from harness.experiment.plan import Experiment, Point, Question, Result
    from reports.experiment_page import Conduct, render

    plan = Experiment(Question.FEWEST_NODES, ("plain", "slow"), (50,), (1, 2, 3, 4), 1)
    results = tuple(
        Result(
            Point(variant, 50, nodes, 0),
            met=nodes > 2,
            values={"makespan (s)": 900.0 / nodes},
            run=f"{variant} {nodes}",
        )
        for nodes in (3, 2)
        for variant in ("plain", "slow")
    )
    links = {place: f"runs/{result.run}/report.html" for place, result in enumerate(results, 1)}
    sentences = ("50 runs need 3 nodes <b>", "slow, 50 runs need 3 nodes")
    page_file = tmp_path / "experiment.html"
    page_file.write_bytes(
        render(Conduct("e", plan, ("p95(run.duration) < 9m",), results, "makespan (s)", links, sentences))
    )
    context = browser.new_context(viewport={"width": 390, "height": 800}, offline=True)
    page, complaints = context.new_page(), []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("requestfailed", lambda request: complaints.append(request.url))
    page.goto(page_file.as_uri())
    page.wait_for_function("document.documentElement.dataset.drawn == 3")
    assert page.locator(".plot svg.main-svg").count() >= 3
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.get_by_text("50 runs need 3 nodes <b>").count() == 1
    assert page.locator("tbody a").first.get_attribute("href") == "runs/plain%203/report.html"
    context.close()
    assert complaints == []
