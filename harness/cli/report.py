"""``pipeswarm report RUN``: the reports of a recorded run, again, on any machine, with no cluster."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli import printing

if TYPE_CHECKING:
    from harness.store.folder import RunFolder


def configure(parser: argparse.ArgumentParser) -> None:
    """The verb's options."""
    parser.add_argument("run", type=Path, help="a run folder")
    parser.add_argument("--open", action="store_true", help="show report.html in the browser")
    parser.add_argument(
        "--baseline", type=Path, metavar="RUN", help="hold it against this run from now on: a folder or its report.json"
    )
    parser.add_argument(
        "--price", action="append", default=[], metavar="POOL=PRICE",
        help="what a node of the pool costs an hour; may be repeated, without POOL for all others; kept with the run",
    )  # fmt: skip
    printing.configure(parser)


def run(arguments: argparse.Namespace) -> int:
    """Seal, diagnose, write; the exit code is the run's own."""
    from harness.model import Node
    from harness.store.baselines import find_baseline, keep_baseline
    from harness.store.folder import RunFolder
    from harness.store.prices import keep_prices, parse_price
    from harness.store.tables import read

    folder = RunFolder.open(arguments.run)
    if arguments.price:
        keep_prices(folder, dict(map(parse_price, arguments.price)), read(folder, Node))
    if arguments.baseline is not None:
        baseline, content = find_baseline(arguments.baseline)
        baseline.demand_same_load(folder.read_plan())
        keep_baseline(folder, content)
    code = write(folder, arguments)
    if arguments.open:
        import webbrowser

        from reports import HTML

        webbrowser.open((folder.path / HTML).resolve().as_uri())
    return code


def write(folder: "RunFolder", arguments: argparse.Namespace) -> int:
    """Seal the folder, write its reports and print the verdict as `arguments` (json, quiet) ask for; its exit code."""
    import reports
    from harness.analysis.waits.phases_table import phases_table
    from harness.store.derived import write_phases
    from harness.store.tables import seal
    from reports import document

    seal(folder)
    report = reports.rebuild(folder)
    write_phases(folder, phases_table(report.timeline, report.waits))
    printing.show(
        arguments,
        lambda: f"{reports.summary(report)}\nreport: {folder.path / reports.HTML}",
        lambda: document.render(report).decode(),
    )
    return report.exit_code
