"""What the store costs: outputs are stored, and most are read by the next step."""

import pytest

from harness.analysis.waits import store_cost as costing
from harness.analysis.waits.store_cost import SLOW, StoreCost, crowding, store_cost
from harness.detectors import autoscaler_at_max, nodes_exhausted, stranded_capacity
from harness.model.phases import RUNNING, STORING
from tests.support.injected.nodes import overstated
from tests.support.injection.case import simulated
from tests.support.injection.cases import CASES
from tests.support.timelines import Story


def storing(tasks, place, seconds=2.0):
    """Runs whose steps each take ten seconds, and store for the last ones of these, one after the other."""
    story = Story(intended=4)
    for seq in range(4):
        run, now = story.submit(seq, lag=0.0, service=0.0), 0.0
        for index, task in enumerate(tasks):
            stretches = ((RUNNING, now, now + 10.0 - seconds), (STORING, now + 10.0 - seconds, now + 10.0))
            for phase, start, end in stretches:
                story.records.append(story_span(story, run, f"{run}-{index}", task, phase, start, end))
            now += 10.0
        story.run(run, 0.0, now)
    return story.timeline(place)


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
        (["root-driver", "first", "second-driver", "second"], 1 / 2),  # drivers neither store nor read
        (["first", "second", "third", "last"], 3 / 4),
        (["first", "each", "each", "each", "last"], 0.0),  # an iteration takes an item
        (["first", "second", "each", "each", "last"], 1 / 4),
    ],
)
def test_each_step_reads_what_the_one_before_it_stored_but_for_loops(tasks, read, tmp_path):
    cost = store_cost(storing(tasks, tmp_path))
    assert cost.storing == pytest.approx(0.2, rel=0.01)
    assert cost.whole == pytest.approx(cost.storing * (1 + read))


@pytest.mark.parametrize(("stretches", "read"), [(2, 0.0), (4, 1 / 2), (16, 1 / 2)])
def test_the_first_stretches_of_pods_show_which_steps_there_are(stretches, read, monkeypatch, tmp_path):
    """Two of each pod, and two pods of each run."""
    monkeypatch.setattr(costing, "_ENOUGH", stretches)
    cost = store_cost(storing(["first", "second"], tmp_path))
    assert cost.whole == pytest.approx(cost.storing * (1 + read))


@pytest.mark.parametrize(("whole", "taken"), [(SLOW - 0.001, 0.0), (SLOW, 1.5 * SLOW), (0.6, 0.9), (0.7, 1.0)])
def test_a_store_is_slow_from_a_share_of_the_time_on(whole, taken, monkeypatch, tmp_path):
    monkeypatch.setattr(costing, "store_cost", lambda _: StoreCost(whole, whole))
    assert crowding(storing(["only"], tmp_path)) == pytest.approx(taken)


@pytest.mark.parametrize(("seconds", "taken"), [(0.8, 0.0), (2.0, 0.3), (9.0, 1.0)])
def test_a_slow_store_takes_what_other_remedies_save(seconds, taken, tmp_path):
    assert crowding(storing(["only"], tmp_path, seconds)) == pytest.approx(taken, abs=0.01)


@pytest.mark.parametrize(
    ("detector", "case"),
    [
        (nodes_exhausted, CASES["nodes-exhausted"]),
        (autoscaler_at_max, CASES["autoscaler-at-max"]),
        (stranded_capacity, None),
    ],
)
def test_beside_a_slow_store_more_room_saves_less(detector, case, monkeypatch, tmp_path):
    timeline = overstated().timeline(tmp_path) if case is None else simulated(case, 1.0, 1)
    (alone,) = detector.detect(timeline)
    monkeypatch.setattr(detector, "crowding", lambda _: 0.4)
    (beside,) = detector.detect(timeline)
    assert alone.severity > 0
    assert beside.severity == pytest.approx(0.6 * alone.severity)
