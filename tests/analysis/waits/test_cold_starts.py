"""Long starts on nodes that are new to a task are taken for pulls, if hardly any others are long."""

from pathlib import Path

import pytest

from harness.analysis.waits import cold_starts
from harness.analysis.waits.cold_starts import with_likely_pulls
from harness.model.phases import PULLING, RUNNING, SCHEDULING, STARTING
from tests.support.timelines import Story


@pytest.fixture
def pulls(tmp_path: Path):
    """Of starts: node, from when and for how long. Returns when those began that are taken for pulls, if any are."""

    def of(*starts: tuple[str, float, float]) -> list[float] | None:
        found = with_likely_pulls(story(starts).timeline(tmp_path / str(len(list(tmp_path.iterdir())))))
        return None if found is None else sorted(found.stretches(PULLING)["start_s"])

    return of


def story(starts: tuple[tuple[str, float, float], ...]) -> Story:
    found = Story(intended=len(starts))
    for seq, (node, since, took) in enumerate(starts):
        run, begun = found.submit(seq, due=since), since + took
        phases = ((SCHEDULING, since - 0.1, since), (STARTING, since, begun), (RUNNING, begun, begun + 10))
        found.pod(run, "train", node, *phases)
        found.run(run, since, begun + 10)
    return found


USUAL = tuple(("a", 100.0 + k, 1.0) for k in range(6))


def test_the_first_start_on_each_node_is_a_pull_and_so_are_those_that_wait_for_it(pulls):
    assert pulls(("a", 1, 60), ("a", 21, 40), ("b", 3, 60), *USUAL, ("b", 200, 1)) == [1, 3, 21]


@pytest.mark.parametrize(("took", "long"), [(2.9, False), (3.1, True)])
def test_a_start_is_long_from_three_times_the_usual_on(took, long, pulls):
    assert pulls(("a", 1, 60), ("b", 3, took), *USUAL) == ([1, 3] if long else [1])


@pytest.mark.parametrize(("took", "long"), [(1.9, False), (2.1, True)])
def test_a_start_of_less_than_two_seconds_is_never_long(took, long, pulls):
    quick = tuple(("a", since, 0.1) for _, since, _ in USUAL)
    assert pulls(("a", 1, took), *quick) == ([1] if long else None)


@pytest.mark.parametrize(("others", "likely"), [(1, True), (2, False)])
def test_starts_that_are_long_on_nodes_that_had_started_the_task_have_another_cause(others, likely, pulls):
    new = tuple((f"n{k}", 1.0 + k, 60.0) for k in range(5))
    again = tuple((f"n{k}", 200.0 + k, 60.0) for k in range(others))
    assert pulls(*new, *again, *USUAL, ("a", 90, 1)) == ([1, 2, 3, 4, 5] if likely else None)


@pytest.mark.parametrize(("since", "likely"), [(60.5, True), (61.0, False)])
def test_a_node_is_known_to_a_task_from_the_end_of_its_first_start_on(since, likely, pulls):
    assert pulls(("a", 1, 60), ("a", since, 60), *USUAL) == ([1, 60.5] if likely else None)


@pytest.mark.parametrize(("count", "likely"), [(4, False), (5, True)])
def test_a_few_starts_are_too_few_to_compare_with(count, likely, pulls):
    assert pulls(("a", 1, 60), *USUAL[:count]) == ([1] if likely else None)


@pytest.mark.parametrize(("most", "likely"), [(6, False), (7, True)])
def test_too_many_starts_are_not_compared(most, likely, pulls, monkeypatch):
    monkeypatch.setattr(cold_starts, "_MAX_STARTS", most)
    assert pulls(("a", 1, 60), *USUAL) == ([1] if likely else None)


def test_a_start_that_goes_on_counts_as_long_as_it_is_seen(tmp_path):
    found = story((("a", 1, 1), *USUAL))
    run = found.submit(9, due=300)
    found.pod(run, "train", "b", (SCHEDULING, 299.9, 300), (STARTING, 300, None))
    found.run(run, 300, 400)
    timeline = with_likely_pulls(found.timeline(tmp_path))
    assert timeline is not None
    assert list(timeline.stretches(PULLING)["start_s"]) == [300]


def test_without_starts_there_is_nothing_to_tell(tmp_path):
    found = Story()
    found.run("r0", 0.0, 9.0)
    assert with_likely_pulls(found.timeline(tmp_path)) is None
