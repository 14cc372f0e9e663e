"""Reads the files that schedules come in: YAML, the CSV of a replay, or an earlier run's folder."""

from itertools import zip_longest
from pathlib import Path

from harness import reading
from harness.model.errors import ConfigError
from harness.model.schedules import Document
from harness.store.folder import SCENARIOS, RunFolder
from harness.targets.table import named_rows_of

_HINT = "see --schedule-file"


def read_document(path: Path, file: str) -> Document:
    """A file of the format `file`: "yaml" or "arrivals"; see `Option.file`.

    Raises:
        ConfigError: it can't be read.
    """
    return Document(str(path), _read_yaml(path) if file == "yaml" else _read_arrivals(path))


def scenarios_of(path: Path) -> Path | None:
    """The scenarios of the earlier run at `path`; None where `path` is no run folder, or the run had none.

    Raises:
        ConfigError: their values were hidden when they were recorded.
    """
    if not path.is_dir():
        return None
    folder = RunFolder.open(path)
    if not folder.has(SCENARIOS):
        return None
    if SCENARIOS in folder.read_plan().redacted:
        raise ConfigError(
            f"the scenarios of {path} can't be replayed: values in them are hidden", "give them with --scenarios"
        )
    return path / SCENARIOS


def _read_yaml(path: Path) -> object:
    with reading.readable(f"the schedule file {path}", _HINT):
        documents = reading.parse_yaml(reading.read_text(path), path)
    return documents[0] if documents else None


def _read_arrivals(path: Path) -> object:
    if path.is_dir():
        folder = RunFolder.open(path)
        due_s, ids, tenants = folder.read_schedule(), folder.read_scenario_ids(), folder.read_tenants()
        columns = due_s, ids[: len(due_s)], tenants[: len(due_s)]
        return [
            (line, {"due_s": at_s, "scenario_id": id_, "tenant": tenant})
            for line, (at_s, id_, tenant) in enumerate(zip_longest(*columns, fillvalue=""), 2)
        ]
    return list(named_rows_of(path, ("due_s",), _HINT))
