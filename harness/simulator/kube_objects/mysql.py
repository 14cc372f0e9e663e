"""The MySQL command line, for the statements that operators need and the model can answer."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from harness.simulator.kfp.database import Database
from harness.simulator.platform import Platform

# Indexes of the table of runs, as declared in the API server's model (backend/src/apiserver/model/run.go).
_KEY = (("PRIMARY", ("UUID",)),)
_INDEXES = (
    ("experimentuuid_createatinsec", ("ExperimentUUID", "CreatedAtInSec")),
    ("experimentuuid_conditions_finishedatinsec", ("ExperimentUUID", "Conditions", "FinishedAtInSec")),
    ("namespace_createatinsec", ("Namespace", "CreatedAtInSec")),
    ("namespace_conditions_finishedatinsec", ("Namespace", "Conditions", "FinishedAtInSec")),
)


class Output(NamedTuple):
    """A program's output and exit code."""

    out: str = ""
    err: str = ""
    code: int = 0


def mysql(platform: Platform, arguments: Sequence[str]) -> Output:
    """``mysql -u root [database] -e STATEMENT``: rows as tab-separated values, as without a terminal."""
    if "-e" not in arguments[:-1]:
        return Output(err="the simulated mysql only runs statements given with -e\n", code=1)
    at = arguments.index("-e")
    statement = " ".join(arguments[at + 1].strip().rstrip(";").split())
    for pattern, answer in _STATEMENTS.items():
        found = re.fullmatch(pattern, statement, re.IGNORECASE)
        if found is None:
            continue
        if "run_details" in pattern and "mlpipeline" not in arguments[:at]:
            return _error(1046, "3D000", "No database selected")
        rows = answer(platform, found)
        return Output("".join("\t".join(map(str, row)) + "\n" for row in rows))
    return _error(1064, "42000", "You have an error in your SQL syntax, or the simulated database does not support it")


def _error(number: int, state: str, message: str) -> Output:
    return Output(err=f"ERROR {number} ({state}) at line 1: {message}\n", code=1)


Rows = list[tuple[object, ...]]
_NAMED: tuple[object, ...] = ("Variable_name", "Value")


def _like(values: Mapping[str, object], pattern: str) -> Rows:
    """The values whose names match the LIKE pattern."""
    expression = ".*".join(map(re.escape, pattern.split("%")))
    found: Rows = [item for item in values.items() if re.fullmatch(expression, item[0], re.IGNORECASE)]
    return [_NAMED, *found] if found else []


def _status(platform: Platform, found: re.Match[str]) -> Rows:
    database = platform.server.database
    values = {
        "Max_used_connections": database.most_connected,
        "Queries": database.answered,
        "Threads_connected": database.connected,
        "Threads_running": database.held + 1,
    }
    return _like(values, found[1])


def _variables(platform: Platform, found: re.Match[str]) -> Rows:
    return _like({"max_connections": platform.server.database.limit}, found[1])


def _allow(platform: Platform, found: re.Match[str]) -> Rows:
    platform.server.database.limit_to(int(found[1]))
    return []


def _count(platform: Platform, _: re.Match[str]) -> Rows:
    return [("COUNT(*)",), (len(platform.server.runs),)]


def _indexes(platform: Platform, _: re.Match[str]) -> Rows:
    indexes = _KEY if _scans(platform.server.database) else _KEY + _INDEXES
    head: tuple[object, ...] = ("Table", "Non_unique", "Key_name", "Seq_in_index", "Column_name")
    return [head] + [
        ("run_details", int(name != "PRIMARY"), name, number, column)
        for name, columns in indexes
        for number, column in enumerate(columns, start=1)
    ]


def _scans(database: Database) -> bool:
    """Whether listing runs scans the table because its indexes are missing."""
    return database.row_s > 0


_STATEMENTS: Mapping[str, Callable[[Platform, re.Match[str]], Rows]] = {
    r"SHOW (?:GLOBAL )?STATUS LIKE '([^']*)'": _status,
    r"SHOW (?:GLOBAL )?VARIABLES LIKE '([^']*)'": _variables,
    r"SET GLOBAL max_connections ?= ?([1-9]\d{0,4})": _allow,
    r"SELECT COUNT\(\*\) FROM run_details": _count,
    r"SHOW INDEX(?:ES)? FROM run_details": _indexes,
}
