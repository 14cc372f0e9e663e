"""How every verb that prints a result prints it: for people, as one JSON object, or not at all."""

import argparse
import sys
from collections.abc import Callable


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of every verb that prints a result."""
    parser.add_argument("--json", action="store_true", help="print one JSON object on stdout and nothing else there")
    parser.add_argument("--quiet", action="store_true", help="print nothing on stdout")


def show(arguments: argparse.Namespace, text: Callable[[], str], document: Callable[[], str]) -> None:
    """Print the result as the options say; only what is printed is made."""
    if arguments.json:
        sys.stdout.write(document().rstrip("\n") + "\n")
    elif not arguments.quiet:
        sys.stdout.write(text().rstrip("\n") + "\n")
