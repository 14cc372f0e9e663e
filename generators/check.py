"""Checks a scenario CSV against a pipeline or a spec, and lists every bad cell by row and column."""

import argparse
import itertools
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from generators.acceptance import acceptance
from generators.inference.parameter import Parameters
from generators.request import Request
from generators.spec import Spec
from harness.model import ExitCode, counted
from harness.model.text.inert import for_output
from harness.targets.scenarios import KEYS, Input, value_of
from harness.targets.table import rows_of

# Says what is wrong with a cell, given its row; None when nothing is.
Verdict = Callable[[str, Mapping[str, str]], str | None]


@dataclass(frozen=True, slots=True)
class BadCell:
    """One error. `row` counts the file's lines, the header being 1; `column` is "" for the row as a whole."""

    row: int
    column: str
    value: str
    problem: str

    def __str__(self) -> str:
        where = f"row {self.row}" + (f", column {self.column}" if self.column else "")
        shown = self.value if len(self.value) <= 60 else self.value[:57] + "…"
        return f"{where}: " + (f"{shown!r} is " if self.column and self.row > 1 else "") + self.problem


@dataclass(frozen=True, slots=True)
class Rule:
    """The columns that a file may have, each with a verdict on its cells; those `required`, and those `unique`."""

    columns: Mapping[str, Verdict]
    required: frozenset[str]
    unique: frozenset[str]


def rule_of(request: Request) -> Rule:
    """The rule of the pipeline if there is one, otherwise of the spec."""
    return _pipeline_rule(request.parameters) if request.parameters is not None else _spec_rule(request)


def _pipeline_rule(parameters: Parameters) -> Rule:
    inputs = parameters.inputs
    columns = dict.fromkeys(KEYS, _not_empty) | {each.name: _verdict(each) for each in inputs}
    return Rule(columns, frozenset({*KEYS, *(each.name for each in inputs if each.required)}), frozenset({"id"}))


def _verdict(wanted: Input) -> Verdict:
    def judge(cell: str, _: Mapping[str, str]) -> str | None:
        if not cell:
            return "empty, but the parameter has no default" if wanted.required else None
        try:
            value_of(cell, wanted)
        except ValueError as error:
            return str(error)
        return None

    return judge


def _not_empty(cell: str, _: Mapping[str, str]) -> str | None:
    return None if cell else "empty"


def _spec_rule(request: Request) -> Rule:
    spec: Spec = request.spec
    columns = {field.name: acceptance(field, spec, request.sources) for field in spec.fields if not field.hidden}
    unique = {field.name for field in spec.fields if field.unique and not field.hidden} | {"id"}
    return Rule(columns, frozenset(columns), frozenset(unique))


def bad_cells(path: Path, rule: Rule) -> Iterator[BadCell]:
    """All errors of a file, in the order of its rows.

    Raises:
        ConfigError: the file can't be read at all.
    """
    return _bad_cells(rows_of(path, "check the file's name"), rule)


def _bad_cells(rows: Iterator[tuple[int, list[str]]], rule: Rule) -> Iterator[BadCell]:
    _, header = next(rows, (0, []))
    if not header:
        yield BadCell(1, "", "", "the file is empty")
        return
    yield from _bad_columns(header, rule)
    seen: dict[str, dict[str, int]] = {name: {} for name in rule.unique if name in header}
    number = 1
    for number, cells in rows:
        if len(cells) != len(header):
            yield BadCell(number, "", "", f"{len(cells)} cells, but the header has {len(header)}")
            continue
        row = dict(zip(header, cells, strict=True))
        for name, cell in row.items():
            problem = rule.columns[name](cell, row) if name in rule.columns else None
            if problem is None and name in seen and cell:
                earlier = seen[name].setdefault(cell, number)
                problem = f"already used in row {earlier}" if earlier != number else None
            if problem is not None:
                yield BadCell(number, name, cell, problem)
    if number == 1:
        yield BadCell(1, "", "", "the file has a header but no rows")


def _bad_columns(header: Sequence[str], rule: Rule) -> Iterator[BadCell]:
    for name in sorted(set(header) - rule.columns.keys()):
        yield BadCell(1, name, name, f"unknown column; columns are {', '.join(rule.columns)}")
    for name in sorted(rule.required - set(header)):
        yield BadCell(1, name, "", "the column is missing")
    for name in sorted(name for name, count in Counter(header).items() if count > 1):
        yield BadCell(1, name, name, "the column is given twice")


def report(request: Request, options: argparse.Namespace) -> int:
    """Check a file and print its bad cells. Returns 0 when there are none, otherwise 2."""
    found = bad_cells(options.check, rule_of(request))
    listed = list(itertools.islice(found, options.limit))
    more = sum(1 for _ in found)
    if options.json:
        cells = [asdict(bad_cell) for bad_cell in listed]
        print(json.dumps({"file": str(options.check), "ok": not listed, "bad": len(listed) + more, "cells": cells}))
    else:
        for bad_cell in listed:
            print(for_output(str(bad_cell)))
        if more:
            print(f"… and {more:,} more")
        if not options.quiet:
            total = len(listed) + more
            print(f"{options.check}: {counted(total, 'bad cell') if total else 'every cell is valid'}", file=sys.stderr)
    return int(ExitCode.BAD_CONFIG if listed else ExitCode.OK)
