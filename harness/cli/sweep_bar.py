"""The progress of many simulations or requests, on stderr: a bar on a terminal, elsewhere a line every ten seconds."""

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from harness.model.text.inert import for_output
from harness.model.units import format_duration
from harness.plan.environment import can_redraw

if TYPE_CHECKING:
    from rich.progress import Progress

_PRINT_EVERY_S = 10.0


class SweepBar:
    """How many of them are over, of about how many, and how long the others take at this rate.

    Args:
        what: they are for, as in "9 of about 12 simulations for this answer".
        out: where to show it.
        clock: monotonic seconds.
        things: what they are.
    """

    def __init__(
        self,
        what: str,
        out: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
        things: str = "simulations",
    ) -> None:
        self._what = f"{things}{what}"
        self._out = out or sys.stderr
        self._clock = clock
        self._begun_s = self._printed_s = clock()
        self._expected = self._over = 0
        self._bar: Progress | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def expect(self, more: int) -> None:
        """So many simulations more than expected before, or fewer."""
        self._expected += more
        if self._bar is None and self._out.isatty() and can_redraw():
            self._bar = self._drawn()
        self._show()

    def advance(self) -> None:
        """One more is over."""
        self._over += 1
        self._show()

    def say(self, line: str) -> None:
        """Print a line, above the bar if there is one."""
        if self._bar is None:
            print(for_output(line), file=self._out, flush=True)
        else:
            self._bar.console.print(for_output(line), markup=False, highlight=False)

    def _drawn(self) -> "Progress":
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (BarColumn(24), TextColumn("{task.description}", markup=False), TextColumn("ETA"))
        bar = Progress(*columns, TimeRemainingColumn(), console=Console(file=self._out), transient=True)
        bar.add_task("")
        bar.start()
        return bar

    def _show(self) -> None:
        expected = max(self._expected, self._over)
        text = f"{self._over:,} of about {expected:,} {self._what}"
        now_s = self._clock()
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=self._over, total=expected, description=text)
        elif self._over and now_s - self._printed_s >= _PRINT_EVERY_S:
            self._printed_s = now_s
            left_s = (now_s - self._begun_s) / self._over * (expected - self._over)
            self.say(f"{text}, about {format_duration(round(left_s))} left")
