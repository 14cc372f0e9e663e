"""A source that is asked again and again: what is recorded of the times when it did not respond."""

import pytest

from harness.collectors.journal import Journal
from harness.collectors.source_health import Polling, SourceHealth, UnreachableError
from harness.model.records import Event
from harness.store.folder import RunFolder

GAP, RESUMED = "Gap", "Resumed"


class Source:
    """Responds after the given seconds; a negative number is a failure after so long."""

    def __init__(self, responses):
        self.now_s, self.responses = 1_000.0, list(responses)

    def ask(self):
        taken_s = self.responses.pop(0)
        self.now_s += abs(taken_s)
        if taken_s < 0:
            raise UnreachableError("refused")


@pytest.mark.parametrize(
    ("responses", "remembers", "brief_s", "reasons", "text"),
    [
        ([0.1, 9.0, 0.1], False, 0.0, [], ""),
        ([0.1, 25.0, 0.1], False, 0.0, [GAP], "unreachable for 25 s: no response"),
        ([0.1, 25.0, 0.1], True, 0.0, [RESUMED], "unreachable for 25 s: no response"),
        ([0.1, 25.0, 0.1], False, 10.0, [GAP], "unreachable for 25 s: no response"),
        ([0.1, -5.0, -5.0, 15.0], False, 10.0, ["Retry", "Retry", GAP], "unreachable for 25 s: refused"),
        ([0.1, -0.5, 0.5], False, 10.0, ["Retry", RESUMED], "unreachable for 1 s: refused"),
        ([0.1, -0.5, 0.5], False, 0.0, ["Retry", GAP], "unreachable for 1 s: refused"),
        ([0.1, -0.5, 0.5], True, 0.0, ["Retry", RESUMED], "unreachable for 1 s: refused"),
    ],
)
def test_a_time_without_a_response_is_recorded(tmp_path, responses, remembers, brief_s, reasons, text):
    source = Source(responses)
    folder = RunFolder.create(tmp_path, "observed")
    with folder.recorder() as recorder:
        health = SourceHealth("kubernetes", Journal(recorder, now=lambda: round(source.now_s * 1e9)), brief_s=brief_s)
        polling = Polling(health, source.ask, 5.0, remembers=remembers)
        for _ in responses:
            polling.attempt()
    events = folder.records(Event)
    assert [event.reason for event in events] == reasons
    if events:
        assert events[-1].message == text
        assert events[-1].at == round(1000.1e9)  # from when it was asked
