"""``pipeswarm index RUNS``: one page that lists the runs of a folder, with trends from run to run."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli import printing
from harness.model.arguments import count

if TYPE_CHECKING:
    from reports.index import Entry

_NONE = "no runs in {}: give the folder that holds run folders, such as runs/"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument("runs", type=Path, nargs="?", default=Path("runs"), help="the folder of run folders (runs)")
    parser.add_argument("--open", action="store_true", help="show index.html in the browser")
    parser.add_argument(
        "--changes", action="store_true",
        help="list which metric changed with which run; exit code 3 if one became worse within the last --recent runs",
    )  # fmt: skip
    parser.add_argument("--recent", type=count, default=7, metavar="RUNS", help="runs to judge by --changes (7)")
    printing.configure(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write the page from existing reports; nothing is analysed again."""
    from harness.model.errors import ExitCode
    from reports import index

    page = write_index(arguments.runs)
    if arguments.changes:
        return _changes(arguments)
    listed = entries(arguments.runs)
    printing.show(
        arguments,
        lambda: "\n".join(
            [*(map(index.line, listed) if listed else (_NONE.format(arguments.runs),)), f"index: {page}"]
        ),
        lambda: index.document(listed).decode(),
    )
    if arguments.open:
        import webbrowser

        webbrowser.open(page.resolve().as_uri())
    return ExitCode.OK


def _changes(arguments: argparse.Namespace) -> int:
    import json
    from dataclasses import asdict

    from harness.cli.changes import changes
    from harness.model.errors import ExitCode

    found = changes(entries(arguments.runs))
    printing.show(
        arguments,
        lambda: "\n".join(line for each in found for line in printing.wrapped(each.sentence)) or "no change found",
        lambda: json.dumps({"changes": [asdict(each) for each in found]}, indent=2, ensure_ascii=False),
    )
    recent = any(each.worse and each.age <= arguments.recent for each in found)
    return ExitCode.SLO_FAILED if recent else ExitCode.OK


def write_index(runs_dir: Path) -> Path:
    """Write ``index.html`` of all runs below `runs_dir` and return its path.

    Raises:
        ConfigError: `runs_dir` is not a folder, or can't be written.
    """
    from harness.model.errors import ConfigError
    from harness.store.folder import INDEX, RunFolder
    from reports import index

    if not runs_dir.is_dir():
        raise ConfigError(f"there is no folder {runs_dir}", "give the folder that holds the runs, such as runs/")
    try:
        return RunFolder(runs_dir).replace(INDEX, index.render(entries(runs_dir)))
    except OSError as error:
        raise ConfigError(f"{runs_dir / INDEX} can't be written: {error.strerror}", "check its permissions") from error


def entries(runs_dir: Path) -> "list[Entry]":
    """The runs below a folder, newest first; runs without a readable report are listed as such."""
    from harness.store.folder import MANIFEST, RunFolder

    found = [_entry(path) for path in sorted(runs_dir.iterdir()) if path.is_dir() and RunFolder(path).has(MANIFEST)]
    return sorted(found, key=lambda entry: (-entry.started_at, entry.folder))


def _entry(path: Path) -> "Entry":
    from harness.model.errors import ConfigError
    from harness.store.folder import REPORT, RunFolder
    from reports import index

    try:
        report = RunFolder(path).read_bytes(REPORT)
    except (OSError, ConfigError):
        report = b""
    try:
        plan = RunFolder(path).read_plan()
    except ConfigError:
        plan = None
    return index.entry(path.name, report, plan)
