"""Batches of the sorted table of spans become numbers, categories, and the runs' ids and names."""

import pyarrow as pa
import pytest

from harness.model.phases import RUN, RUNNING
from harness.store.spans import COLUMNS, numbered

# run, step, phase, task, node
ROWS = (
    ("r1", "", RUN, "first run", None),
    ("r1", "", RUN, "its second attempt", None),
    ("r1", "r1-a", RUNNING, "train", "n1"),
    ("r2", "r2-a", RUNNING, "score", "n2"),  # whose run was never listed
    ("r3", "", RUN, "", None),
    ("r3", "r3-a", RUN, "no run", "n1"),
    ("r4", "", RUN, "last run", None),
    ("r4", "", RUNNING, "train", None),
)


def read(size, *, encoded=False):
    """The rows read in batches of a size, their texts as dictionaries or not."""

    def column(values):
        texts = pa.array(values, pa.string())
        return texts.dictionary_encode() if encoded else texts

    parts = [ROWS[low : low + size] for low in range(0, len(ROWS), size)]
    batches = []
    for part in parts:
        texts = dict(zip(COLUMNS, map(column, zip(*part, strict=True)), strict=False))
        batches.append(pa.record_batch({name: texts.get(name, pa.array(range(len(part)))) for name in COLUMNS}))
    return numbered(batches, len(ROWS))


@pytest.mark.parametrize("encoded", [False, True])
@pytest.mark.parametrize("size", [1, 2, 3, len(ROWS)])
def test_a_run_has_the_name_of_its_first_span_and_no_other_text(size, encoded):
    _, runs, _ = read(size, encoded=encoded)
    assert list(zip(runs["run"], runs["name"], strict=True)) == [
        ("r1", "first run"), ("r2", ""), ("r3", ""), ("r4", "last run"),
    ]  # fmt: skip


@pytest.mark.parametrize("size", [1, 2, 3, len(ROWS)])
def test_names_of_runs_are_no_tasks(size):
    """As many categories as runs would take more than the spans themselves."""
    spans, _, _ = read(size, encoded=True)
    assert list(spans["task"].cat.categories) == ["no run", "score", "train"]
    tasks = [
        None if text is None else str(text) for text in spans["task"].astype(object).where(spans["task"].notna(), None)
    ]
    assert tasks == [None, None, "train", "score", None, "no run", None, "train"]


def test_a_category_that_a_batch_knows_and_no_row_has_is_none():
    texts = pa.DictionaryArray.from_arrays(pa.array([1], pa.int32()), pa.array(["unused", "used"]))
    batch = pa.record_batch({name: pa.array([1]) if name.endswith("_at") else texts for name in COLUMNS})
    spans, _, _ = numbered([batch], 1)
    assert list(spans["node"].cat.categories) == ["used"]
