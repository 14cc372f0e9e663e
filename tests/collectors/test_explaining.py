"""What of a record belongs to a past time."""

import pytest

from harness.collectors.explaining import Window
from harness.model import Event, Node, Sample, Span
from harness.model.phases import NOT_REACHABLE, REQUESTED_CPU_CORES, RUN, STORE_AVAILABLE_BYTES

WINDOW = Window(100, 200)


def node(created_at: int, gone_at: int | None) -> Node:
    return Node("n", "p", created_at, created_at, gone_at, 4.0, 8.0)


@pytest.mark.parametrize(
    ("record", "kept"),
    [
        (Span("r", "", RUN, 120, 180), Span("r", "", RUN, 120, 180)),
        (Span("r", "", RUN, 120, 250), Span("r", "", RUN, 120, None)),  # it was going on
        (Span("r", "", RUN, 220, 250), None),
        (node(50, 250), node(50, None)),
        (node(220, None), None),
        (Event(150, "Pod", "p", "Failed"), Event(150, "Pod", "p", "Failed")),
        (Event(250, "Run", "r", "SUCCEEDED"), None),
        (Event(250, "Observer", "s", NOT_REACHABLE), Event(100, "Observer", "s", NOT_REACHABLE)),
        (Sample(REQUESTED_CPU_CORES, 250, 1.0), Sample(REQUESTED_CPU_CORES, 100, 1.0)),  # a pod's request lasts
        (Sample(STORE_AVAILABLE_BYTES, 250, 1.0), None),  # free space does not
    ],
)
def test_a_record_is_cut_to_the_time(record: object, kept: object) -> None:
    assert WINDOW.clip(record) == kept
