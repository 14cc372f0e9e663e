"""Shows a test while it runs and when it is over: in the terminal, in the run folder, in the web UI."""

import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

import gevent

from harness.drive.console import say, write
from harness.drive.session.runner import SessionRunner
from harness.model.live.state import Counts, LiveLoad, Stage
from harness.model.text.inert import one_line
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


_MAX_POINTS = 720  # beyond, every second point is dropped
_SERIES = ("at_s", "in_flight", "awaited", "done", "failed", "ready_nodes")


class History:
    """Counts over seconds since the first point, thinned out as the test gets longer."""

    def __init__(self) -> None:
        self._points: list[tuple[float, ...]] = []
        self._began_s: float | None = None
        self._every_s = 0.0

    def add(self, load: LiveLoad, observed: Mapping[str, Any], now_s: float | None = None) -> None:
        """Keep the present counts, unless the last point is too recent."""
        counts = load.counts
        if counts is None:
            return
        now_s = time.monotonic() if now_s is None else now_s
        if self._began_s is None:
            self._began_s = now_s
        at_s = now_s - self._began_s
        if self._points and at_s < self._points[-1][0] + self._every_s:
            return
        nodes = observed.get("ready_nodes")
        ready_nodes = float("nan") if nodes is None else nodes
        point = (at_s, counts.in_flight, load.awaited, counts.done, counts.failed, ready_nodes)
        self._points.append(tuple(map(float, point)))
        if len(self._points) > _MAX_POINTS:
            self._points = self._points[::2]
            self._every_s = 2 * (self._points[1][0] - self._points[0][0]) * 0.75

    def columns(self) -> dict[str, list[float]]:
        """The series by name, all of the same length; NaN where nothing was observed."""
        return {name: [point[place] for point in self._points] for place, name in enumerate(_SERIES)}


_SHOW_EVERY_S = 1.0
_UNWRITTEN = "{} can't be written: {}; the ends of runs are seen once there is room"


class StatusReporter:
    """Shows the latest test of this process, or that there is none yet."""

    def __init__(self) -> None:
        self._runner: SessionRunner | None = None
        self._progress = Progress()
        self._refresher: gevent.Greenlet | None = None
        self._history = History()
        self._load = LiveLoad()
        self._refusal = self._warning = ""

    def begin(self) -> None:
        """Forget the test before: another one was requested."""
        self._runner, self._history, self._load = None, History(), LiveLoad()
        self._refusal = self._warning = ""

    def warn(self, warning: str) -> None:
        """Show a warning about the test, after those shown already."""
        self._warning = "; ".join(filter(None, (self._warning, warning)))

    def refuse(self, refusal: str) -> None:
        """Show why a test could not be started."""
        self._refusal = refusal
        if not self._load.stage:
            self._load = LiveLoad("not started")

    def follow(self, runner: SessionRunner) -> None:
        """Show this test from now on."""
        self._runner, self._history, self._progress = runner, History(), Progress()
        self._refresher = gevent.spawn(self._refresh_regularly, runner)

    def done(self, runner: SessionRunner) -> None:
        """The test is over: show its final state, or the error that kept it from starting."""
        if self._refresher is not None and self._runner is runner:
            self._refresher.kill()
            self._refresh(runner)
            self._progress.done(self._load, self._live("observer"))
        elif runner.verdict:
            self.refuse(runner.verdict)

    def state(self) -> dict[str, Any]:
        """The JSON object that `tab.js` draws."""
        return {
            "load": self._load.to_mapping(),
            "observer": self._live("observer"),
            "findings": self._live("findings").get("findings", []),
            "history": self._history.columns(),
            "warning": self._warning,
            "verdict": self._refusal or (self._runner.verdict if self._runner is not None else ""),
            "report": self.document("report.html") is not None,
        }

    def document(self, name: str) -> Path | None:
        """A document of the run folder; none before it is written."""
        runner = self._runner
        if runner is None or runner.folder is None or runner.stage is not Stage.OVER:
            return None
        path = runner.folder.path / name
        return path if path.is_file() else None

    def _live(self, part: str) -> Mapping[str, Any]:
        """The latest state that another process of the test wrote to its folder."""
        folder = self._runner.folder if self._runner is not None else None
        return folder.read_live(part) if folder is not None else {}

    def _refresh_regularly(self, runner: SessionRunner) -> None:
        while True:
            self._refresh(runner)
            self._progress.show(self._load, self._live("observer"), self._live("findings"))
            gevent.sleep(_SHOW_EVERY_S)

    def _refresh(self, runner: SessionRunner) -> None:
        self._load = runner.live()
        self._history.add(self._load, self._live("observer"))
        if runner.folder is not None:
            try:
                runner.folder.write_live("load", self._load.to_mapping())
            except OSError as error:  # a full disk ends the test when a record can't be written
                warning = _UNWRITTEN.format(runner.folder.path, error.strerror)
                if warning not in self._warning:
                    self.warn(warning)
                    say(f"\nwarning: {warning}\n")
