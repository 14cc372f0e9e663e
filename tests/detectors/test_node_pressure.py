"""Evictions for lack of ephemeral storage, beside what the evicted steps request of it."""

from dataclasses import replace

import pytest

from harness.detectors import node_pressure
from harness.model import Event, Node
from harness.model.phases import REQUESTED_EPHEMERAL_BYTES
from tests.support.injected.nodes import evicted
from tests.support.timelines import GIB, Story

_WORDS = "The node was low on resource: ephemeral-storage. Threshold quantity: 10120387530, available: 9987652Ki."


def short_of_disk(requested: float | None, allocatable: float = 100.0 * GIB) -> Story:
    story = evicted()
    for place, record in enumerate(story.records):
        match record:
            case Event(reason="Evicted"):
                story.records[place] = replace(record, message=_WORDS)
            case Node():
                story.records[place] = replace(record, ephemeral=allocatable)
    if requested is not None:
        story.sample(0.5, REQUESTED_EPHEMERAL_BYTES, requested, task="prepare")
        story.sample(0.5, REQUESTED_EPHEMERAL_BYTES, 5.0 * GIB, task="train")  # was not evicted
    return story


def statements(story, place):
    (finding,) = node_pressure.detect(story.timeline(place))
    assert "short of ephemeral-storage" in finding.title
    assert finding.fix.startswith("Request ephemeral storage")
    return [each.statement for each in finding.evidence if "request" in each.statement]


@pytest.mark.parametrize(("requested", "amount"), [(0.0, "none"), (2.0 * GIB, "2.0 GiB")])
def test_the_evicted_steps_requests_are_shown_beside_what_a_node_can_allocate(requested, amount, tmp_path):
    room = "the nodes can allocate up to 100.0 GiB each"
    said = statements(short_of_disk(requested), tmp_path)
    assert said == [f"prepare requests {amount} of ephemeral storage; {room}"]


@pytest.mark.parametrize("story", [short_of_disk(None), short_of_disk(1.0, allocatable=0.0)])
def test_requests_that_were_not_observed_are_not_mentioned(story, tmp_path):
    assert statements(story, tmp_path) == []
