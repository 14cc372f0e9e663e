import pytest

from harness.model.experiment import Answer, Point, Series

NODES = Series("default", 60, (12, 6, 1), "nodes")
LOAD = Series("cached", 1, (10, 20), "load")
ONE, MANY = Series("default", 1, (12, 6, 1), "nodes"), Series("default", 2, (10, 20), "load")
NODES_AT_MOST = "60 runs need 6 nodes (2 tests; at most 6 possible; contradicted by the tests at 1, 12)."


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (Answer(NODES, 6, (6, 6), 9, ()), "60 runs need 6 nodes (9 tests)."),
        (
            Answer(NODES, 6, (1, 12), 1, (1,)),
            "60 runs need 6 nodes (1 test; 1 to 12 possible; contradicted by the tests at 1).",
        ),
        (Answer(NODES, None, (None, None), 3, ()), "60 runs need more than 12 nodes (3 tests)."),
        (Answer(LOAD, 20, (20, None), 3, ()), "cached, 1 node handles 20 runs (3 tests; at least 20 possible)."),
        (Answer(NODES, 6, (None, 6), 2, (1, 12)), NODES_AT_MOST),
        (Answer(ONE, None, (None, None), 3, ()), "1 run needs more than 12 nodes (3 tests)."),
        (Answer(ONE, 1, (1, 1), 3, ()), "1 run needs 1 node (3 tests)."),
        (Answer(MANY, 20, (20, 20), 3, ()), "2 nodes handle 20 runs (3 tests)."),
        (Answer(LOAD, None, (None, None), 3, ()), "cached, 1 node cannot handle even 10 runs (3 tests)."),
    ],
)
def test_an_answer_is_one_sentence(answer, sentence):
    assert answer.sentence == sentence


def test_a_series_searches_one_axis_and_knows_its_own_points():
    assert (NODES.point(1, 2), LOAD.point(1, 0)) == (Point("default", 60, 6, 2), Point("cached", 20, 1, 0))
    assert (NODES.candidate(Point("default", 60, 6, 0)), LOAD.candidate(Point("cached", 20, 1, 5))) == (6, 20)
    others = [Point("cached", 60, 6, 0), Point("default", 61, 6, 0), Point("default", 60, 7, 0)]
    assert [NODES.candidate(each) for each in others] == [None] * 3


@pytest.mark.parametrize(
    ("point", "unit", "said"),
    [
        (Point("a", 50, 1, 0), "node", "50 runs on 1 node"),
        (Point("a", 1, 4, 0), "node", "1 run on 4 nodes"),
        (Point("a", 50, 3, 0), "replica", "50 runs on 3 replicas"),
    ],
)
def test_a_point_has_a_size_for_people(point, unit, said):
    assert point.size(unit) == said
