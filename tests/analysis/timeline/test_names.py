"""Names of pods in compressed blocks answer as a plain column does."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from harness.analysis.timeline.columns import within
from harness.analysis.timeline.names import Names
from harness.store.spans import COLUMNS, numbered

PLAIN = pd.Series(["", "r0-train-1", "r0-train-2", "", "r1-train-1", "läuft", "r1-train-3", ""], dtype="str")


def named(*sizes):
    """`Names` of PLAIN, read in batches of these sizes."""
    borders = np.cumsum([0, *sizes])
    batches = [
        pa.record_batch({
            name: pa.array(PLAIN[low:high].to_list() if name == "step" else ["x"] * (high - low))
            if not name.endswith("_at") else pa.array(range(low, high))
            for name in COLUMNS
        })
        for low, high in pairwise(borders)
    ]  # fmt: skip
    return Names(numbered(batches, len(PLAIN))[2])


@pytest.mark.parametrize("sizes", [(8,), (1, 7), (3, 3, 2), (1,) * 8], ids=str)
@pytest.mark.parametrize("at", [[], [0], [7, 0, 7], [5, 4, 3, 2, 1], list(range(8))], ids=str)
def test_names_are_taken_in_the_order_of_their_positions(sizes, at):
    found = named(*sizes).take(np.array(at, dtype=np.int64))
    pd.testing.assert_series_equal(found, PLAIN.take(at).reset_index(drop=True))


@pytest.mark.parametrize("sizes", [(8,), (3, 3, 2)], ids=str)
def test_a_question_is_answered_for_each_name(sizes):
    names = named(*sizes)
    assert names.where(lambda texts: within(texts, {"", "läuft"})).tolist() == PLAIN.isin(["", "läuft"]).tolist()
    assert names.where(lambda texts: texts.str.contains("train")).tolist() == PLAIN.str.contains("train").tolist()
    assert len(names) == len(PLAIN)
    assert [names[k] for k in (6, 0, 1)] == ["r1-train-3", "", "r0-train-1"]


def test_no_names_answer_nothing():
    names = Names(numbered([], 0)[2])
    assert len(names) == 0
    assert names.where(lambda texts: texts == "").size == 0
    assert names.take(np.zeros(0, dtype=np.int64)).empty


def test_spans_of_a_run_that_are_not_adjacent_are_no_sorted_table():
    texts = {name: pa.array(["a", "b", "a"]) for name in COLUMNS if not name.endswith("_at")}
    batch = pa.record_batch({name: texts.get(name, pa.array(range(3))) for name in COLUMNS})
    with pytest.raises(ValueError, match="not adjacent"):
        numbered([batch], 3)
