"""``pipeswarm report RUN``: the reports of a recorded run, again, on any machine, with no cluster."""

import argparse
from pathlib import Path

from harness.cli import printing


def configure(parser: argparse.ArgumentParser) -> None:
    """The verb's options."""
    parser.add_argument("run", type=Path, help="a run folder")
    parser.add_argument("--open", action="store_true", help="show report.html in the browser")
    printing.configure(parser)


def run(arguments: argparse.Namespace) -> int:
    """Seal, diagnose, write; the exit code is the run's own."""
    import reports
    from harness.analysis.phases_table import phases_table
    from harness.store.derived import write_phases
    from harness.store.folder import RunFolder
    from harness.store.tables import seal
    from reports import document

    folder = RunFolder.open(arguments.run)
    seal(folder)
    report = reports.rebuild(folder)
    write_phases(folder, phases_table(report.timeline, report.waits))
    html = folder.path / "report.html"
    printing.show(
        arguments,
        lambda: f"{reports.summary(report)}\nreport: {html}",
        lambda: document.render(report).decode(),
    )
    if arguments.open:
        import webbrowser

        webbrowser.open(html.resolve().as_uri())
    return report.exit_code
