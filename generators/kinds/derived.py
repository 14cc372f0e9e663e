"""Values that follow from other fields: expression, and one definition for each value of another field."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from generators.block import Block
from generators.columns import Column, Values
from generators.document import Place
from generators.formula import Formula, formula
from generators.kinds.kind import Definition, Kind, KindType
from generators.operations import FormulaError


@dataclass(frozen=True, slots=True)
class Computed:
    """A formula of other fields; a result outside [low, high] is moved to the nearer end."""

    formula: Formula
    low: float | None = None
    high: float | None = None

    main: ClassVar[str] = "formula"
    monotone: ClassVar[bool] = False
    derived: ClassVar[bool] = True

    @classmethod
    def read(cls, definition: Definition, place: Place) -> Kind:
        """The formula, min, max."""
        try:
            checked = formula(str(definition["formula"]))
        except FormulaError as error:
            raise (place / "formula").error(str(error), "see the list of operators in docs/scenarios.md") from error
        return cls(checked, definition.get("min"), definition.get("max"))

    def inputs(self) -> frozenset[str]:
        """The names in the formula."""
        return self.formula.names

    def draw(self, block: Block) -> Column:
        """The formula's value."""
        columns = {name: block.columns[name].values for name in self.formula.names}
        values = self.formula.evaluate(columns, len(block))
        if self.low is None and self.high is None:
            return Values(values)
        if not values.dtype.is_numeric():
            raise FormulaError("min and max need a number")
        return Values(values.clip(self.low, self.high))


@dataclass(frozen=True, slots=True)
class Conditional:
    """The kind that `cases` has for the value of the field `by`, else `otherwise`."""

    by: str
    cases: Mapping[str, Kind]
    otherwise: Kind | None = None

    monotone: ClassVar[bool] = False

    @property
    def derived(self) -> bool:
        """True when every case is."""
        return all(kind.derived for kind in self._kinds())

    def _kinds(self) -> list[Kind]:
        return [*self.cases.values(), *([self.otherwise] if self.otherwise else [])]

    def inputs(self) -> frozenset[str]:
        """The field `by`, and what the cases need."""
        return frozenset({self.by}).union(*(kind.inputs() for kind in self._kinds()))

    def draw(self, block: Block) -> Column:
        """Every case is drawn for all rows, then each row takes its own: a row does not depend on the others."""
        keys = block.columns[self.by].text().series()
        present = set(keys.unique())
        rest = ~keys.is_in(list(self.cases)).fill_null(value=False)
        if rest.any() and self.otherwise is None:
            raise FormulaError(f"there is no case for {self.by} = {keys.filter(rest)[0]!r}; add one, or `otherwise`")
        drawn = [
            ((keys == key).fill_null(value=False), _drawn(kind, block.at(f"{block.path}?{key}"), wanted=key in present))
            for key, kind in self.cases.items()
        ]
        if self.otherwise is not None:
            drawn.append((rest, _drawn(self.otherwise, block.at(f"{block.path}?"), wanted=bool(rest.any()))))
        return _merged(drawn, len(block))


def _drawn(kind: Kind, block: Block, *, wanted: bool) -> Column:
    """A case that no row wants is drawn for one row, for its type: types may not depend on the rows of a block."""
    return kind.draw(block if wanted else block.row(block.start, 0))


def _merged(drawn: list[tuple[pl.Series, Column]], rows: int) -> Column:
    columns = [column for _, column in drawn]
    parts = [column.values for column in columns]
    is_json = all(column.is_json for column in columns)
    if len({part.dtype for part in parts}) > 1 or (not is_json and any(column.is_json for column in columns)):
        if all(part.dtype.is_numeric() for part in parts):
            parts = [part.cast(pl.Float64) for part in parts]
        else:
            parts = [column.text().series() for column in columns]
    result = pl.Series([None], dtype=parts[0].dtype).new_from_index(0, rows)
    for (mask, _), part in zip(drawn, parts, strict=True):
        if mask.any():
            result = part.zip_with(mask, result)
    return Values(result, None, is_json)


KINDS: dict[str, KindType] = {"expression": Computed}
