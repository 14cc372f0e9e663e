"""Values from a list: choice, boolean, scale."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from generators.block import Block
from generators.columns import Column, from_values
from generators.kinds.kind import Definition, Independent, Kind, KindType
from generators.streams import Ints, weighted
from harness.documents import Place


@dataclass(frozen=True, slots=True)
class Choice(Independent):
    """One of `values`, in proportion to `weights`; `unique` ones in a random order."""

    values: tuple[object, ...]
    weights: tuple[float, ...] = ()
    unique: bool = False

    main: ClassVar[str] = "values"

    @classmethod
    def read(cls, definition: Definition, place: Place) -> Kind:
        """See `KindType.read`; a list of values with optional weights, or a mapping of values to weights."""
        given, weights = definition["values"], tuple(definition.get("weights", ()))
        unique = definition.get("unique", False)
        if isinstance(given, Mapping):
            if weights:
                raise (place / "weights").error("weights are given twice", "keep those next to the values")
            weights = tuple(given.values())
        if weights and len(weights) != len(given):
            raise (place / "weights").error(f"{len(weights)} weights for {len(given)} values", "give one for each")
        if weights and not sum(weights) > 0:
            raise place.error("the weights add up to 0", "give at least one weight above 0")
        if weights and unique:
            raise place.error("unique values can't have weights", "drop one of the two")
        return cls(tuple(given), weights, unique)

    @property
    def size(self) -> int:
        """The number of distinct values."""
        return len(self.values)

    def draw(self, block: Block) -> Column:
        """The value at u's share of the cumulative weight."""
        return from_values(self.values).take(self._index(block))

    def _index(self, block: Block) -> Ints:
        if self.unique:
            return block.permuted(self.size)
        if not self.weights:
            return block.index_below(self.size)
        return weighted(self.weights, block.uniform())


@dataclass(frozen=True, slots=True)
class Truth(Independent):
    """A boolean that is true with probability `p`."""

    p: float = 0.5

    main: ClassVar[str] = "p"

    @classmethod
    def read(cls, definition: Definition, place: Place) -> Kind:  # noqa: ARG003  # the schema has checked it
        """See `KindType.read`; the probability."""
        return cls(definition.get("p", 0.5))

    def draw(self, block: Block) -> Column:
        """True where u is below `p`."""
        return Column(block.uniform() < self.p)


@dataclass(frozen=True, slots=True)
class Scale(Independent):
    """The levels of a sweep, exactly balanced: after any number of rows, no level is more than one ahead of another.

    Each round of len(values) rows has every level once, in random order ("shuffled") or in the given order
    ("in_turn"). "sorted" writes all rows of the first level, then all of the second, so its rows depend on the total.
    """

    values: tuple[object, ...]
    order: str = "shuffled"

    main: ClassVar[str] = "values"

    @classmethod
    def read(cls, definition: Definition, place: Place) -> Kind:  # noqa: ARG003  # the schema has checked it
        """See `KindType.read`; levels and order."""
        return cls(tuple(definition["values"]), definition.get("order", "shuffled"))

    def draw(self, block: Block) -> Column:
        """The level of each row."""
        return from_values(self.values).take(self._index(block))

    def _index(self, block: Block) -> Ints:
        count = len(self.values)
        if self.order == "in_turn":
            return block.rows() % count
        if self.order == "sorted":
            return block.rows() * count // block.total
        first, last = block.start // count, -(-block.stop // count)
        rounds = Block(first, last, last, block.seed, block.sources, path=block.path)
        order = np.argsort(rounds.words(per_row=count).reshape(-1, count), axis=1, kind="stable").ravel()
        return order[block.start - first * count : block.stop - first * count].astype(np.int64)


KINDS: dict[str, KindType] = {"choice": Choice, "boolean": Truth, "scale": Scale}
