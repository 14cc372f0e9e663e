"""Rebuilds the reports of a recorded run, as `pipeswarm report` and the end of a test do."""

import argparse
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from harness.analysis.result import Result, analyse
from harness.analysis.waits.breakdown import phases_table
from harness.analysis.waits.waits import waits
from harness.cli import printing
from harness.cli.look import traces
from harness.detectors import diagnose
from harness.detectors.ranking import ranked
from harness.model import Node
from harness.model.errors import ConfigError
from harness.plan.trace_exporter import exporter_module
from harness.planning.summaries import keep
from harness.planning.timelines import timeline_in
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


def report(arguments: argparse.Namespace) -> int:
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
        from harness.planning.sweeps import open_workers, usable_cores
        from harness.planning.what_if import expected_effects

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
