"""``pipeswarm report RUN``: rebuild the reports of a recorded run; no cluster needed.

With ``--findings`` it only looks at the records so far; a folder of runs gets a page that lists them.
"""

import argparse
from pathlib import Path

from harness.cli import printing
from harness.model.arguments import count, duration_above_0
from harness.store.folder import RunFolder


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument(
        "run", type=Path, nargs="?", default=Path("runs"), help="a run folder, or a folder of runs (default: runs)"
    )
    parser.add_argument("--open", action="store_true", help="show the page in the browser")
    parser.add_argument(
        "--baseline", type=Path, metavar="RUN", help="compare with this run from now on: a folder or its report.json"
    )
    parser.add_argument(
        "--price", action="append", default=[], metavar="POOL=PRICE",
        help="hourly price of a node of the pool; without POOL: of all others; POOL@on-demand: of a spot pool's "
             "machine on demand; may be repeated; kept with the run",
    )  # fmt: skip
    parser.add_argument(
        "--prices", type=Path, metavar="FILE",
        help="hourly prices in YAML or JSON, by pool or machine type; kept with the run, --price counts first",
    )  # fmt: skip
    parser.add_argument(
        "--otel", action="store_true",
        help="export the runs as traces by OTLP, to where the variables OTEL_EXPORTER_OTLP_* say "
             "(default localhost:4317); needs pipeswarm[otel]",
    )  # fmt: skip
    parser.add_argument(
        "--reasons",
        type=Path,
        metavar="FILE",
        help="your own rows of the catalogue of stated reasons (docs/reference/reasons.md), in YAML; kept with the run",
    )
    printing.configure_effects(parser)
    printing.configure(parser)
    looking = parser.add_argument_group("a running test")
    looking.add_argument(
        "--findings", action="store_true", help="print what limits the run so far, and write no report"
    )
    looking.add_argument(
        "--every", type=duration_above_0, metavar="TIME", help="with --findings: repeat until it ends, such as 10s"
    )
    looking.add_argument("--die-with-parent", action="store_true", help="exit when the parent process is gone")
    listing = parser.add_argument_group("a folder of runs: index.html lists them, with trends")
    listing.add_argument(
        "--changes", action="store_true",
        help="list which metric changed with which run; exit code 3 if one became worse within the last --recent runs",
    )  # fmt: skip
    listing.add_argument("--recent", type=count, default=7, metavar="RUNS", help="runs to judge by --changes (7)")


def run(arguments: argparse.Namespace) -> int:
    """Do what is asked of a run, or of a folder of runs."""
    if arguments.findings:
        from harness.cli.look import findings

        return findings.show(RunFolder.open(arguments.run), arguments)
    from harness.cli.look import index, rebuilding  # with data frames: a look that is not due does without

    if arguments.changes or index.holds_runs(arguments.run):
        return index.show(arguments)
    return rebuilding.report(arguments)
