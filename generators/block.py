"""A block of consecutive rows: all that a kind of field sees while it draws."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from generators import streams
from generators.columns import Column
from generators.sources import Sources
from generators.streams import Floats, Ints, Stream, Words


@dataclass(frozen=True, slots=True)
class Block:
    """Rows [start, stop) of `total`. `columns` holds the columns that the field being drawn refers to.

    `path` names the field being drawn; `attempt` counts the redraws of a row whose value was already taken; `ranks`
    are uniforms that replace a field's own, so that it correlates with another field.
    """

    start: int
    stop: int
    total: int
    seed: int
    sources: Sources
    columns: Mapping[str, Column] = field(default_factory=dict)
    path: str = ""
    attempt: int = 0
    ranks: Mapping[str, Floats] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.stop - self.start

    def at(self, path: str) -> "Block":
        """The same rows of another field, or of a part of this one."""
        return replace(self, path=path)

    def row(self, index: int, attempt: int) -> "Block":
        """Only row `index` (absolute), for its `attempt`-th redraw."""
        offset = index - self.start
        columns = {name: column.take(slice(offset, offset + 1)) for name, column in self.columns.items()}
        ranks = {name: rank[offset : offset + 1] for name, rank in self.ranks.items()}
        return replace(self, start=index, stop=index + 1, columns=columns, ranks=ranks, attempt=attempt)

    def rows(self) -> Ints:
        """The absolute row numbers, from 0."""
        return np.arange(self.start, self.stop, dtype=np.int64)

    def words(self, purpose: str = "", per_row: int = 1) -> Words:
        """Random 64-bit words, `per_row` for each row, as a flat array."""
        if self.attempt:
            purpose = f"{purpose} again {self.attempt}"
        return streams.words(Stream(self.seed, self.path, purpose), self.start, self.stop, per_row)

    def uniform(self, purpose: str = "") -> Floats:
        """For each row one number strictly between 0 and 1."""
        if not purpose and self.path in self.ranks:
            return self.ranks[self.path].copy()
        return streams.uniform(self.words(purpose))

    def index_below(self, size: int, purpose: str = "") -> Ints:
        """For each row one integer in [0, size)."""
        index: Ints = (self.uniform(purpose) * size).astype(np.int64)
        return np.minimum(index, size - 1, out=index)

    def permuted(self, size: int) -> Ints:
        """The positions of the rows in a random permutation of [0, size): no two rows share one."""
        return streams.permuted(Stream(self.seed, self.path, "permutation"), self.rows(), size)
