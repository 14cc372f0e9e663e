"""Prints a verb's result: as text, as one JSON object, or not at all."""

import argparse
import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
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
    """Print a line beside the result; on stderr where stdout has a document."""
    if not arguments.quiet:
        print(for_output(line), file=sys.stderr if arguments.json else sys.stdout)


def browse(page: Path) -> None:
    """Show a page in the user's browser."""
    import webbrowser

    webbrowser.open(page.resolve().as_uri())


def wrapped(text: str, first: str = "", others: str = "  ") -> list[str]:
    """A sentence as terminal lines: the first is prefixed with `first`, the others with `others`."""
    return wrap(text, _WIDTH, initial_indent=first, subsequent_indent=others, break_on_hyphens=False)


def table(rows: Sequence[Sequence[str]], left: Collection[int] = (0,)) -> list[str]:
    """Rows, heading first, as lines with aligned columns: those in `left` left-aligned, the others right-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if place in left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
