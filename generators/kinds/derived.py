"""Values that depend on other fields: expressions, and one definition per value of another field."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, floor
from typing import ClassVar

import numpy as np

from generators.block import Block
from generators.columns import Column
from generators.formulas.formula import Formula, formula
from generators.formulas.operations import FormulaError
from generators.kinds.kind import Definition, Kind, KindType
from generators.streams import Bools
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
        values = self.formula.evaluate({name: block.columns[name] for name in self.formula.names}, len(block))
        if self.low is None and self.high is None:
            return values
        if values.kind not in "if":
            raise FormulaError("min and max apply to numbers only")
        low, high = self.low, self.high
        if values.kind == "i":
            low, high = None if low is None else ceil(low), None if high is None else floor(high)
        return Column(np.clip(values.values, low, high), values.missing)


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
        keys = block.columns[self.by].text().to_list()
        present = set(keys)
        cases = [(key, np.array([each == key for each in keys], dtype=bool)) for key in self.cases]
        rest = ~np.logical_or.reduce([mask for _, mask in cases])
        if rest.any() and self.otherwise is None:
            raise FormulaError(f"no case for {self.by} = {keys[int(np.argmax(rest))]!r}; add one, or `otherwise`")
        drawn = [
            (mask, _drawn(self.cases[key], block.at(f"{block.path}?{key}"), wanted=key in present))
            for key, mask in cases
        ]
        if self.otherwise is not None:
            drawn.append((rest, _drawn(self.otherwise, block.at(f"{block.path}?"), wanted=bool(rest.any()))))
        return _merged(drawn, len(block))


def _drawn(kind: Kind, block: Block, *, wanted: bool) -> Column:
    """A case that no row takes is drawn for one row, because column types must not depend on the block."""
    return kind.draw(block if wanted else block.row(block.start, 0))


def _merged(drawn: list[tuple[Bools, Column]], rows: int) -> Column:
    columns = [column for _, column in drawn]
    is_json = all(column.is_json for column in columns)
    if len({column.values.dtype for column in columns}) > 1 or (not is_json and any(c.is_json for c in columns)):
        numbers = all(column.kind in "if" for column in columns)
        columns = [Column(c.values.astype(np.float64), c.missing) if numbers else c.text() for c in columns]
    values, missing = np.zeros(rows, dtype=columns[0].values.dtype), np.zeros(rows, dtype=bool)
    for (mask, _), column in zip(drawn, columns, strict=True):
        if mask.any():
            values[mask] = column.values[mask]
            missing[mask] = False if column.missing is None else column.missing[mask]
    return Column(values, missing if missing.any() else None, is_json)


KINDS: dict[str, KindType] = {"expression": Computed}
