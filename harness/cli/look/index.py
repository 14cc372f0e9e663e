"""``pipeswarm report RUNS``: one page that lists the runs of a folder, with trends from run to run."""

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from harness.cli import printing
from harness.cli.look.changes import changes
from harness.model.errors import ConfigError, ExitCode
from harness.store.folder import INDEX, MANIFEST, REPORT, RunFolder
from reports import index
from reports.index import Entry


def show(arguments: argparse.Namespace) -> int:
    """Write the page from existing reports, and list the runs, or what `arguments.changes` asks for."""
    page = write_index(arguments.run)
    if arguments.changes:
        return _changes(arguments)
    listed = entries(arguments.run)
    printing.show(
        arguments,
        lambda: "\n".join([*map(index.line, listed), f"index: {page}"]),
        lambda: index.document(listed).decode(),
    )
    if arguments.open:
        printing.browse(page)
    return ExitCode.OK


def _changes(arguments: argparse.Namespace) -> int:
    found = changes(entries(arguments.run))
    printing.show(
        arguments,
        lambda: "\n".join(line for change in found for line in printing.wrapped(change.sentence)) or "no change found",
        lambda: json.dumps({"changes": [asdict(change) for change in found]}, indent=2, ensure_ascii=False),
    )
    recent = any(change.worse and change.age <= arguments.recent for change in found)
    return ExitCode.SLO_FAILED if recent else ExitCode.OK


def write_index(runs_dir: Path) -> Path:
    """Write ``index.html`` of all runs below `runs_dir` and return its path.

    Raises:
        ConfigError: `runs_dir` is not a folder, or can't be written.
    """
    if not runs_dir.is_dir():
        raise ConfigError(f"there is no folder {runs_dir}", "give the folder that holds the runs, such as runs/")
    try:
        return RunFolder(runs_dir).replace(INDEX, index.render(entries(runs_dir)))
    except OSError as error:
        raise ConfigError(f"{runs_dir / INDEX} can't be written: {error.strerror}", "check its permissions") from error


def holds_runs(path: Path) -> bool:
    """Whether a folder is no run folder itself, but holds some."""
    return path.is_dir() and not RunFolder(path).has(MANIFEST) and bool(_runs(path))


def entries(runs_dir: Path) -> list[Entry]:
    """The runs below a folder, newest first; runs without a readable report are listed as such."""
    return sorted(map(_entry, _runs(runs_dir)), key=lambda entry: (-entry.started_at, entry.folder))


def _runs(path: Path) -> list[Path]:
    return [each for each in sorted(path.iterdir()) if each.is_dir() and RunFolder(each).has(MANIFEST)]


def _entry(path: Path) -> Entry:
    try:
        report = RunFolder(path).read_bytes(REPORT)
    except (OSError, ConfigError):
        report = b""
    try:
        plan = RunFolder(path).read_plan()
    except ConfigError:
        plan = None
    return index.entry(path.name, report, plan)
