"""The progress line of a test: redrawn on a terminal, otherwise printed every ten seconds and at each stage."""

import shutil
import sys
import time
from collections.abc import Mapping
from typing import Any, TextIO

from harness.drive.console import say, write
from harness.model.inert import one_line
from harness.model.live import Counts, LiveLoad
from harness.model.units import format_duration
from harness.plan.environment import can_redraw

_BAR_WIDTH, _SHORT_BAR_WIDTH = 24, 10
_IMPORTANCE = (
    "stage",
    "failed",
    "repeated ids",
    "rejected",
    "missed",
    "finding",
    "ETA",
    "in flight",
    "nodes",
    "rate",
    "lag",
    "done",
)
_PRINT_EVERY_S = 10.0


class Progress:
    """Shows the state of a test on `out`."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stderr
        self._terminal = self._out.isatty() and can_redraw()
        self._last_s = float("-inf")
        self._width = 0
        self._stage = ""

    def show(self, load: LiveLoad, observed: Mapping[str, Any], found: Mapping[str, Any]) -> None:
        """Draw the line; without a terminal only now and then."""
        now_s = time.monotonic()
        if not self._terminal and load.stage == self._stage and now_s - self._last_s < _PRINT_EVERY_S:
            return
        self._last_s, self._stage = now_s, load.stage
        self._write(self._fitting(load, observed, found))

    def done(self, load: LiveLoad, observed: Mapping[str, Any]) -> None:
        """Draw the final state and continue below it."""
        if load.counts is not None and load.counts.intended:
            self._write(self._fitting(load, observed, {}))
        if self._terminal and self._width:
            say("\n", self._out)
            self._width = 0

    def _fitting(self, load: LiveLoad, observed: Mapping[str, Any], found: Mapping[str, Any]) -> str:
        """The line, as long as the terminal is wide now: people resize it, and a full last column would wrap."""
        return line(load, observed, found, shutil.get_terminal_size().columns - 1 if self._terminal else None)

    def _write(self, text: str) -> None:
        text = one_line(text)
        if self._terminal:
            write("\r" + text.ljust(self._width), self._out)
            self._width = len(text)
        else:
            say(text + "\n", self._out)


def line(load: LiveLoad, observed: Mapping[str, Any], found: Mapping[str, Any], columns: int | None = None) -> str:
    """A bar of the runs that have ended, then counts, throughput, lag, nodes, time left and the first finding.

    What does not fit into `columns` is left out, the least important first; the bar shrinks before anything is.
    """
    counts = load.counts
    if counts is None or not counts.intended:
        return f"{load.stage} …"[:columns]
    parts = _parts(load, counts, observed, found)
    shown = _joined(counts, _BAR_WIDTH, parts)
    for keep in range(len(_IMPORTANCE), -1, -1):
        if columns is None or len(shown) <= columns:
            break
        important = _IMPORTANCE[:keep]
        shown = _joined(counts, _SHORT_BAR_WIDTH, {name: text for name, text in parts.items() if name in important})
    return shown[:columns]


def _joined(counts: Counts, width: int, parts: Mapping[str, str]) -> str:
    over = counts.ended - counts.missed  # a missed arrival is no progress
    filled = round(width * over / counts.intended)
    return " · ".join([f"[{'█' * filled}{'·' * (width - filled)}] {over}/{counts.intended}", *parts.values()])


def _parts(load: LiveLoad, counts: Counts, observed: Mapping[str, Any], found: Mapping[str, Any]) -> Mapping[str, str]:
    """What is known, in the order in which it is shown."""
    parts = {
        "stage": f"{load.stage}: sent {counts.sent + load.awaited}",
        "in flight": f"in flight {counts.in_flight + load.awaited}",
        "done": f"done {counts.done}" + (f" ({load.stale_s:.0f} s ago)" if load.stale_s else ""),
    }
    bad = {
        "failed": counts.failed,
        "repeated ids": counts.repeated,
        "rejected": counts.rejected,
        "missed": counts.missed,
    }
    parts |= {name: f"{name} {count}" for name, count in bad.items() if count}
    if load.succeeded_per_hour:
        parts["rate"] = f"{load.succeeded_per_hour:,.0f} runs/h"
    if load.lag_p99_s is not None:
        parts["lag"] = f"lag p99 {format_duration(load.lag_p99_s)}"
    if observed.get("blocked"):
        parts["blocked"] = f"blocked {observed['blocked']:,}"
    if observed.get("ready_nodes") is not None:
        parts["nodes"] = f"nodes {observed['ready_nodes']}"
    if load.eta_s is not None:
        parts["ETA"] = f"ETA {format_duration(round(load.eta_s))}"
    if found.get("findings"):
        top = found["findings"][0]
        parts["finding"] = f"{top['name']} ({top['confidence']:.0%} confidence)"
    return parts
