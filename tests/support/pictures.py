"""Takes the screenshots of the documentation, from the tutorial's two tests: make pictures."""

from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

from generators.cli import main as generate_scenarios
from harness.cli import main as pipeswarm
from tests.support.browser import CHROMIUM
from tests.support.e2e import PIPELINE, ROOT

_TESTS = {"report.png": ("--fault", "store-full"), "tutorial-repaired.png": ()}
_HEIGHT = {"report.png": 1080, "tutorial-repaired.png": 720}
_LOAD = ("--schedule", "burst", "--runs", "200", "--seed", "7", "--slo", "failed_ratio < 0.01")


def main() -> None:
    """Write the pictures to docs."""
    with TemporaryDirectory() as place, sync_playwright() as playwright:
        scenarios = str(Path(place) / "tutorial.csv")
        generate_scenarios(["--n", "200", "--seed", "7", "--from-pipeline", PIPELINE, "-o", scenarios, "--quiet"])
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for name, fault in _TESTS.items():
            run = name.removesuffix(".png")
            given = ("--pipeline", PIPELINE, "--scenarios", scenarios, "--runs-dir", place, "--run-name", run)
            pipeswarm(["simulate", "run", *_LOAD, *given, *fault])
            page = browser.new_page(viewport={"width": 1280, "height": _HEIGHT[name]})
            page.goto((Path(place) / run / "report.html").as_uri())
            page.screenshot(path=ROOT / "docs" / name)
        browser.close()


if __name__ == "__main__":
    main()
