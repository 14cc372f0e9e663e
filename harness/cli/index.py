"""``pipeswarm index RUNS``: one page that lists the runs of a folder and how their figures move from run to run."""

import argparse
from pathlib import Path

from harness.cli import printing


def configure(parser: argparse.ArgumentParser) -> None:
    """The verb's options."""
    parser.add_argument("runs", type=Path, nargs="?", default=Path("runs"), help="the folder of run folders (runs)")
    parser.add_argument("--open", action="store_true", help="show index.html in the browser")
    printing.configure(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write the page from the reports that are there; nothing is analysed again."""
    from harness.model.errors import ExitCode
    from reports import index

    page = index.write_index(arguments.runs)
    listed = index.entries(arguments.runs)
    printing.show(
        arguments,
        lambda: "\n".join([*map(index.line, listed), f"index: {page}"]),
        lambda: index.document(listed).decode(),
    )
    if arguments.open:
        import webbrowser

        webbrowser.open(page.resolve().as_uri())
    return ExitCode.OK
