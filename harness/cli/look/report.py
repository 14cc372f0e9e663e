"""``pipeswarm report RUN``: rebuild the reports of a recorded run; no cluster needed.

With ``--findings`` it only looks at the records so far; a folder of runs gets a page that lists them.
"""

import argparse
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from harness.analysis.result import Result, analyse
from harness.analysis.waits.phases_table import phases_table
from harness.analysis.waits.waits import waits
from harness.cli import printing
from harness.cli.look import findings, index, traces
from harness.detectors import diagnose
from harness.detectors.ranking import ranked
from harness.model import Node
from harness.model.arguments import count, duration_above_0
from harness.model.errors import ConfigError
from harness.plan.trace_exporter import exporter_module
from harness.planning.summaries import keep
from harness.planning.sweeps import open_workers, usable_cores
from harness.planning.timelines import timeline_in
from harness.planning.what_if import expected_effects
from harness.store.baselines import find_baseline, keep_baseline, kept_baseline
from harness.store.derived import write_phases
from harness.store.folder import JUNIT, REPORT, REPORT_HTML, REPORT_MARKDOWN, RunFolder
from harness.store.prices import Prices, keep_prices, parse_price, read_prices
from harness.store.reasons import keep_reasons, read_reasons
from harness.store.recovery import recover, sentences
from harness.store.spools import leftovers
from harness.store.tables import read, release_memory, seal
from reports import document, junit, markdown, page
from reports.summary import summary


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument(
        "run", type=Path, nargs="?", default=Path("runs"), help="a run folder, or a folder of runs (default: runs)"
    )
    parser.add_argument("--open", action="store_true", help="show the page in the browser")
    parser.add_argument(
        "--baseline",
        type=Path,
        metavar="RUN",
        help="compare with this run from now on: a folder or its report.json",
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
    if arguments.changes or index.holds_runs(arguments.run):
        return index.show(arguments)
    if arguments.findings:
        return findings.show(RunFolder.open(arguments.run), arguments)
    return _report(arguments)


def _report(arguments: argparse.Namespace) -> int:
    """Keep the given prices and baseline, write the reports; the exit code is the run's own."""
    folder = RunFolder.open(arguments.run)
    if arguments.price or arguments.prices:
        nodes = read(folder, Node)
        listed = read_prices(arguments.prices, nodes) if arguments.prices else Prices()
        by_pool = {**listed.by_pool, **dict(map(parse_price, arguments.price))}
        keep_prices(folder, Prices(by_pool, listed.currency), nodes)
    if arguments.baseline is not None:
        baseline, content = find_baseline(arguments.baseline)
        baseline.demand_same_load(folder.read_plan())
        keep_baseline(folder, content)
    if arguments.otel:
        exporter_module()
    if arguments.reasons:
        keep_reasons(folder, read_reasons(arguments.reasons))
    for sentence in _recovered(folder):
        printing.note(arguments, sentence)
    code = write(folder, arguments)
    if arguments.otel:
        printing.note(arguments, traces.export(folder))
    if arguments.open:
        printing.browse(folder.path / REPORT_HTML)
    return code


def _recovered(folder: RunFolder) -> Sequence[str]:
    """Add what an interrupted load left elsewhere; its spools stay, for this folder may be a copy."""
    try:
        merged, found = recover(folder)
    except (ConfigError, OSError) as error:  # its test is still running, or the disk is full
        waiting = ", ".join(map(str, leftovers(folder.read_plan().id or "-")))
        return (f"warning: its records wait in {waiting}: {error}",) if waiting else ()
    return sentences({spool: recovered for spool, recovered in merged.items() if recovered.records}, found)


def write(folder: RunFolder, arguments: argparse.Namespace) -> int:
    """Write the reports and print the verdict as `arguments` (json, quiet) ask for; return the run's exit code."""
    result = rebuild(folder, what_if=not arguments.no_what_if)
    printing.show(
        arguments,
        lambda: f"{summary(result)}\nreport: {folder.path / REPORT_HTML}",
        lambda: document.render(result).decode(),
    )
    return result.exit_code


def rebuild(folder: RunFolder, *, what_if: bool = False) -> Result:
    """Seal and analyse a recorded run, and write its reports into its folder.

    The same folder gives the same bytes on every machine. With `what_if` they say what the findings' fixes would bring.

    Raises:
        ConfigError: the folder's manifest, an SLO in it, or its baseline can't be understood.
    """
    seal(folder)
    timeline = timeline_in(folder)
    release_memory()
    diagnosis = diagnose(timeline)
    release_memory()
    result = analyse(timeline, diagnosis, kept_baseline(folder))
    if what_if:
        with open_workers(usable_cores()) as workers:
            effects = expected_effects(folder, timeline, diagnosis, workers)
        diagnosis = replace(diagnosis, findings=ranked(diagnosis.findings, effects))
        result = replace(result, diagnosis=diagnosis, effects=effects)
    for name, content in (
        (REPORT_HTML, page.render(result)),
        (REPORT, document.render(result)),
        (REPORT_MARKDOWN, markdown.render(result)),
        (JUNIT, junit.render(result)),
    ):
        folder.replace(name, content)
    release_memory()
    with ThreadPoolExecutor(1) as beside:
        written = beside.submit(write_phases, folder, phases_table(timeline, waits(timeline)))
        keep(folder, timeline)
        written.result()
    return result
