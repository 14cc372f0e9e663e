"""``pipeswarm watch RUN``: the live state of a test in the terminal, until it is over."""

import argparse
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from harness.cli import printing
from harness.model.errors import ExitCode
from harness.model.live.observer import LiveObserver
from harness.model.text.inert import for_output, one_line
from harness.model.text.typed import from_plain
from harness.model.units import format_bytes, format_duration
from harness.store.folder import REPORT, RunFolder

if TYPE_CHECKING:
    from rich.console import RenderableType


_EVERY_S = 0.5
_PLAIN_EVERY_S = 10.0  # where the output is not a terminal
_STALE_S = 60.0  # a live process writes its state every second
_OVER = "over"
_FLOATS = ("lag_p99_s", "ends_age_s", "succeeded_per_hour", "eta_s")
# Of a load's state; all others are counts.
_TYPES: Mapping[str, set[type]] = {"stage": {str}, "load": {str}, **{name: {int, float} for name in _FLOATS}}
_COUNTS = ("sent", "accepted", "awaited", "in_flight", "done", "failed", "rejected", "missed")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``watch``."""
    parser.add_argument("run", type=Path, help="a run folder")
    parser.add_argument("--once", action="store_true", help="show the present state and exit")
    printing.configure(parser)


def run(arguments: argparse.Namespace) -> int:
    """Show the run until it is over; with ``--json``, ``--quiet`` or ``--once`` only its present state."""
    folder = RunFolder.open(arguments.run)
    folder.read_plan()  # a folder of something else is refused
    if arguments.json or arguments.quiet or arguments.once:
        printing.show(arguments, lambda: _text(_facts(folder)), lambda: _document(folder))
    elif sys.stdout.isatty():
        _redraw(folder)
    else:
        _print_plain(folder)
    return ExitCode.OK


def is_over(load: Mapping[str, Any], observed: Mapping[str, Any], *, reported: bool, now_at: int) -> bool:
    """Whether a run will not change any more.

    Args:
        load: last state of the load; empty for an observation without one.
        observed: last state of the observer.
        reported: the report is written.
        now_at: UTC ns.
    """
    if load.get("stage") == _OVER or (reported and not load):
        return True
    written_at = max((int(part["at"]) for part in (load, observed) if "at" in part), default=now_at)
    return (now_at - written_at) / 1e9 > _STALE_S


def view(
    load: Mapping[str, Any], observed: Mapping[str, Any], found: Mapping[str, Any], *, over: bool = False
) -> list[tuple[str, str]]:
    """The live state as (label, value), only what is known. `over` is the stage of a run that has recorded none."""
    stage = str(load.get("stage") or observed.get("stage") or (_OVER if over else "not started"))
    platform = _of_platform(LiveObserver.from_json(observed))
    return [("stage", stage), *_of_load(load), *platform, *_of_findings(found)]


def _of_load(load: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if load.get("load"):
        yield "load", str(load["load"])
    if load.get("intended"):
        yield "progress", _bar(load)
    yield from ((name.replace("_", " "), f"{load[name]:,}") for name in _COUNTS if load.get(name))
    if load.get("succeeded_per_hour"):
        yield "throughput", f"{load['succeeded_per_hour']:,.0f} runs/h"
    if load.get("lag_p99_s") is not None:
        yield "lag p99", format_duration(float(load["lag_p99_s"]))
    if load.get("ends_age_s") and load.get("in_flight"):
        yield "ends of runs last read", f"{load['ends_age_s']:.0f} s before"
    if load.get("eta_s") is not None:
        yield "time left", format_duration(float(load["eta_s"]))


def _of_platform(observed: LiveObserver) -> Iterator[tuple[str, str]]:
    for name, counts in (("runs", observed.runs), ("pods", observed.pods)):
        if counts:
            yield f"{name} on the platform", _by_state(counts)
    if observed.ready_nodes is not None:
        yield "ready nodes", f"{observed.ready_nodes:,} of {observed.nodes or 0:,}"
    if observed.blocked:
        yield "runs blocked", f"{observed.blocked:,} until someone intervenes"
    if observed.coming_nodes is not None:
        yield "nodes on their way", f"{observed.coming_nodes:,}"
    if observed.kubernetes:
        yield "kubernetes", observed.kubernetes
    for volume, free in sorted((observed.store_free_bytes or {}).items()):
        yield f"free space of {volume}", format_bytes(float(free))
    if observed.requests:
        yield "observer requests", f"{sum(observed.requests.values()):,}"
    if observed.last_error:
        yield "last observer error", observed.last_error


def _of_findings(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for place, finding in enumerate(found.get("findings", ())):
        yield "" if place else "findings", f"{finding['title']} ({finding['name']})"


def _bar(load: Mapping[str, Any], width: int = 30) -> str:
    over = sum(int(load.get(name, 0)) for name in ("done", "failed", "rejected", "missed"))
    filled = min(width, round(width * over / int(load["intended"])))
    return f"{'█' * filled}{'·' * (width - filled)} {over:,}/{load['intended']:,}"


def _by_state(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {state}" for state, count in sorted(counts.items()))


def _live(folder: RunFolder) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The states of load, observer and findings, without values that they can't have."""
    load, observed = folder.read_live("load"), folder.read_live("observer")
    load = {name: value for name, value in load.items() if type(value) in _TYPES.get(name, {int})}
    try:
        from_plain(LiveObserver, observed)
    except TypeError:
        observed = {"last_error": "its live state is damaged"}
    findings = folder.read_live("findings").get("findings")
    listed = [finding for finding in findings if isinstance(finding, dict)] if isinstance(findings, list) else []
    return load, observed, {"findings": [each for each in listed if {"name", "title"} <= each.keys()]}


def _document(folder: RunFolder) -> str:
    load, observed, found = _live(folder)
    whole = {"over": ended(folder), "load": load, "observer": observed, "findings": found.get("findings", [])}
    return orjson.dumps(whole).decode()


def ended(folder: RunFolder) -> bool:
    """Whether the run in `folder` will not change any more."""
    load, observed, _ = _live(folder)
    return is_over(load, observed, reported=(folder.path / REPORT).is_file(), now_at=time.time_ns())


def _facts(folder: RunFolder) -> list[tuple[str, str]]:
    return view(*_live(folder), over=ended(folder))


def _text(facts: list[tuple[str, str]]) -> str:
    width = max(len(label) for label, _ in facts)
    return "\n".join(f"{label.ljust(width)}  {value}" for label, value in facts)


def _redraw(folder: RunFolder) -> None:
    from rich.live import Live

    with Live(_panel(folder), refresh_per_second=4, transient=False) as screen:
        while not ended(folder):
            time.sleep(_EVERY_S)
            screen.update(_panel(folder))


def _panel(folder: RunFolder) -> "RenderableType":
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    for label, value in _facts(folder):
        table.add_row(Text(label), Text(for_output(value)))
    return Panel(table, title=Text(one_line(folder.path.name)), expand=False)


def _print_plain(folder: RunFolder) -> None:
    """Print the state at each change of stage, and every ten seconds."""
    shown_s, stage = float("-inf"), ""
    while True:
        over, facts = ended(folder), _facts(folder)
        if over or facts[0][1] != stage or time.monotonic() - shown_s >= _PLAIN_EVERY_S:
            print(for_output(_text(facts)), end="\n\n", flush=True)
            shown_s, stage = time.monotonic(), facts[0][1]
        if over:
            return
        time.sleep(_EVERY_S)
