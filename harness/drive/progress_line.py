"""One line that says how the test stands: redrawn on a terminal, every ten seconds otherwise."""

import sys
import time
from collections.abc import Mapping
from typing import Any, TextIO

from harness.drive.console import say
from harness.model.units import format_duration

_BAR = 24
_QUIET_EVERY_S = 10.0


class Progress:
    """Shows the state of a test on `out`."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stderr
        self._terminal = self._out.isatty()
        self._last_s = float("-inf")
        self._width = 0
        self._stage = ""

    def show(self, live: Mapping[str, Any], observed: Mapping[str, Any], found: Mapping[str, Any]) -> None:
        """Draw the line if it is time to."""
        now_s = time.monotonic()
        changed = live.get("stage") != self._stage
        if not self._terminal and not changed and now_s - self._last_s < _QUIET_EVERY_S:
            return
        self._last_s, self._stage = now_s, str(live.get("stage", ""))
        self._write(line(live, observed, found))

    def done(self, live: Mapping[str, Any], observed: Mapping[str, Any]) -> None:
        """Draw how it ended, whatever was drawn last, and go on below it."""
        if live.get("intended"):
            self._write(line(live, observed, {}))
        if self._terminal and self._width:
            say("\n", self._out)
            self._width = 0

    def _write(self, text: str) -> None:
        if self._terminal:
            say("\r" + text.ljust(self._width), self._out)
            self._width = len(text)
        else:
            say(text + "\n", self._out)


def line(live: Mapping[str, Any], observed: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """The line: a bar over the runs that are over, then counts, rate, lag, nodes, time left, and what holds it back."""
    stage = str(live.get("stage", ""))
    intended = int(live.get("intended", 0))
    if not intended:
        return f"{stage} …"
    over = sum(int(live.get(name, 0)) for name in ("done", "failed", "rejected", "missed"))
    filled = round(_BAR * over / intended)
    parts = [
        f"[{'█' * filled}{'·' * (_BAR - filled)}] {over}/{intended}",
        f"{stage}: sent {live.get('sent', 0)}",
        f"in flight {live.get('in_flight', 0) + live.get('awaited', 0)}",
        f"done {live.get('done', 0)}",
    ]
    parts += [f"{name} {live[name]}" for name in ("failed", "rejected", "missed") if live.get(name)]
    if live.get("runs_per_min"):
        parts.append(f"{live['runs_per_min']:.0f} runs/min")
    if live.get("lag_s") is not None:
        parts.append(f"lag {live['lag_s'] * 1e3:.1f} ms")
    if observed.get("ready_nodes") is not None:
        parts.append(f"nodes {observed['ready_nodes']}")
    if live.get("eta_s") is not None:
        parts.append(f"ETA {format_duration(float(live['eta_s']))}")
    if found.get("findings"):
        top = found["findings"][0]
        parts.append(f"{top['name']} ({top['confidence']:.0%} sure)")
    return " · ".join(parts)
