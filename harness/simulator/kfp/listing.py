"""Lists of the KFP API: filters, sorting and keyset pages, with the server's rules and refusals."""

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

import orjson

from harness.simulator.kfp.errors import invalid

DEFAULT_PAGE, MOST_PER_PAGE = 20, 200
Row = TypeVar("Row")
Value = str | int | float

_OPERATIONS = {
    "EQUALS": 1, "NOT_EQUALS": 2, "GREATER_THAN": 3, "GREATER_THAN_EQUALS": 5, "LESS_THAN": 6, "LESS_THAN_EQUALS": 7,
    "IN": 8, "IS_SUBSTRING": 9,
}  # fmt: skip
_TESTS: Mapping[int, Callable[[Any, Any], bool]] = {
    1: lambda has, wanted: has == wanted,
    2: lambda has, wanted: has != wanted,
    3: lambda has, wanted: has > wanted,
    5: lambda has, wanted: has >= wanted,
    6: lambda has, wanted: has < wanted,
    7: lambda has, wanted: has <= wanted,
    8: lambda has, wanted: has in wanted,
    9: lambda has, wanted: str(wanted).lower() in str(has).lower(),
}
_VALUES = ("string_value", "int_value", "long_value", "timestamp_value")
_LISTS = ("string_values", "int_values", "long_values")
_CAMEL = {
    "stringValue": "string_value", "intValue": "int_value", "longValue": "long_value",
    "timestampValue": "timestamp_value", "stringValues": "string_values", "intValues": "int_values",
    "longValues": "long_values",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Table(Generic[Row]):
    """What can be sorted and filtered by: key → value of a row. Instants are whole seconds since 1970."""

    keys: Mapping[str, Callable[[Row], Value]]
    id_of: Callable[[Row], str]
    default_sort: str = "created_at"


@dataclass(frozen=True, slots=True)
class Listing(Generic[Row]):
    """One page, how many rows there are in all, and the token of the next page ("" on the last)."""

    rows: list[Row]
    total: int
    next_token: str


def read_page(table: Table[Row], rows: Sequence[Row], query: Mapping[str, str]) -> Listing[Row]:
    """The page that a query asks for.

    A page begins at the row that the token names, by its sort value and id: rows that come in between don't shift it.

    Raises:
        RpcError: 400: unknown keys, malformed filters, or a token of another query.
    """
    filter_text, sort_text = query.get("filter", ""), query.get("sort_by", "")
    token = _decode(query.get("page_token", ""))
    if token is not None:
        if sort_text and _sort(table, sort_text) != (token["sort"], token["desc"]):
            raise invalid("Invalid input error: page token does not match the sorting criteria")
        if filter_text and filter_text != token["filter"]:
            raise invalid("Invalid input error: page token does not match the filter")
        filter_text, sort, descending = str(token["filter"]), str(token["sort"]), bool(token["desc"])
    else:
        sort, descending = _sort(table, sort_text)
    tests = _tests(table, filter_text) if filter_text else []
    chosen = [row for row in rows if all(test(row) for test in tests)] if tests else list(rows)
    value, id_of = table.keys[sort], table.id_of
    chosen.sort(key=lambda row: (value(row), id_of(row)), reverse=descending)
    total = len(chosen)
    if token is not None:
        start = (token["value"], token["id"])
        chosen = [
            row
            for row in chosen
            if ((value(row), id_of(row)) <= start if descending else (value(row), id_of(row)) >= start)
        ]
    size = _size(query.get("page_size", ""))
    following = ""
    if len(chosen) > size:
        first = chosen[size]
        parts = {"sort": sort, "desc": descending, "filter": filter_text, "value": value(first), "id": id_of(first)}
        following = b64encode(orjson.dumps(parts)).decode()
    return Listing(chosen[:size], total, following)


def _size(text: str) -> int:
    if not text:
        return DEFAULT_PAGE
    try:
        size = int(text)
    except ValueError:
        raise invalid(f'type mismatch, parameter: page_size, error: strconv.ParseInt: parsing "{text}"') from None
    if size < 0:
        raise invalid(f"Invalid input error: The page size should be greater than 0. Got {size}")
    return min(size, MOST_PER_PAGE) or DEFAULT_PAGE


def _decode(text: str) -> dict[str, Any] | None:
    if not text:
        return None
    try:
        token = orjson.loads(b64decode(text, validate=True))
    except ValueError as error:
        raise invalid(f"Invalid input error: Invalid package token: {error}") from error
    if not isinstance(token, dict) or not {"sort", "desc", "filter", "value", "id"} <= token.keys():
        raise invalid("Invalid input error: Invalid package token")
    return token


def _sort(table: Table[Row], text: str) -> tuple[str, bool]:
    words = text.split()
    if not words:
        return table.default_sort, False
    if len(words) > 2 or (len(words) == 2 and words[1].lower() not in {"asc", "desc"}):
        formats = '"field_name", "field_name desc", or "field_name asc"'
        raise invalid(f"Invalid input error: Received invalid sort by format {text!r}. Supported format: {formats}")
    if words[0] not in table.keys:
        raise invalid(f"Invalid input error: Invalid sorting field: {words[0]!r} on listable type")
    return words[0], len(words) == 2 and words[1].lower() == "desc"


def _tests(table: Table[Row], text: str) -> list[Callable[[Row], bool]]:
    try:
        document = orjson.loads(text)
        predicates = document.get("predicates", [])
        return [_test(table, predicate) for predicate in predicates]
    except (ValueError, AttributeError, TypeError) as error:
        raise invalid(f"Invalid input error: failed to parse filter: {error}") from error


def _test(table: Table[Row], predicate: Mapping[str, Any]) -> Callable[[Row], bool]:
    given = {_CAMEL.get(name, name): value for name, value in predicate.items()}
    operation = given.pop("operation", given.pop("op", 0))
    number = _OPERATIONS.get(operation, 0) if isinstance(operation, str) else int(operation)
    key = str(given.pop("key", ""))
    if number not in _TESTS:
        raise invalid(f"Invalid input error: unknown predicate operation {operation}")
    if key not in table.keys:
        raise invalid(f"Invalid input error: cannot filter on unknown key {key!r}")
    if len(given) != 1:
        raise invalid(f"Invalid input error: the predicate on {key!r} needs exactly one value")
    (name, value), test, get = next(iter(given.items())), _TESTS[number], table.keys[key]
    if name in _LISTS:
        wanted: object = set(value.get("values", ()))
    elif name in _VALUES:
        wanted = _plain(name, value)
    else:
        raise invalid(f'Invalid input error: unknown field "{name}"')
    if (name in _LISTS) != (number == _OPERATIONS["IN"]):
        raise invalid(f"Invalid input error: {name} does not go with operation {operation}")

    def holds(row: Row) -> bool:
        return test(get(row), wanted)

    return holds


def _plain(name: str, value: object) -> Value:
    if name == "timestamp_value":
        return int(datetime.fromisoformat(str(value)).timestamp())
    if name in {"int_value", "long_value"}:
        return int(str(value))
    return str(value)
