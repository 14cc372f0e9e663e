"""The schedule that a file describes."""

from pathlib import Path

from harness.model.schedules import Concurrency, Schedule, find_kind
from harness.plan.schedule_files import read_document


def read_schedule(kind: str, path: Path, runs: int | None = None) -> Schedule | Concurrency:
    """The schedule of one kind in a file; `runs` limits a closed one."""
    (option,) = (each for each in find_kind(kind).OPTIONS if each.name == "schedule-file")
    document = read_document(path, option.file)
    return find_kind(kind).parse({"schedule-file": document, "runs": runs, "spawn-rate": 1.0})
