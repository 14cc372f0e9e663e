"""What a wait for nodes would leave if there were more: pulls on the new ones. By hand."""

from pathlib import Path

import pytest

from harness.analysis.waits.cold_pulls import left_by_pulls
from harness.model.phases import PULLING, RUNNING, SCHEDULING, UNSCHEDULABLE
from tests.support.timelines import Story


@pytest.fixture
def left(tmp_path: Path):
    """Of pods: from when and for how long each waited for a node, and how long it pulled."""

    def of(*pods: tuple[float, float, float]) -> float:
        return left_by_pulls(story(*pods).timeline(tmp_path / str(len(list(tmp_path.iterdir())))))

    return of


def story(*pods: tuple[float, float, float]) -> Story:
    found = Story(intended=len(pods))
    for seq, (since, waited, pulled) in enumerate(pods):
        run, placed = found.submit(seq, due=since), since + waited
        found.pod(
            run, "train", "node-0", (UNSCHEDULABLE, since, placed), (SCHEDULING, placed, placed + 0.1),
            (PULLING, placed + 0.1, placed + 0.1 + pulled), (RUNNING, placed + 0.1 + pulled, placed + 10 + pulled),
        )  # fmt: skip
        found.run(run, since, placed + 10 + pulled)
    return found


def test_pods_that_wait_at_once_would_each_pull_on_nodes_of_their_own(left):
    """The first pull shows how long a whole one takes; two wait 40 s and 100 s at once, and found the image."""
    assert left((0, 0, 30), (1, 40, 0), (2, 100, 0)) == pytest.approx(60 / 140, rel=0.01)


def test_a_pod_pays_at_most_what_it_waited_and_not_what_it_pulled_anyway(left):
    assert left((0, 0, 30), (1, 20, 0)) == pytest.approx(1.0, rel=0.01)
    assert left((0, 0, 30), (1, 100, 30)) == pytest.approx(0.0, abs=0.01)


def test_pods_that_wait_later_find_the_images_of_the_first_ones(left):
    assert left((0, 0, 30), (10, 100, 0)) == pytest.approx(0.3, rel=0.01)
    assert left((0, 0, 30), *((10 + 200 * k, 100, 0) for k in range(5))) == pytest.approx(0.3 / 5, rel=0.01)


def test_short_pulls_are_of_what_a_node_lacked_and_not_of_whole_images(left):
    assert left((0, 0, 40), (0, 0, 30), (0, 0, 5), (1, 100, 0)) == pytest.approx(0.35, rel=0.01)


def test_without_a_wait_or_without_pulls_nothing_is_left(left):
    assert left((0, 0, 30)) == 0
    assert left((0, 0, 0), (1, 100, 0)) == pytest.approx(0.0, abs=0.01)
