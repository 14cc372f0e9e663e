"""Values that depend on other fields: expressions, and one definition per value of another field."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from generators.block import Block
from generators.columns import Column, Values
from generators.formula import Formula, formula
from generators.kinds.kind import Definition, Kind, KindType
from generators.operations import FormulaError
from harness.documents import Place


@dataclass(frozen=True, slots=True)
class Computed:
    """A formula over other fields; results are clipped to [low, high]."""

    formula: Formula
    low: float | None = None
    high: float | None = None

    main: ClassVar[str] = "formula"
    monotone: ClassVar[bool] = False
    derived: ClassVar[bool] = True

    @classmethod
    def read(cls, definition: Definition, place: Place) -> Kind:
        """See `KindType.read`; the formula with min and max."""
        if "formula" not in definition:
            raise place.error("the formula is missing", "write it as {expression: rows / 50}")
        try:
            checked = formula(str(definition["formula"]))
        except FormulaError as error:
            raise (place / "formula").error(str(error), "docs/scenarios.md lists the operators") from error
        return cls(checked, definition.get("min"), definition.get("max"))

    def inputs(self) -> frozenset[str]:
        """The fields that the formula names."""
        return self.formula.names

    def draw(self, block: Block) -> Column:
        """The values of the formula."""
        columns = {name: block.columns[name].values for name in self.formula.names}
        values = self.formula.evaluate(columns, len(block))
        if self.low is None and self.high is None:
            return Values(values)
        if not values.dtype.is_numeric():
            raise FormulaError("min and max apply to numbers only")
        return Values(values.clip(self.low, self.high))


@dataclass(frozen=True, slots=True)
class Conditional:
    """The kind in `cases` for the value of the field `by`, otherwise `otherwise`."""

    by: str
    cases: Mapping[str, Kind]
    otherwise: Kind | None = None

    monotone: ClassVar[bool] = False

    @property
    def derived(self) -> bool:
        """Whether every case is derived."""
        return all(kind.derived for kind in self._kinds())

    def _kinds(self) -> list[Kind]:
        return [*self.cases.values(), *([self.otherwise] if self.otherwise else [])]

    def inputs(self) -> frozenset[str]:
        """The field `by` and the inputs of the cases."""
        return frozenset({self.by}).union(*(kind.inputs() for kind in self._kinds()))

    def draw(self, block: Block) -> Column:
        """Every case is drawn for all rows and each row takes its own, so rows do not depend on each other."""
        keys = block.columns[self.by].text().series()
        present = set(keys.unique())
        rest = ~keys.is_in(list(self.cases)).fill_null(value=False)
        if rest.any() and self.otherwise is None:
            raise FormulaError(f"no case for {self.by} = {keys.filter(rest)[0]!r}; add one, or `otherwise`")
        drawn = [
            ((keys == key).fill_null(value=False), _drawn(kind, block.at(f"{block.path}?{key}"), wanted=key in present))
            for key, kind in self.cases.items()
        ]
        if self.otherwise is not None:
            drawn.append((rest, _drawn(self.otherwise, block.at(f"{block.path}?"), wanted=bool(rest.any()))))
        return _merged(drawn, len(block))


def _drawn(kind: Kind, block: Block, *, wanted: bool) -> Column:
    """A case that no row takes is drawn for one row, because column types must not depend on the block."""
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
