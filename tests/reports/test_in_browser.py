"""The report in a real browser: all figures drawn, no console errors, no sideways scrolling on a phone."""

import re
import shutil
import subprocess
from itertools import pairwise

import numpy as np
import pytest

from harness.cli.look.rebuilding import rebuild
from harness.store.folder import REPORT_HTML
from reports.figures import figures
from tests.support.browser import CHROMIUM, browser
from tests.support.e2e import ROOT
from tests.support.poisoned import NAMED, report_of
from tests.support.timelines import burst

__all__ = ["browser", "report_of"]

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Debian's chromium is not installed")


@pytest.fixture(scope="module")
def page_address(tmp_path_factory):
    story = burst(store_full_from=0.6)
    story.slos = ("failed_ratio < 0.01",)
    folder = story.write(tmp_path_factory.mktemp("runs"))
    return (folder.path / REPORT_HTML).as_uri(), rebuild(folder)


@pytest.fixture
def opened(browser):
    """Opens a page in a context of its own, without a network unless asked for, and waits for its plots."""
    contexts = []

    def opened(address, *, drawn=True, listening=(), **how):
        contexts.append(
            context := browser.new_context(**{"viewport": {"width": 1280, "height": 800}, "offline": True, **how})
        )
        page = context.new_page()
        for event, listener in listening:
            page.on(event, listener)
        page.goto(address)
        page.wait_for_function(f"document.documentElement.dataset.drawn{'' if drawn is True else f' == {drawn}'}")
        return page

    yield opened
    for context in contexts:
        context.close()


def complaining(complaints):
    """Listeners that note what a browser complains about."""
    return (
        ("console", lambda message: complaints.append(message.text) if message.type in {"error", "warning"} else None),
        ("pageerror", lambda error: complaints.append(str(error))),
        ("requestfailed", lambda request: complaints.append(request.url)),
    )


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_the_page_draws_every_figure_without_console_errors(opened, page_address, width, scheme):
    address, report = page_address
    complaints = []
    page = opened(
        address, listening=complaining(complaints), viewport={"width": width, "height": 800}, color_scheme=scheme
    )
    plots = page.locator(".plot")
    assert plots.count() == len(figures(report))
    for k in range(plots.count()):
        assert plots.nth(k).locator("svg.main-svg").count() > 0, plots.nth(k).get_attribute("id")
        assert plots.nth(k).get_attribute("aria-label")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.get_by_role("heading", level=1).inner_text() == report.headline
    page.locator("summary").first.press("Enter")
    assert page.locator("details[open]").count() == 1
    assert complaints == []


# Of each element with text of its own: its contrast against what is painted behind it (WCAG 2.2, 1.4.3).
CONTRASTS = """() => {
  const channel = c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const parts = color => color.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const behind = element => {
    for (; element; element = element.parentElement) {
      const [r, g, b, a = 1] = parts(getComputedStyle(element).backgroundColor);
      if (a === 1) return [r, g, b];
    }
    return [255, 255, 255];
  };
  return [...document.querySelectorAll("body *:not(script, style, svg, svg *)")]
    .filter(e => [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) && e.checkVisibility())
    .map(e => {
      const [a, b] = [light(parts(getComputedStyle(e).color)), light(behind(e))];
      return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), e.tagName + ": " + e.textContent.trim().slice(0, 40)];
    });
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_accessible(opened, page_address, scheme):
    address, _ = page_address
    page = opened(address, color_scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
    contrasts = page.evaluate(CONTRASTS)
    assert len(contrasts) > 50
    assert [text for ratio, text in contrasts if ratio < 4.5] == []
    for landmark in ("banner", "main", "contentinfo"):
        assert page.get_by_role(landmark).count() == 1
    levels = page.eval_on_selector_all("h1, h2, h3, h4", "all => all.map(each => +each.tagName[1])")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later <= earlier + 1 for earlier, later in pairwise(levels))
    assert page.get_by_role("figure", name="").count() == page.locator("figure").count()
    label = "e => document.getElementById(e.getAttribute('aria-labelledby'))?.textContent"
    names = page.eval_on_selector_all("figure", f"all => all.map({label})")
    assert all(names)
    assert len(set(names)) == len(names)
    assert page.eval_on_selector_all("[id]", "all => new Set(all.map(e => e.id)).size === all.length")
    assert page.eval_on_selector_all("button", "all => all.every(e => e.textContent.trim() || e.ariaLabel)")
    assert page.eval_on_selector_all("section", f"all => all.every({label})")


# Names of figures some of whose points are outside of the axes that they are drawn on.
OUTSIDE = """() => [...document.querySelectorAll('.plot')].filter(plot => plot.data.some(trace => {
  const axes = [['x', trace.xaxis || 'x'], ['y', trace.yaxis || 'y']];
  return trace.type === 'scatter' && axes.some(([name, id]) => {
    const [low, high] = [...plot.ranges[id]].sort((a, b) => a - b), room = (high - low) * 1e-6;
    return trace[name].some(value => value < low - room || value > high + room);
  });
})).map(plot => plot.id)"""


def test_the_verdict_and_its_cause_come_first_then_links_to_all_sections_and_details_within_four_screens(
    opened, page_address
):
    address, report = page_address
    page = opened(address)
    banner = page.locator(".banner")
    assert banner.inner_text().split("\n\n") == ["FAILED failed_ratio < 0.01", report.headline]
    assert banner.evaluate("e => getComputedStyle(e).backgroundColor") == "rgb(173, 47, 36)"
    assert page.locator("h1").evaluate("e => e.getClientRects().length === 1 && e.clientHeight < 30"), "one line"
    linked = page.eval_on_selector_all("nav a", "all => all.map(e => e.getAttribute('href').slice(1))")
    assert linked == page.eval_on_selector_all("main section", "all => all.map(e => e.id)")
    assert page.locator("#details").bounding_box()["y"] < 4 * 800
    assert page.evaluate(OUTSIDE) == []
    page.set_viewport_size({"width": 700, "height": 800})
    broken = "all => all.filter(e => e.getBoundingClientRect().height > 30).map(e => e.textContent)"
    assert page.locator("pre .unbroken").count() > 5
    assert page.eval_on_selector_all(".unbroken", broken) == []
    page.wait_for_function("document.documentElement.scrollWidth <= innerWidth")  # plots are drawn anew


def test_the_paper_has_at_most_eight_pages_and_no_torn_figure(opened, page_address):
    address, _ = page_address
    page = opened(address)
    began = "began = document.querySelector('.finding.first').getBoundingClientRect().top"
    page.evaluate(f"matchMedia('print').addEventListener('change', e => {{ if (e.matches) {began} }})")
    assert len(re.findall(rb"/Type\s*/Page\b", page.pdf(prefer_css_page_size=True))) <= 8
    assert page.evaluate("began") < 1031 - 100
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 703, "height": 1031})  # what the margins leave of A4
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    tall = "all => all.filter(e => e.offsetHeight > 1031 || getComputedStyle(e).breakInside !== 'avoid')"
    assert page.eval_on_selector_all("figure", f"all => ({tall})(all).length") == 0
    first = page.locator(".finding.first")
    assert first.evaluate("e => getComputedStyle(e).breakInside") == "auto", "it may begin on the first page"


def ink_on_the_first_page(pdf):
    """How far down its content area (A4 with margins of 12 mm) something is printed, as a fraction."""
    program = shutil.which("pdftoppm")
    if program is None:
        pytest.skip("there is no program 'pdftoppm' (Debian's package poppler-utils has it)")
    done = subprocess.run([program, "-gray", "-r", "40", "-l", "1"], input=pdf, stdout=subprocess.PIPE, check=True)
    width, height = map(int, done.stdout.split(maxsplit=3)[1:3])  # of a PGM: P5, width, height, 255
    rows = np.frombuffer(done.stdout[-width * height :], np.uint8).reshape(height, width)
    margin = 12 / 297 * height
    return (np.flatnonzero((rows < 235).any(axis=1))[-1] - margin) / (height - 2 * margin)


@pytest.mark.parametrize(
    "story",
    [{"store_full_from": 0.6}, {"count": 60}, {"count": 6, "pool": 2}],
    ids=["failed", "waits", "nothing found"],
)
def test_the_first_page_of_paper_is_full_and_the_screen_is_as_before(opened, tmp_path, story):
    folder = burst(**story).write(tmp_path)
    rebuild(folder)
    page = opened((folder.path / REPORT_HTML).as_uri())
    order = "[...document.querySelectorAll('main section')].map(e => e.id)"
    height = "document.getElementById('plot-throughput').offsetHeight"
    before = page.evaluate(f"[{order}, {height}]")
    assert ink_on_the_first_page(page.pdf(prefer_css_page_size=True)) > 0.95
    page.wait_for_function(f"before => JSON.stringify([{order}, {height}]) === JSON.stringify(before)", arg=before)


def test_sections_that_only_unfold_are_not_printed(opened, tmp_path):
    folder = burst(6, pool=2).write(tmp_path)
    rebuild(folder)
    page = opened((folder.path / REPORT_HTML).as_uri())
    page.emulate_media(media="print")
    heights = "all => all.filter(e => e.checkVisibility()).map(e => e.offsetHeight)"
    assert min(page.eval_on_selector_all("main > section", heights)) > 50


def test_touch_over_a_plot_scrolls_the_page(opened, page_address):
    address, _ = page_address
    page = opened(address, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page.locator("#plot-pods").evaluate("e => e.scrollIntoView({block: 'center', behavior: 'instant'})")
    page.wait_for_function("document.elementFromPoint(200, 420).closest('svg.main-svg') !== null")
    before = page.evaluate("scrollY")
    finger = page.context.new_cdp_session(page)
    finger.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": 200, "y": 420}]})
    for y in range(400, 200, -20):
        finger.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [{"x": 200, "y": y}]})
    finger.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    page.wait_for_function("before => scrollY > before + 50", arg=before, timeout=5000)
    assert page.locator("#plot-pods .plot-button").count() == 3


def test_a_figure_zooms_by_keyboard(opened, page_address):
    address, _ = page_address
    page = opened(address)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the diagnosis"
    seen: list[str] = []
    while "plot-pods" not in seen and len(seen) < 60:
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.id"))
    assert seen.index("plot-throughput") < seen.index("plot-phases") < seen.index("plot-pods")
    shown = "document.getElementById('plot-pods').layout.xaxis.range"
    low, high = page.evaluate(shown)
    page.keyboard.press("+")
    assert page.evaluate(shown) == pytest.approx([low + (high - low) / 4, high - (high - low) / 4])
    page.keyboard.press("ArrowRight")
    assert page.evaluate(shown) == pytest.approx([low + 3 / 8 * (high - low), high - (high - low) / 8])
    page.keyboard.press("0")
    assert page.evaluate(shown) == pytest.approx([low, high])


def test_collapsed_findings_are_printed(opened, page_address):
    address, report = page_address
    page = opened(address)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    others = page.locator("#diagnosis details")
    assert others.count() == len(report.diagnosis.findings) - 1
    assert page.locator("#diagnosis details[open]").count() == others.count()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("#diagnosis details[open]").count() == 0


def test_plots_fit_the_paper_and_any_window(opened, page_address):
    address, _ = page_address
    page = opened(address, viewport={"width": 1280, "height": 900})
    overhang = """() => [...document.querySelectorAll('figure')].flatMap(figure => {
      const right = figure.getBoundingClientRect().right;
      return [...figure.querySelectorAll('svg.main-svg')].map(svg => svg.getBoundingClientRect().right - right);
    })"""
    scales = """() => [...document.querySelectorAll('svg.main-svg')].map(
      svg => svg.viewBox.baseVal.width / svg.getBoundingClientRect().width)"""
    page.set_viewport_size({"width": 700, "height": 900})
    page.wait_for_function(f"Math.max(...({overhang})()) < 0 && ({scales})().every(each => Math.abs(each - 1) < 0.01)")
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    for width in (500, 600):  # nothing is drawn anew while it is printed
        page.evaluate("width => { document.querySelector('main').style.width = `${width}px` }", width)
        assert max(page.evaluate(overhang)) < 0


def test_dark_mode_prints_on_white(opened, page_address):
    address, _ = page_address
    page = opened(address, viewport={"width": 760, "height": 1000}, color_scheme="dark")
    ink = "getComputedStyle(document.querySelector('#plot-throughput .xtick text')).fill"
    dark = page.evaluate(ink)
    page.emulate_media(media="print")
    page.wait_for_function(f"dark => {ink} !== dark", arg=dark)
    assert [text for ratio, text in page.evaluate(CONTRASTS) if ratio < 4.5] == []
    assert page.evaluate("getComputedStyle(document.querySelector('pre')).backgroundColor") == "rgb(243, 241, 235)"


def test_an_experiment_page_shows_its_searches_and_links(opened, tmp_path):
    from harness.model.experiment import Experiment, Point, Question, Result
    from harness.planning.experiment import answers
    from reports.experiment import CompletedExperiment
    from reports.experiment_page import render

    plan = Experiment(Question.FEWEST_NODES, ("plain", "slow <b>"), (50,), (1, 2, 3, 4), 1)
    results = tuple(
        Result(
            Point(variant, 50, nodes, 0),
            met=nodes > 2,
            values={"makespan (s)": 900.0 / nodes},
            run=f"{variant} {nodes}",
        )
        for nodes in (3, 2)
        for variant in plan.variants
    )
    completed = CompletedExperiment(
        "e", plan, ("p95(run.duration) < 9m",), results, "makespan (s)", answers(plan, results)
    )
    page_file = tmp_path / "experiment.html"
    page_file.write_bytes(render(completed))
    complaints = []
    page = opened(
        page_file.as_uri(), drawn=3, listening=complaining(complaints), viewport={"width": 390, "height": 800}
    )
    assert page.locator(".plot svg.main-svg").count() >= 3
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.get_by_text("slow <b>, 50 runs need 3 nodes").count() == 1
    assert page.locator("tbody a").first.get_attribute("href") == "runs/plain%203/report.html"
    assert complaints == []


@pytest.mark.attack("Texts")
@pytest.mark.parametrize("name", NAMED)
def test_a_poisoned_folder_runs_no_script_and_asks_nobody(opened, report_of, name):
    folder, _ = report_of(name)
    seen, address = [], (folder.path / REPORT_HTML).as_uri()
    listening = (
        ("dialog", lambda dialog: (seen.append(dialog.message), dialog.dismiss())),
        ("request", lambda request: seen.append(request.url) if request.url != address else None),
    )
    page = opened(address, listening=listening, offline=False)
    for summary in page.locator("summary").all():
        summary.evaluate("each => each.parentElement.open = true")
    for place in page.locator(".plot").all():
        place.hover(force=True)
    assert page.evaluate("[...document.images].filter(each => each.getAttribute('src') === 'x').length") == 0
    assert page.evaluate("typeof window.poisoned") == "undefined"
    assert [each for each in seen if not each.startswith(("data:", "blob:"))] == []


HOSTILE = """<body style="--rule:#ccc;--soft:#555;--bad:#a00"><div id="plot-x" style="width:600px;height:300px"></div>
<script>%s</script><script>
Plot.draw(document.getElementById("plot-x"), [
  {type: "bar", orientation: "h", name: "<img src=x onerror=acted=1>", x: [1, 3], y: ["<i>a</i>", "b"], marker: {color: "--bad"},
   hovertemplate: "%%{x:.4g} s<extra><b>of</b></extra>"}], {xaxis: {title: {text: "<u>s</u>"}}, yaxis: {}});
</script>"""


def test_names_in_a_plot_are_text_and_the_mouse_shows_values_and_zooms(browser, tmp_path):
    page_file = tmp_path / "plot.html"
    page_file.write_text(HOSTILE % (ROOT / "harness" / "plot.js").read_text(encoding="utf-8"))
    page = browser.new_page(viewport={"width": 800, "height": 400})
    page.goto(page_file.as_uri())
    plot, ticks = page.locator("#plot-x"), page.locator(".ytick")
    assert ticks.all_text_contents() == ["<i>a</i>", "b"]
    assert page.locator("#plot-x :is(img, i, b, u)").count() == 0
    shown, (low, high) = "document.getElementById('plot-x').layout.xaxis.range", (0.0, 3.12)
    assert page.evaluate(shown) == pytest.approx([low, high])
    box = plot.bounding_box()
    at = {
        name: (box["x"] + box["width"] * share, box["y"] + box["height"] * 0.3)
        for name, share in (("a", 0.4), ("b", 0.8))
    }
    page.mouse.move(*at["a"])
    assert plot.locator(".plot-hover").inner_text() == "3 s · <b>of</b>"
    page.mouse.down()
    page.mouse.move(*at["b"])
    page.mouse.up()
    zoomed = page.evaluate(shown)
    assert low < zoomed[0] < zoomed[1] < high
    page.mouse.dblclick(*at["a"])
    assert page.evaluate(shown) == pytest.approx([low, high])
    page.close()
