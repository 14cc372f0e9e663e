"""Columns of very many rows are looked up in blocks, with the same answers as at once."""

from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest

from harness.analysis.cost.cost import cost, goodput, pending
from harness.analysis.timeline import columns
from harness.analysis.timeline.columns import blocks, category, looked_up, occurring, summed
from tests.support.timelines import burst


@pytest.fixture(autouse=True)
def _few_rows(monkeypatch):
    monkeypatch.setattr(columns, "_BLOCK", 3)


@pytest.mark.parametrize("count", [0, 1, 3, 4, 7])
def test_blocks_cover_each_row_once(count):
    assert [k for here in blocks(count) for k in range(count)[here]] == list(range(count))


@pytest.mark.parametrize("codes", [[], [2, 0, -1, 1, 2, -1, 0]], ids=str)
def test_the_last_value_is_that_of_missing_codes(codes):
    at, values = np.array(codes, dtype=np.int8), np.array([1.5, 2.5, 3.5, np.nan])
    np.testing.assert_array_equal(looked_up(values, at), values[at])


@pytest.mark.parametrize("codes", [[], [-1], [2, 0, -1, 2, 2]], ids=str)
def test_codes_that_occur_are_told(codes):
    assert occurring(np.array(codes, dtype=np.int8), 4).tolist() == [k in codes for k in range(4)]


@pytest.mark.parametrize("dtype", ["str", "category"])
def test_categories_are_in_alphabetical_order_with_nothing_for_missing_texts(dtype):
    column = pd.Series(["b", None, "a", "b", "c"], dtype="str").astype(dtype)
    found = category(column)
    assert found.tolist() == ["b", "", "a", "b", "c"]
    assert found.cat.categories.tolist() == ["", "a", "b", "c"]


@pytest.mark.parametrize("numbers", [[], [2, 0, 1, 2, 2, 0, 1, 1]], ids=str)
def test_chosen_weights_are_summed_by_number(numbers):
    at, weights = np.array(numbers, dtype=np.int32), np.arange(1.0, 9.0)[: len(numbers)]
    chosen = weights != 4
    assert summed(at, weights, chosen, 4).tolist() == np.bincount(at[chosen], weights[chosen], 4).tolist()


def test_costs_of_many_pods_are_added_up_in_blocks(tmp_path, monkeypatch):
    story = burst(20, pool=3)
    in_blocks, at_once = story.timeline(tmp_path / "a"), story.timeline(tmp_path / "b")
    found = [asdict(each) for each in (cost(in_blocks), pending(in_blocks), *goodput(in_blocks))]
    monkeypatch.setattr(columns, "_BLOCK", 2**20)
    expected = [asdict(each) for each in (cost(at_once), pending(at_once), *goodput(at_once))]
    assert len(found) == 3
    assert found[0]["busy_hours"] > 0
    for ours, theirs in zip(found, expected, strict=True):
        assert ours == {
            name: pytest.approx(value) if isinstance(value, float) else value for name, value in theirs.items()
        }
