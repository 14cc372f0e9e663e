"""Checks a cell against a field of a spec: could the field have written it?"""

import datetime as dt
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import orjson

from generators.columns import from_values
from generators.kinds import Kind
from generators.kinds.derived import Conditional
from generators.kinds.identity import Sequence, Uuid
from generators.kinds.instants import Instants
from generators.kinds.labels import Choice, Scale, Truth
from generators.kinds.lookup import FromFile
from generators.kinds.nested import Document
from generators.kinds.numbers import Integer, Normal, Quantiles, Uniform, Zipf
from generators.kinds.text import Template
from generators.sources import Sources
from generators.spec import Field, Spec

Row = Mapping[str, str]
Verdict = Callable[[str, Row], str | None]

_PARSED_CODES = set("YmdHMSfjbBaAyIp%")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def acceptance(field: Field, spec: Spec, sources: Sources) -> Verdict:
    """A function that says what is wrong with a cell of this field; None when nothing is."""
    verdict = _verdict(field.kind, sources)
    optional = _may_be_missing(field.name, {other.name: other for other in spec.fields})

    def judge(cell: str, row: Row) -> str | None:
        return None if optional and not cell else verdict(cell, row)

    return judge


def _may_be_missing(name: str, fields: Mapping[str, Field]) -> bool:
    """Whether the field can be empty, by its own definition or through a field that it is derived from."""
    field = fields[name]
    inputs = field.kind.inputs() if field.kind.derived else frozenset()
    return field.nullable > 0 or any(_may_be_missing(other, fields) for other in sorted(inputs))


def _verdict(kind: Kind, sources: Sources) -> Verdict:
    """That of the kind; one that is not in the table accepts every cell."""
    of_kind = _OF_KIND.get(type(kind))
    return of_kind(kind, sources) if of_kind else lambda _cell, _row: None


def _number(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _between(low: float, high: float, decimals: int | None) -> Verdict:
    # A rounded value may lie outside the range by half a unit of its last digit.
    slack = 0.5 * 10.0**-decimals if decimals is not None else 0.0

    def judge(cell: str, _: Row) -> str | None:
        value = _number(cell)
        if value is None:
            return "not a number"
        return None if low - slack <= value <= high + slack else f"not between {low:g} and {high:g}"

    return judge


def _normal(kind: Normal, _: Sources) -> Verdict:
    low, high = kind.low, kind.high
    if kind.exponential:
        low, high = math.exp(low) * (1 - 1e-12), math.exp(high) * (1 + 1e-12) if high < 709 else math.inf
    return _between(low, high, kind.decimals)


def _whole(low: int, high: int, step: int) -> Verdict:
    def judge(cell: str, _: Row) -> str | None:
        if not re.fullmatch(r"-?\d{1,19}", cell):
            return "not an integer"
        value = int(cell)
        if not low <= value <= high:
            return f"not between {low} and {high}"
        return None if (value - low) % step == 0 else f"not {low} plus a multiple of {step}"

    return judge


def _one_of(values: Iterable[object]) -> Verdict:
    allowed = set(from_values(list(values)).text().filled(""))

    def judge(cell: str, _: Row) -> str | None:
        return None if cell in allowed else f"not one of {', '.join(sorted(allowed)[:20])}"

    return judge


def _sequence(kind: Sequence, _: Sources) -> Verdict:
    number = re.compile(re.escape(kind.prefix) + (rf"-?\d{{{kind.width},}}" if kind.width else r"-?\d+"))
    return lambda cell, _: None if number.fullmatch(cell) else "not a number of this sequence"


def _document(_kind: Document, _: Sources) -> Verdict:
    def judge(cell: str, _: Row) -> str | None:
        try:
            orjson.loads(cell)
        except orjson.JSONDecodeError as error:
            return f"not JSON: {error.msg}"
        return None

    return judge


def _template(kind: Template, _: Sources) -> Verdict:
    pattern = re.compile(
        "".join(re.escape(text) + (".*" if name is not None else "") for text, name, _ in kind.parts), re.DOTALL
    )
    shown = "".join(text + (f"{{{name}}}" if name is not None else "") for text, name, _ in kind.parts)
    return lambda cell, _: None if pattern.fullmatch(cell) else f"not of the form {shown}"


def _instants(kind: Instants, _: Sources) -> Verdict:
    form = kind.form
    if set(re.findall(r"%(.)", form)) - _PARSED_CODES:
        return lambda _cell, _row: None  # strptime lacks some codes of strftime
    # Without a complete date there is nothing to compare with the range.
    complete = "%Y" in form and ("%d" in form or "%j" in form)

    def judge(cell: str, _: Row) -> str | None:
        try:
            moment = dt.datetime.strptime(cell, form).replace(tzinfo=dt.UTC)
        except ValueError:
            return f"not a date or time of the form {form}"
        at = round(moment.timestamp() * 1000)
        day = 86_400_000
        return None if not complete or kind.start_ms - day < at < kind.end_ms else "outside the range"

    return judge


def _conditional(kind: Conditional, sources: Sources) -> Verdict:
    cases = {key: _verdict(case, sources) for key, case in kind.cases.items()}
    otherwise = _verdict(kind.otherwise, sources) if kind.otherwise is not None else None

    def judge(cell: str, row: Row) -> str | None:
        chosen = cases.get(row.get(kind.by, ""), otherwise)
        if chosen is None:
            return None  # the deciding field is hidden, or is itself wrong
        # When another case has fractions, whole numbers are written as 7.0.
        problem = chosen(cell, row)
        return chosen(cell.removesuffix(".0"), row) if problem is not None and cell.endswith(".0") else problem

    return judge


_OF_KIND: Mapping[type, Callable[[Any, Sources], Verdict]] = {
    Uniform: lambda kind, _: _between(kind.low, kind.high, kind.decimals),
    Quantiles: lambda kind, _: _between(kind.points[0], kind.points[-1], kind.decimals),
    Normal: _normal, Integer: lambda kind, _: _whole(kind.low, kind.high, kind.step),
    Zipf: lambda kind, _: _whole(1, kind.size, 1), Choice: lambda kind, _: _one_of(kind.values),
    Scale: lambda kind, _: _one_of(kind.values), Truth: lambda _kind, _: _one_of([True, False]),
    FromFile: lambda kind, sources: _one_of(set(sources.table(kind.path)[kind.column].text().to_list())),
    Uuid: lambda _kind, _: lambda cell, _: None if _UUID.fullmatch(cell) else "not a UUID",
    Sequence: _sequence, Document: _document, Template: _template, Instants: _instants, Conditional: _conditional,
}  # fmt: skip
