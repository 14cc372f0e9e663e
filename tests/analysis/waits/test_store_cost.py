"""What the store costs: outputs are stored, and most are read by the next step."""

import pytest

from harness.analysis.waits.store_cost import store_cost
from harness.model.phases import RUNNING, STORING
from tests.support.timelines import Story


def storing(tasks, place):
    """Runs whose steps each store for two seconds, one after the other."""
    story = Story(intended=4)
    for seq in range(4):
        run, now = story.submit(seq, lag=0.0, service=0.0), 0.0
        for index, task in enumerate(tasks):
            stretches = ((RUNNING, now, now + 8.0), (STORING, now + 8.0, now + 10.0))
            for phase, start, end in stretches:
                story.records.append(story_span(story, run, f"{run}-{index}", task, phase, start, end))
            now += 10.0
        story.run(run, 0.0, now)
    return store_cost(story.timeline(place))


def story_span(story, run, step, task, phase, start, end):
    """A stretch of one of several pods of a task."""
    story.pod(run, task, "node-0", (phase, start, end))
    span = story.records.pop()
    return type(span)(run, step, phase, span.started_at, span.ended_at, task, 0, "node-0", "kubernetes", 1.0)


@pytest.mark.parametrize(
    ("tasks", "read"),
    [
        (["only"], 0.0),
        (["first", "second"], 1 / 2),
        (["first", "second", "third", "last"], 3 / 4),
        (["first", "each", "each", "each", "last"], 0.0),  # an iteration takes an item
        (["first", "second", "each", "each", "last"], 1 / 4),
    ],
)
def test_each_step_reads_what_the_one_before_it_stored_but_for_loops(tasks, read, tmp_path):
    cost = storing(tasks, tmp_path)
    assert cost.storing == pytest.approx(0.2, rel=0.01)
    assert cost.whole == pytest.approx(cost.storing * (1 + read))
