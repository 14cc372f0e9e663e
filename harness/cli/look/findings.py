"""``pipeswarm report RUN --findings``: what limits a run, from the records so far."""

import argparse
import os
import threading
import time
import traceback
from typing import TYPE_CHECKING, Any

import orjson

from harness.cli import printing
from harness.cli.parent import stop_with_parent
from harness.model.errors import ExitCode
from harness.model.findings import Finding
from harness.planning.timelines import timeline_in
from harness.store.folder import RunFolder

if TYPE_CHECKING:
    from harness.store.newest import Newest

# A running test always lacks arrivals, ends and measurements: doubts about the records are left to its report.
_FOR_THE_REPORT = frozenset({"censoring", "inconsistent-records", "missed-arrivals", "too-few-samples"})
_MOST_BYTES = 100_000_000  # of records: an analysis of more would compete with the load for memory and CPU
_SHARE = 0.1  # of one core
_NICE = 15


def show(folder: RunFolder, arguments: argparse.Namespace) -> int:
    """Look once, or every `arguments.every` seconds; the folder keeps the result, for ``watch`` and the web UI."""
    if arguments.every is None:
        found = look(folder)
        printing.show(arguments, lambda: _text(found), lambda: _document(found))
        return ExitCode.OK
    stop = threading.Event()
    if arguments.die_with_parent:
        stop_with_parent(stop)
    os.nice(_NICE)
    _repeat(folder, arguments.every, stop, arguments)
    return ExitCode.OK


def look(folder: RunFolder, newest: "Newest | None" = None) -> dict[str, Any]:
    """The detectors' findings in the records so far, or the `newest`; kept as the folder's live "findings"."""
    from harness.cli.loading.watch import ended
    from harness.detectors import diagnose

    began_s, at = time.monotonic(), time.time_ns()
    diagnosis = diagnose(timeline_in(folder, newest), going_on=not ended(folder))
    findings = [_as_dict(finding) for finding in diagnosis.findings if finding.name not in _FOR_THE_REPORT]
    found = {"at": at, "took_s": time.monotonic() - began_s, "findings": findings}
    folder.write_live("findings", found)
    return found


def _repeat(folder: RunFolder, every_s: float, stop: threading.Event, arguments: argparse.Namespace) -> None:
    from harness.cli.loading.watch import ended
    from harness.store.newest import Newest

    took_s, newest = 0.0, Newest(folder, _MOST_BYTES)
    while not stop.wait(max(every_s, took_s / _SHARE)) and not ended(folder):
        began_s = time.monotonic()
        try:
            newest.move()
            found = look(folder, newest)
        except Exception:  # noqa: BLE001  # records that can't be analysed now must not end the diagnosis
            traceback.print_exc()
        else:
            printing.show(arguments, lambda found=found: _text(found), lambda found=found: _document(found))  # type: ignore[misc]
        took_s = time.monotonic() - began_s


def _as_dict(finding: Finding) -> dict[str, Any]:
    return {
        "name": finding.name,
        "title": finding.title,
        "confidence": finding.confidence,
        "status": finding.status,
        "evidence": [evidence.statement for evidence in finding.evidence],
        "fix": finding.fix,
        "commands": list(finding.commands),
    }


def _text(found: dict[str, Any]) -> str:
    lines = [f"{finding['name']} ({_sure(finding)}): {finding['title']}" for finding in found["findings"]]
    return "\n".join(lines) or "no bottleneck found so far"


def _sure(finding: dict[str, Any]) -> str:
    return f"confidence {finding['confidence']:.0%}{', preview' * (finding['status'] == 'preview')}"


def _document(found: dict[str, Any]) -> str:
    return orjson.dumps(found, option=orjson.OPT_SORT_KEYS).decode()
