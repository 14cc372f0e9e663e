"""Prints a verb's result: as text, as one JSON object, or not at all."""

import argparse
import sys
from collections.abc import Callable, Collection, Sequence
from itertools import accumulate
from pathlib import Path
from shutil import get_terminal_size
from textwrap import wrap

from harness.model.text.inert import for_output

_WIDTH = 100  # columns


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare ``--json`` and ``--quiet``."""
    parser.add_argument("--json", action="store_true", help="print one JSON object on stdout, and nothing else")
    parser.add_argument("--quiet", action="store_true", help="print nothing on stdout")


def configure_effects(parser: argparse._ArgumentGroup | argparse.ArgumentParser) -> None:
    """Declare ``--no-what-if``, which may also be set in the environment, as in a load test."""
    from harness.plan.environment import is_on
    from harness.plan.options import NO_WHAT_IF

    NO_WHAT_IF.add_to(parser, default=is_on("PIPESWARM_NO_WHAT_IF"))


def show(arguments: argparse.Namespace, text: Callable[[], str], document: Callable[[], str]) -> None:
    """Print the result as the options ask; only the requested form is computed."""
    if arguments.json:
        sys.stdout.write(for_output(document()).rstrip("\n") + "\n")
    elif not arguments.quiet:
        sys.stdout.write(for_output(text()).rstrip("\n") + "\n")


def note(arguments: argparse.Namespace, line: str) -> None:
    """Print a line in addition to the result; on stderr where stdout has a document."""
    if not arguments.quiet:
        print(for_output(line), file=sys.stderr if arguments.json else sys.stdout)


def browse(page: Path) -> None:
    """Show a page in the user's browser."""
    import webbrowser

    webbrowser.open(page.resolve().as_uri())


def room() -> int | None:
    """How many columns the terminal has; none where the output goes elsewhere."""
    return get_terminal_size().columns if sys.stdout.isatty() else None


def wrapped(text: str, first: str = "", others: str = "  ") -> list[str]:
    """A sentence as terminal lines: the first is prefixed with `first`, the others with `others`."""
    width = min(_WIDTH, room() or _WIDTH)
    return wrap(text, width, initial_indent=first, subsequent_indent=others, break_on_hyphens=False)


def table(rows: Sequence[Sequence[str]], left: Collection[int] = (0,)) -> list[str]:
    """Rows, heading first, as lines with aligned columns: texts (`left`) left-aligned, figures right-aligned.

    Where the terminal has no room for that, the figures of a row are below its texts, and those in brackets below them.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if place in left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    most = room()
    return lines if most is None or max(map(len, lines)) <= most else _folded(rows, left, most)


def _folded(rows: Sequence[Sequence[str]], left: Collection[int], most: int) -> list[str]:
    head = rows[0]
    figures = [place for place in range(len(head)) if place not in left]
    split = [[row[place].partition(" (" if k else " ") for place in figures] for k, row in enumerate(rows)]
    cells = [[(value, f"({rest}" if mark == " (" else rest) for value, mark, rest in row] for row in split]
    widths = [2 + max(len(part) for row in cells for part in row[k]) for k in range(len(figures))]
    fitting = sum(end <= most for end in accumulate(widths))
    lines = []
    for k, row in enumerate(rows):
        texts = [row[place] if place == min(left) else f"{head[place]}: {row[place]}" for place in sorted(left)]
        lines += wrapped(", ".join(texts)) if k else []
        for parts in zip(*cells[k][:fitting], strict=True):
            lines += ["".join(map(str.rjust, parts, widths)).rstrip()] if any(parts) else []
    missing = ", ".join(head[place] for place in figures[fitting:])
    return [*lines, *wrapped(f"No room for {missing}: widen the terminal." if missing else "")]
