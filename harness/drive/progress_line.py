"""The progress line of a test: redrawn on a terminal, otherwise printed every ten seconds and at each stage."""

import sys
import time
from collections.abc import Mapping
from typing import Any, TextIO

from harness.drive.console import say
from harness.model.inert import one_line
from harness.model.live import LiveLoad
from harness.model.units import format_duration

_BAR_WIDTH = 24
_PRINT_EVERY_S = 10.0


class Progress:
    """Shows the state of a test on `out`."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stderr
        self._terminal = self._out.isatty()
        self._last_s = float("-inf")
        self._width = 0
        self._stage = ""

    def show(self, load: LiveLoad, observed: Mapping[str, Any], found: Mapping[str, Any]) -> None:
        """Draw the line; without a terminal only now and then."""
        now_s = time.monotonic()
        if not self._terminal and load.stage == self._stage and now_s - self._last_s < _PRINT_EVERY_S:
            return
        self._last_s, self._stage = now_s, load.stage
        self._write(line(load, observed, found))

    def done(self, load: LiveLoad, observed: Mapping[str, Any]) -> None:
        """Draw the final state and continue below it."""
        if load.counts is not None and load.counts.intended:
            self._write(line(load, observed, {}))
        if self._terminal and self._width:
            say("\n", self._out)
            self._width = 0

    def _write(self, text: str) -> None:
        text = one_line(text)
        if self._terminal:
            say("\r" + text.ljust(self._width), self._out)
            self._width = len(text)
        else:
            say(text + "\n", self._out)


def line(load: LiveLoad, observed: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """A bar of the arrivals that have ended, then counts, throughput, lag, nodes, time left and the first finding."""
    counts = load.counts
    if counts is None or not counts.intended:
        return f"{load.stage} …"
    filled = round(_BAR_WIDTH * counts.ended / counts.intended)
    words = [
        f"[{'█' * filled}{'·' * (_BAR_WIDTH - filled)}] {counts.ended}/{counts.intended}",
        f"{load.stage}: sent {counts.sent + load.awaited}",
        f"in flight {counts.in_flight + load.awaited}",
        f"done {counts.done}",
    ]
    bad = {
        "failed": counts.failed,
        "repeated ids": counts.repeated,
        "rejected": counts.rejected,
        "missed": counts.missed,
    }
    words += [f"{name} {count}" for name, count in bad.items() if count]
    if load.runs_per_min:
        words.append(f"{load.runs_per_min:.0f} runs/min")
    if load.lag_s is not None:
        words.append(f"lag {load.lag_s * 1e3:.1f} ms")
    if observed.get("ready_nodes") is not None:
        words.append(f"nodes {observed['ready_nodes']}")
    if load.eta_s is not None:
        words.append(f"ETA {format_duration(load.eta_s)}")
    if found.get("findings"):
        top = found["findings"][0]
        words.append(f"{top['name']} ({top['confidence']:.0%} confidence)")
    return " · ".join(words)
