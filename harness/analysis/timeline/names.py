"""Names of pods: by far the most texts of a large test, and seldom read."""

from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from harness.analysis.timeline.columns import Bools, Ints


class Names:
    """Texts by position, compressed in blocks.

    Args:
        blocks: one row per block, in their order: count (of texts), texts (an Arrow stream of one batch with one column
            of strings, none of them missing).
    """

    def __init__(self, blocks: pd.DataFrame) -> None:
        self._blocks: list[bytes] = blocks["texts"].to_list()
        self._first = np.concatenate(([0], np.cumsum(blocks["count"].to_numpy(dtype=np.int64))))
        self._texts = lru_cache(1)(self._read)  # who asks for one name asks for its neighbours

    def __len__(self) -> int:
        return int(self._first[-1])

    def __getitem__(self, at: int) -> str:
        return str(self.take(np.array([at]))[0])

    def take(self, at: Ints) -> "pd.Series[str]":
        """The texts at these positions, in their order."""
        order = np.argsort(at, kind="stable")
        borders = np.searchsorted(at, self._first, sorter=order)
        found = [
            self._texts(k).take(pa.array(at[order[low:high]] - self._first[k]))
            for k, (low, high) in enumerate(pairwise(borders))
            if low < high
        ]
        place = np.empty(order.size, dtype=np.int64)
        place[order] = np.arange(order.size)
        return pd.Series(pa.chunked_array(found, pa.string()).take(pa.array(place)), dtype="str")

    def where(self, holds: "Callable[[pd.Series[str]], Any]") -> Bools:
        """Whether it holds for each of the texts; it is asked for many of them at once."""
        answers = [holds(pd.Series(self._texts(k), dtype="str")) for k in range(len(self._blocks))]
        return np.concatenate([np.zeros(0, np.bool_), *(np.asarray(answer, dtype=np.bool_) for answer in answers)])

    def _read(self, block: int) -> pa.Array:
        return pa.ipc.open_stream(self._blocks[block]).read_next_batch().column(0)
