"""``pipeswarm watch RUN``: how a running test stands, in the terminal, until it is over."""

import argparse
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.cli import printing
from harness.model.errors import ExitCode
from harness.model.units import format_bytes, format_duration

if TYPE_CHECKING:
    from rich.console import RenderableType

    from harness.store.folder import RunFolder

_EVERY_S = 0.5
_QUIET_EVERY_S = 10.0  # where the output is no terminal
_STALE_S = 60.0  # whoever goes on says so every second
_OVER = "over"
_COUNTS = ("sent", "accepted", "awaited", "in_flight", "done", "failed", "rejected", "missed")


def configure(parser: argparse.ArgumentParser) -> None:
    """The verb's options."""
    parser.add_argument("run", type=Path, help="a run folder")
    parser.add_argument("--once", action="store_true", help="show how it stands now, and end")
    printing.configure(parser)


def run(arguments: argparse.Namespace) -> int:
    """Show the run until it is over; with ``--json`` or ``--once`` only how it stands."""
    from harness.store.folder import RunFolder

    folder = RunFolder.open(arguments.run)
    if arguments.json or arguments.quiet or arguments.once:
        printing.show(arguments, lambda: _text(_facts(folder)), lambda: _document(folder))
    elif sys.stdout.isatty():
        _redraw(folder)
    else:
        _print_now_and_then(folder)
    return ExitCode.OK


def is_over(load: Mapping[str, Any], observed: Mapping[str, Any], *, reported: bool, now_at: int) -> bool:
    """Whether a run will not change any more.

    Args:
        load: what the load last said; empty when there is none of ours.
        observed: what the observer last said.
        reported: its report is written.
        now_at: UTC ns.
    """
    if load.get("stage") == _OVER or (reported and not load):
        return True
    said_at = max((int(part["at"]) for part in (load, observed) if "at" in part), default=now_at)
    return (now_at - said_at) / 1e9 > _STALE_S


def view(
    load: Mapping[str, Any], observed: Mapping[str, Any], found: Mapping[str, Any], *, over: bool = False
) -> list[tuple[str, str]]:
    """What there is to say, as (what, value), only what is known; a run that is `over` may have had no load of ours."""
    stage = str(load.get("stage") or observed.get("stage") or (_OVER if over else "not begun"))
    return [("stage", stage), *_of_load(load), *_of_platform(observed), *_of_findings(found)]


def _of_load(load: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if load.get("load"):
        yield "load", str(load["load"])
    if load.get("intended"):
        yield "progress", _bar(load)
    yield from ((name.replace("_", " "), f"{load[name]:,}") for name in _COUNTS if load.get(name))
    if load.get("runs_per_min"):
        yield "throughput", f"{load['runs_per_min']:,.0f} runs/min"
    if load.get("lag_s") is not None:
        yield "lag of the last second, worst", f"{load['lag_s'] * 1e3:.1f} ms"
    if load.get("lag_p99_s") is not None:
        yield "lag p99", f"{load['lag_p99_s'] * 1e3:.1f} ms"
    if load.get("eta_s") is not None:
        yield "time left", format_duration(float(load["eta_s"]))


def _of_platform(observed: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for what in ("runs", "pods"):
        if observed.get(what):
            yield f"{what} on the platform", _by_state(observed[what])
    if observed.get("ready_nodes") is not None:
        yield "ready nodes", f"{observed['ready_nodes']:,} of {observed.get('nodes', 0):,}"
    if observed.get("kubernetes"):
        yield "kubernetes", str(observed["kubernetes"])
    for volume, left in sorted((observed.get("store_free_bytes") or {}).items()):
        yield f"free space of {volume}", format_bytes(float(left))
    if observed.get("requests"):
        yield "the observer's own requests", f"{sum(observed['requests'].values()):,}"
    if observed.get("last_error"):
        yield "last trouble of the observer", str(observed["last_error"])


def _of_findings(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for place, finding in enumerate(found.get("findings", ())):
        yield "" if place else "what holds it back", f"{finding['title']} ({finding['name']})"


def _bar(load: Mapping[str, Any], width: int = 30) -> str:
    over = sum(int(load.get(name, 0)) for name in ("done", "failed", "rejected", "missed"))
    filled = min(width, round(width * over / int(load["intended"])))
    return f"{'█' * filled}{'·' * (width - filled)} {over:,}/{load['intended']:,}"


def _by_state(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {state}" for state, count in sorted(counts.items()))


def _live(folder: "RunFolder") -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    return folder.read_live("load"), folder.read_live("observer"), folder.read_live("findings")


def _document(folder: "RunFolder") -> str:
    import orjson

    load, observed, found = _live(folder)
    whole = {"over": ended(folder), "load": load, "observer": observed, "findings": found.get("findings", [])}
    return orjson.dumps(whole).decode()


def ended(folder: "RunFolder") -> bool:
    """Whether the run in `folder` will not change any more."""
    from harness.store.folder import REPORT

    load, observed, _ = _live(folder)
    return is_over(load, observed, reported=(folder.path / REPORT).is_file(), now_at=time.time_ns())


def _facts(folder: "RunFolder") -> list[tuple[str, str]]:
    return view(*_live(folder), over=ended(folder))


def _text(facts: list[tuple[str, str]]) -> str:
    width = max(len(what) for what, _ in facts)
    return "\n".join(f"{what.ljust(width)}  {value}" for what, value in facts)


def _redraw(folder: "RunFolder") -> None:
    from rich.live import Live

    with Live(_panel(folder), refresh_per_second=4, transient=False) as screen:
        while not ended(folder):
            time.sleep(_EVERY_S)
            screen.update(_panel(folder))


def _panel(folder: "RunFolder") -> "RenderableType":
    from rich.panel import Panel
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    for what, value in _facts(folder):
        table.add_row(what, value)
    return Panel(table, title=folder.path.name, expand=False)


def _print_now_and_then(folder: "RunFolder") -> None:
    """Each state of the test once, and how it stands every ten seconds."""
    shown_s, stage = float("-inf"), ""
    while True:
        over, facts = ended(folder), _facts(folder)
        if over or facts[0][1] != stage or time.monotonic() - shown_s >= _QUIET_EVERY_S:
            print(_text(facts), end="\n\n", flush=True)
            shown_s, stage = time.monotonic(), facts[0][1]
        if over:
            return
        time.sleep(_EVERY_S)
