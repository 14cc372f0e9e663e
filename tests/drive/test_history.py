import math

from hypothesis import given
from hypothesis import strategies as st

from harness.drive.session.status_reporter import History
from harness.model.live.state import Counts, LiveLoad


def load(in_flight):
    return LiveLoad("dispatching", "burst", Counts(10_000, accepted=in_flight), awaited=1)


@given(st.integers(1, 5000))
def test_a_test_of_any_length_fits_into_few_points(seconds):
    history = History()
    for second in range(seconds):
        history.add(load(second), {"ready_nodes": 3}, float(second))
    columns = history.columns()
    assert columns["at_s"][0] == 0
    assert columns["at_s"] == columns["in_flight"] == sorted(set(columns["at_s"]))
    assert len(columns["at_s"]) <= 720
    assert columns["at_s"][-1] >= 0.98 * (seconds - 1) - 1
    assert set(columns["ready_nodes"]) == {3}


def test_before_the_ledger_is_open_there_is_no_point():
    history = History()
    history.add(LiveLoad("preparing"), {}, 0.0)
    assert history.columns()["at_s"] == []


def test_unobserved_nodes_are_nan():
    history = History()
    history.add(load(1), {}, 0.0)
    (nodes,) = history.columns()["ready_nodes"]
    assert math.isnan(nodes)
