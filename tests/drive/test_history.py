import math

from hypothesis import given
from hypothesis import strategies as st

from harness.drive.history import History


def told(count):
    return {"intended": 10_000, "in_flight": count, "awaited": 1, "done": 0, "failed": 0}


@given(st.integers(1, 5000))
def test_it_keeps_the_whole_test_in_few_points(seconds):
    history = History()
    for second in range(seconds):
        history.add(told(second), {"ready_nodes": 3}, float(second))
    columns = history.columns()
    assert columns["at_s"][0] == 0
    assert columns["at_s"] == columns["in_flight"] == sorted(set(columns["at_s"]))
    assert len(columns["at_s"]) <= 720
    assert columns["at_s"][-1] >= 0.98 * (seconds - 1) - 1
    assert set(columns["ready_nodes"]) == {3}


def test_before_the_ledger_is_open_there_is_no_point():
    history = History()
    history.add({"stage": "preparing"}, {}, 0.0)
    assert history.columns()["at_s"] == []


def test_nodes_that_were_not_observed_are_unknown():
    history = History()
    history.add(told(1), {}, 0.0)
    (nodes,) = history.columns()["ready_nodes"]
    assert math.isnan(nodes)
