"""Progress of a long job: a bar on a terminal, occasional lines elsewhere."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from generators.generate import Progress

_FROM_ROWS = 100_000
_LINES = 10


@contextmanager
def progress(rows: int, *, quiet: bool) -> Iterator[Progress]:
    """A callback for the number of rows done; silent below 100,000 rows. Writes to the standard error."""
    if quiet or rows < _FROM_ROWS:
        yield lambda _: None
    elif sys.stderr.isatty():
        yield from _bar(rows)
    else:
        yield _lines(rows)


def _bar(rows: int) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("scenarios"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=rows)
        yield lambda done: bar.update(task, completed=done)


def _lines(rows: int) -> Progress:
    shown = 0

    def show(done: int) -> None:
        nonlocal shown
        if done * _LINES // rows > shown:
            shown = done * _LINES // rows
            print(f"{done:,} of {rows:,} scenarios", file=sys.stderr, flush=True)

    return show
