import pytest

from harness.model.experiment import Answer, Series

NODES = Series("default", 60, (12, 6, 1), "nodes")
LOAD = Series("cached", 1, (10, 20), "load")


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
        (Answer(LOAD, None, (None, None), 3, ()), "cached, 1 node cannot handle even 10 runs (3 tests)."),
    ],
)
def test_an_answer_is_one_sentence(answer, sentence):
    assert answer.sentence == sentence
