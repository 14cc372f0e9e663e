from dataclasses import replace

import pytest

from harness.analysis.capacity.answer import Answer, Answered, amount, interval, proposal, sentence
from harness.analysis.capacity.next_test import NextTest

NODES = Answer(400.0, 12.0, 900.0, "nodes", 12.0, 10.0, 15.0, "nodes", ())
RUNS = replace(NODES, asked="runs", value=400.0, low=300.0, high=1200.0)
WITHIN = replace(NODES, asked="within_s", value=900.0, low=840.0, high=960.0)
NEVER = replace(NODES, nodes=None, value=None, low=None, high=None, binding="contention")


def answered(price=None, lacks="cpu"):
    return Answered(None, "service", NODES, (), (), lacks, (), price, None)


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (NODES, "400 runs in 15 min: 12 nodes."),
        (RUNS, "12 nodes for 15 min: 400 runs."),
        (WITHIN, "400 runs on 12 nodes: 15 min."),
        (NEVER, "400 runs in 15 min: no number of nodes is enough."),
        (replace(RUNS, runs=0.0, value=0.0), "12 nodes for 15 min: 0 runs."),
        (replace(NODES, nodes=1.0, value=1.0, unit="replica"), "400 runs in 15 min: 1 replica."),
        (replace(NEVER, unit="replica"), "400 runs in 15 min: no number of replicas is enough."),
    ],
)
def test_question_and_answer_are_one_sentence(found, text):
    assert sentence(found) == text


def test_replicas_are_told_with_their_workers_and_without_the_price_of_nodes():
    service = replace(answered(price=0.5), workers_each=4)
    replicas = replace(NODES, unit="replica")
    assert (service.workers(replicas), service.cost(replicas)) == (48, None)
    assert service.workers(replace(NEVER, unit="replica")) is None
    assert (answered(price=0.5).workers(NODES), answered(price=0.5).cost(NODES)) == (None, 12 * 900 / 3600 * 0.5)


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (NODES, "10 to 15"),
        (RUNS, "300 to 1,200"),
        (WITHIN, "14 min to 16 min"),
        (replace(NODES, high=None), "10 or more"),
        (replace(NODES, high=10.0), "10"),
        (NEVER, ""),
    ],
)
def test_the_interval_is_shown_in_the_unit_of_the_answer(found, text):
    assert interval(found) == text


def test_an_amount_that_is_none_is_empty():
    assert [amount("nodes", None), amount("within_s", None), amount("runs", 1200.4)] == ["", "", "1,200"]


def test_the_cost_is_nodes_by_hours_by_price():
    assert answered(price=0.5).cost(NODES) == pytest.approx(12 * 0.25 * 0.5)
    assert answered(price=0.0).cost(NODES) == 0.0
    assert answered().cost(NODES) is None
    assert answered(price=0.5).cost(NEVER) is None
    assert answered(price=0.5).cost(replace(NODES, within_s=None)) is None


def test_nodes_that_bind_are_named_with_what_they_lack():
    assert answered().binding(NODES) == "nodes (cpu)"
    assert answered(lacks="").binding(NODES) == "nodes"
    assert answered(lacks="").binding(replace(NODES, unit="replica")) == "replicas"
    assert answered().binding(NEVER) == "contention"


def test_the_next_test_is_told_with_what_it_takes_and_tells():
    assert proposal(NextTest(200, 1, 600.0, 0.2, 0.051), "node") == (
        "200 runs on 1 node, about 10 min: the answer would be known to 5% instead of 20% (one standard deviation); "
        "as an experiment: loads: [200], nodes: [1]"
    )
