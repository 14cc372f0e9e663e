"""Schedules that come in files: stages as YAML, replays as CSV or as a former run's folder."""

from collections.abc import Mapping
from math import inf, isfinite
from pathlib import Path
from typing import Any

import yaml

from harness.model.concurrency import Level
from harness.model.errors import ConfigError
from harness.model.schedule import Burst, Constant, Poisson, Ramp, Replay, Schedule, Spread, Stages
from harness.model.units import parse_duration, parse_rate
from harness.store.folder import RunFolder
from harness.targets.table import named_rows_of

# What each stage may say beside its schedule, in the words of the command-line options.
_WORDS: Mapping[str, frozenset[str]] = {
    "constant": frozenset({"rate", "for"}),
    "poisson": frozenset({"rate", "for"}),
    "ramp": frozenset({"rate", "for"}),
    "spread": frozenset({"runs", "over", "jitter"}),
    "burst": frozenset({"runs", "every", "times", "ramp-in"}),
}
_OTHERS = ("stages", "replay", "concurrency")  # that are no stage of another


def make(texts: Mapping[str, Any]) -> Schedule:
    """A schedule from its words: ``{"schedule": "constant", "rate": "2/s", "for": "10m"}``.

    Raises:
        ConfigError: a word can't be understood or makes no schedule.
        KeyError: a word that the schedule needs is missing.
    """
    match texts["schedule"]:
        case "constant":
            return Constant(parse_rate(texts["rate"]), parse_duration(texts["for"]))
        case "poisson":
            return Poisson(parse_rate(texts["rate"]), parse_duration(texts["for"]))
        case "ramp":
            start, _, end = str(texts["rate"]).partition("..")
            if not end:
                raise ConfigError(f"'{texts['rate']}' is not a ramp", "write its rate as 1/s..10/s")
            return Ramp(parse_rate(start), parse_rate(end), parse_duration(texts["for"]))
        case "spread":
            return Spread(_whole(texts["runs"]), parse_duration(texts["over"]), _number(texts.get("jitter") or 0))
        case "burst":
            every_s = parse_duration(texts["every"]) if texts.get("every") else 0.0
            ramp_in_s = parse_duration(texts["ramp-in"]) if texts.get("ramp-in") else 0.0
            return Burst(_whole(texts["runs"]), every_s, _whole(texts.get("times") or 1), ramp_in_s)
        case other:
            raise ConfigError(f"there is no schedule '{other}'", f"schedules are: {', '.join((*_WORDS, *_OTHERS))}")


def read_stages(path: Path) -> Stages:
    """Stages from a YAML list such as ``- {schedule: ramp, rate: 1/s..5/s, for: 10m}``.

    Raises:
        ConfigError: naming file and stage.
    """
    stages = _list(path, "stages", "'- schedule: …'")
    return Stages(tuple(_stage(path, number, stage) for number, stage in enumerate(stages, 1)))


def read_levels(path: Path) -> tuple[Level, ...]:
    """Levels of a closed schedule from a YAML list such as ``- {users: 20, for: 10m}``.

    Raises:
        ConfigError: naming file and level.
    """
    levels = []
    for number, raw in enumerate(_list(path, "levels", "'- users: …'"), 1):
        where = f"{path}, level {number}"
        if not isinstance(raw, dict) or "users" not in raw or set(raw) - {"users", "for"}:
            raise ConfigError(f"{where}: it is not a level", "write it as {users: 20, for: 10m}")
        try:
            levels.append(Level(_whole(raw["users"]), parse_duration(raw["for"]) if "for" in raw else None))
        except ConfigError as error:
            raise ConfigError(f"{where}: {error.message}", error.hint) from error
    return tuple(levels)


def _list(path: Path, of: str, begin: str) -> list[Any]:
    try:
        found = yaml.load(_read(path), Loader=yaml.CSafeLoader)  # the safe loader, in C
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not YAML: {error}", f"write a list of {of}") from error
    if not isinstance(found, list) or not found:
        raise ConfigError(f"{path} is not a list of {of}", f"begin each with {begin}")
    return found


def _stage(path: Path, number: int, stage: Any) -> Schedule:
    where = f"{path}, stage {number}"
    if not isinstance(stage, dict) or stage.get("schedule") not in _WORDS:
        raise ConfigError(f"{where}: it names no schedule", f"give schedule: one of {', '.join(_WORDS)}")
    unknown = set(stage) - _WORDS[stage["schedule"]] - {"schedule"}
    if unknown:
        known = ", ".join(sorted(_WORDS[stage["schedule"]]))
        raise ConfigError(f"{where}: {stage['schedule']} has no '{min(unknown)}'", f"it takes {known}")
    try:
        return make(stage)
    except KeyError as missing:
        raise ConfigError(f"{where}: {stage['schedule']} needs {missing}", "add it") from None
    except ConfigError as error:
        raise ConfigError(f"{where}: {error.message}", error.hint) from error


def read_replay(path: Path) -> Replay:
    """The due times of a CSV with a column ``due_s`` (and ``scenario_id``, if there is one), or of a former run.

    Raises:
        ConfigError: naming file and row.
    """
    if path.is_dir():
        return Replay(tuple(RunFolder.open(path).read_schedule()), str(path))
    due_s: list[float] = []
    scenarios: list[str] = []
    for line, row in named_rows_of(path, ("due_s",), "see --schedule-file"):
        scenarios.append(row.get("scenario_id", ""))
        try:
            due_s.append(float(row["due_s"]))
        except ValueError:
            due_s.append(inf)
        if not isfinite(due_s[-1]):
            raise ConfigError(f"{path}, line {line}: '{row['due_s']}' is not a number of seconds", "mend due_s")
    try:
        return Replay(tuple(due_s), str(path), tuple(scenarios) if any(scenarios) else ())
    except ConfigError as error:
        raise ConfigError(f"{path}: {error.message}", error.hint) from error


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(f"there is no schedule file {path}", "see --schedule-file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} can't be read: {error}", "give a readable UTF-8 file") from error


def _whole(text: str | int) -> int:
    try:
        return int(str(text).replace("_", ""))
    except ValueError:
        raise ConfigError(f"'{text}' is not a whole number", "write it in digits") from None


def _number(text: str | float) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"'{text}' is not a number", "write it in digits") from None
