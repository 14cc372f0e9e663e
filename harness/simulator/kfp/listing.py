"""Lists of the KFP API: filters, sorting and keyset pages, with the server's rules and refusals.

The tables say by which keys runs, experiments, pipelines and their versions can be sorted and filtered.
"""

import json
import operator
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from string import ascii_letters, digits
from typing import Any, Generic, TypeVar

import orjson

from harness.simulator.engine.calendar import Calendar
from harness.simulator.kfp.errors import bad_token, invalid, malformed
from harness.simulator.kfp.records import Experiment, Pipeline, Run, Version
from harness.simulator.kfp.wire import snake

DEFAULT_PAGE, MOST_PER_PAGE = 20, 200
_BASE64 = frozenset(ascii_letters + digits + "+/=")
Row = TypeVar("Row")
Value = str | int | float

_OPERATIONS = {
    "EQUALS": 1, "NOT_EQUALS": 2, "GREATER_THAN": 3, "GREATER_THAN_EQUALS": 5, "LESS_THAN": 6, "LESS_THAN_EQUALS": 7,
    "IN": 8, "IS_SUBSTRING": 9,
}  # fmt: skip
_TESTS: Mapping[int, Callable[[Any, Any], bool]] = {
    1: operator.eq, 2: operator.ne, 3: operator.gt, 5: operator.ge, 6: operator.lt, 7: operator.le,
    8: lambda has, wanted: has in wanted, 9: lambda has, wanted: str(wanted).lower() in str(has).lower(),
}  # fmt: skip
_VALUES = ("string_value", "int_value", "long_value", "timestamp_value")
_LISTS = ("string_values", "int_values", "long_values")
_GO = {  # the server's names for their types
    "string_value": "string", "int_value": "int32", "long_value": "int64", "timestamp_value": "int64",
    "string_values": "[]string", "int_values": "[]int32", "long_values": "[]int64",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Table(Generic[Row]):
    """The keys to sort and filter by, with their values in a row. Instants are whole seconds since 1970."""

    kind: str
    keys: Mapping[str, Callable[[Row], Value]]
    id_of: Callable[[Row], str]
    default_sort: str = "created_at"


@dataclass(frozen=True, slots=True)
class Listing(Generic[Row]):
    """One page, the total number of rows, and the token of the next page ("" on the last)."""

    rows: list[Row]
    total: int
    next_token: str


def read_page(table: Table[Row], rows: Sequence[Row], query: Mapping[str, str]) -> Listing[Row]:
    """The page for a query.

    The token names the first row of a page by sort value and id, so new rows do not shift pages.

    Raises:
        RpcError: 400: unknown keys, malformed filters, or a token of another query.
    """
    filter_text, sort_text = query.get("filter", ""), query.get("sort_by", "")
    token = _decode(query.get("page_token", ""))
    if token is not None:
        if (sort_text or filter_text) and not _matches(table, token, sort_text, filter_text):
            raise invalid(
                "page token does not match the supplied sort by and/or filtering criteria. Either specify the same "
                "criteria or leave the latter empty if page token is specified"
            )
        if token["sort"] not in table.keys:
            failed, unknown = f"Failed to list {table.kind.lower()}s", f'cannot sort by field "{token["sort"]}"'
            raise invalid(f'{unknown} on type "{table.kind}"').within(failed).within(failed, complete=True)
        filter_text, sort, descending = str(token["filter"]), str(token["sort"]), bool(token["desc"])
    else:
        sort, descending = _sort(table, sort_text)
    tests = _tests(table, filter_text) if filter_text else []
    chosen = [row for row in rows if all(test(row) for test in tests)] if tests else list(rows)
    value, id_of = table.keys[sort], table.id_of

    def place(row: Row) -> tuple[Value, str]:
        return value(row), id_of(row)

    chosen.sort(key=place, reverse=descending)
    total, reached = len(chosen), operator.le if descending else operator.ge
    if token is not None:
        try:
            chosen = [row for row in chosen if reached(place(row), (token["value"], token["id"]))]
        except TypeError as error:
            raise bad_token(str(error)) from error
    size = _size(query.get("page_size", ""))
    following = ""
    if len(chosen) > size:
        first = chosen[size]
        parts = {"sort": sort, "desc": descending, "filter": filter_text, "value": value(first), "id": id_of(first)}
        following = b64encode(orjson.dumps(parts)).decode()
    return Listing(chosen[:size], total, following)


def _matches(table: Table[Row], token: Mapping[str, Any], sort_text: str, filter_text: str) -> bool:
    """Whether a query repeats the order and filter of its token (the alternative is to give neither).

    A timestamp never matches: the server compares its parsed integer with the float in the decoded token.
    """
    if "timestamp" in filter_text.lower():
        return False
    return _sort(table, sort_text) == (token["sort"], token["desc"]) and filter_text == token["filter"]


def _size(text: str) -> int:
    if not text:
        return DEFAULT_PAGE
    try:
        size = int(text)
    except ValueError:
        raise malformed(f'parsing field "page_size": strconv.ParseInt: parsing "{text}": invalid syntax') from None
    if size < 0:
        raise invalid(f"The page size should be greater than 0. Got {size}")
    return min(size, MOST_PER_PAGE) or DEFAULT_PAGE


def _decode(text: str) -> dict[str, Any] | None:
    if not text:
        return None
    try:
        data = b64decode(text, validate=True)
    except ValueError:
        wrong = next((k for k, letter in enumerate(text) if letter not in _BASE64), len(text) // 4 * 4)
        raise bad_token(f"illegal base64 data at input byte {wrong}") from None
    try:
        token = orjson.loads(data)
    except ValueError:
        first = json.dumps(chr(data[0])) if data else '""'
        raise bad_token(f"invalid character '{first[1:-1]}' looking for beginning of value") from None
    unset = {"sort": "", "desc": False, "filter": "", "value": "", "id": ""}
    if not isinstance(token, dict) or any(type(token.get(name, "")) is not str for name in ("sort", "filter", "id")):
        raise bad_token("json: cannot unmarshal")
    return unset | token


def _sort(table: Table[Row], text: str) -> tuple[str, bool]:
    words = text.lower().split()
    if not words:
        return table.default_sort, False
    if len(words) > 2 or (len(words) == 2 and words[1] not in {"asc", "desc"}):
        formats = '"field_name", "field_name desc", or "field_name asc"'
        raise invalid(f'Received invalid sort by format "{text}". Supported format: {formats}')
    if words[0] not in table.keys:
        raise invalid(f'Invalid sorting field: "{words[0]}" on listable type {table.kind}')
    return words[0], len(words) == 2 and words[1] == "desc"


def _tests(table: Table[Row], text: str) -> list[Callable[[Row], bool]]:
    try:
        document = orjson.loads(text)
        predicates = document.get("predicates", [])
        return [_test(table, predicate) for predicate in predicates]
    except orjson.JSONDecodeError as error:
        raise invalid(f'failed to parse valid filter from "{text}": proto: unexpected EOF') from error
    except (ValueError, AttributeError, TypeError) as error:
        raise invalid(f'failed to parse valid filter from "{text}": {error}') from error


def _test(table: Table[Row], predicate: Mapping[str, Any]) -> Callable[[Row], bool]:
    given = {snake(name): value for name, value in predicate.items()}
    asked = given.pop("operation", given.pop("op", 0))
    number = _OPERATIONS.get(asked, 0) if isinstance(asked, str) else int(asked)
    key = str(given.pop("key", ""))
    if len(given) != 1:
        raise ValueError(f"the predicate on {key} needs exactly one value")
    (name, value), name_of = next(iter(given.items())), {each: text for text, each in _OPERATIONS.items()}
    if name not in (*_LISTS, *_VALUES):
        raise ValueError(f'proto: unknown field "{name}"')
    if number not in _TESTS:
        raise invalid(f"invalid predicate operation: {name_of.get(number, 'OPERATION_UNSPECIFIED')}")
    if number == _OPERATIONS["IN"] and name in _VALUES:
        raise invalid(f"cannot use IN operator with scalar type {_GO[name]}")
    if number == _OPERATIONS["IS_SUBSTRING"] and name != "string_value":
        raise invalid(f"cannot use non string value type {_GO[name]} with operator IS_SUBSTRING")
    if number != _OPERATIONS["IN"] and name in _LISTS:
        raise invalid(f"cannot use scalar operator {name_of[number]} on array type {_GO[name]}")
    if key not in table.keys:
        raise invalid(f'no support for filtering on unrecognized field "{key}"')
    wanted: object = {_plain(name, each) for each in value.get("values", ())} if name in _LISTS else _plain(name, value)
    test, get = _TESTS[number], table.keys[key]
    return lambda row: _holds(test, get(row), wanted)


def _holds(test: Callable[[Any, Any], bool], has: Value, wanted: object) -> bool:
    try:
        return test(has, wanted)
    except TypeError:  # a number and a text: the database compares them as texts
        return test(str(has), str(wanted))


def _plain(name: str, value: object) -> Value:
    if name == "timestamp_value":
        return int(datetime.fromisoformat(str(value)).timestamp())
    if name.startswith(("int_", "long_")):
        return int(str(value))
    return str(value)


Keys = dict[str, Callable[[Any], str | int]]


def runs(calendar: Calendar) -> Table[Run]:
    """The keys of runs. With a single user nothing has a namespace."""
    second = calendar.second
    more: Keys = {
        "finished_at": lambda run: 0 if run.finished is None else second(run.finished),
        "scheduled_at": lambda run: second(run.created),
        "storage_state": lambda run: run.storage_state,
        "state": lambda run: run.state,
        "status": lambda run: run.state,
        "namespace": lambda run: run.namespace,
        "experiment_id": lambda run: run.experiment_id,
        "recurring_run_id": lambda _: "",
    }
    return Table("Run", {**_named("run", calendar), **more}, lambda run: run.id)


def experiments(calendar: Calendar) -> Table[Experiment]:
    """The keys of experiments."""
    more: Keys = {
        "namespace": lambda row: row.namespace,
        "storage_state": lambda row: row.storage_state,
        "last_run_created_at": lambda row: 0 if row.last_run is None else calendar.second(row.last_run),
    }
    return Table("Experiment", {**_named("experiment", calendar), **more}, lambda row: row.id)


def pipelines(calendar: Calendar) -> Table[Pipeline]:
    """The keys of pipelines."""
    more: Keys = {"namespace": lambda row: row.namespace}
    return Table("Pipeline", {**_named("pipeline", calendar), **more}, lambda row: row.id)


def versions(calendar: Calendar) -> Table[Version]:
    """The keys of pipeline versions."""
    return Table("PipelineVersion", _named("pipeline_version", calendar), lambda row: row.id)


def _named(kind: str, calendar: Calendar) -> Keys:
    """The common keys; id and name can each be spelled in two ways."""
    return {
        f"{kind}_id": lambda row: row.id,
        "id": lambda row: row.id,
        "display_name": lambda row: row.name,
        "name": lambda row: row.name,
        "created_at": lambda row: calendar.second(row.created),
        "description": lambda row: row.description,
    }
