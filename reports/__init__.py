"""A recorded run as a report: a page, a JSON document, Markdown, JUnit XML, and a few lines for the terminal."""

from collections.abc import Callable, Mapping

from harness.store.baselines import kept_baseline
from harness.store.folder import REPORT, RunFolder
from reports.report import Report, build
from reports.summary import summary

__all__ = ["HTML", "JSON", "JUNIT", "MARKDOWN", "Report", "build", "rebuild", "summary", "write"]

HTML, JSON, MARKDOWN, JUNIT = "report.html", REPORT, "report.md", "junit.xml"


def rebuild(folder: RunFolder) -> Report:
    """Analyse a recorded run and write its reports into its folder; the same folder gives the same bytes, anywhere.

    Raises:
        ConfigError: the folder's manifest, an objective in it, or its baseline can't be understood.
    """
    from harness.analysis.timeline import Timeline
    from harness.detectors import diagnose
    from harness.store.tables import load

    timeline = Timeline.from_frames(folder.read_plan(), load(folder))
    report = build(timeline, diagnose(timeline), kept_baseline(folder))
    write(folder, report)
    return report


def write(folder: RunFolder, report: Report) -> None:
    """Write every format into the folder, each file as a whole."""
    for name, render in _renderers().items():
        folder.replace(name, render(report))


def _renderers() -> Mapping[str, Callable[[Report], bytes]]:
    from reports import document, junit, markdown, page

    return {HTML: page.render, JSON: document.render, MARKDOWN: markdown.render, JUNIT: junit.render}
