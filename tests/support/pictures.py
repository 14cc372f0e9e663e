"""Takes the screenshots of the documentation, from the tutorial's two tests: make pictures."""

from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

from generators.cli import main as generate_scenarios
from harness.cli import main as pipeswarm
from harness.model import Event
from harness.store import RunFolder
from tests.support.browser import CHROMIUM
from tests.support.e2e import PIPELINE, ROOT
from tests.support.past_store import dump, objects, prometheus_of

_TESTS = {"report.png": ("--fault", "store-full"), "tutorial-repaired.png": ()}
_HEIGHT = {"report.png": 1080, "tutorial-repaired.png": 720}
_NIGHT = ("--schedule", "spread", "--runs", "200", "--over", "2h", "--seed", "7")
_FULL = "pools: [{name: work, cpu: 4, memory: 16Gi, initial: 3, min: 3, max: 3}]\nsteps: [{duration: 5m}]\n"
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
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto((explained(Path(place) / "night") / "report.html").as_uri())
        page.screenshot(path=ROOT / "docs" / "explain.png")
        browser.close()


def explained(place: Path) -> Path:
    """The run folder of a night whose objects are gone: a Prometheus has them, and nothing else."""
    place.mkdir()
    (place / "full.yaml").write_text(_FULL, encoding="utf-8")
    pipeswarm(
        [
            "simulate",
            "run",
            "--profile",
            str(place / "full.yaml"),
            *_NIGHT,
            "--pipeline",
            PIPELINE,
            "--runs-dir",
            str(place),
            "--run-name",
            "night",
        ]
    )
    night = RunFolder.open(place / "night")
    start_s = night.read_plan().started_at // 10**9
    end_s = max(event.at for event in night.records(Event)) // 10**9 + 60
    since, until = (datetime.fromtimestamp(at_s, UTC).isoformat() for at_s in (start_s, end_s))
    with prometheus_of(dump(objects(night), start_s, end_s, "prod"), place) as url:
        where = ["--prometheus", url, "--runs-dir", str(place), "--run-name", "explained"]
        pipeswarm(["explain", "--since", since, "--until", until, *where])
    return place / "explained"


if __name__ == "__main__":
    main()
