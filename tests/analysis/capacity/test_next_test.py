import numpy as np
import pytest

from harness.analysis.capacity.answer import Question, answer
from harness.analysis.capacity.fit import fit
from harness.analysis.capacity.model import Observation
from harness.analysis.capacity.next_test import next_test

FACTORS = 0.25, 0.5, 1.0, 2.0
ONE_LOAD = [Observation(100, nodes, 50 + 200 / nodes) for nodes in (2, 5, 10, 20)]


@pytest.mark.parametrize("runs", [25, 400])
def test_one_number_of_runs_leaves_an_interval_that_holds_both_explanations(runs):
    """50 s that more nodes do not shorten are any test's overhead, or half a second of each run at a shared resource."""
    found = answer(fit(ONE_LOAD, np.random.default_rng(7)), Question(runs=runs, nodes=20))
    overhead, shared = 50 + 2 * runs / 20, 0.5 * runs + 2 * runs / 20
    assert found.low <= 1.02 * min(overhead, shared)
    assert found.high >= max(overhead, shared)
    assert any("--next" in warning for warning in found.warnings)


def test_two_numbers_of_runs_tell_the_explanations_apart():
    known = [*ONE_LOAD, Observation(300, 20, 50 + 30.0)]
    found = answer(fit(known, np.random.default_rng(7)), Question(runs=400, nodes=20))
    assert found.high < 0.5 * 400
    assert not any("--next" in warning for warning in found.warnings)


def test_the_test_to_run_next_has_another_number_of_runs_and_narrows_the_answer():
    model = fit(ONE_LOAD, np.random.default_rng(7))
    proposed = next_test(model, 400, 20)
    assert proposed.runs != 100
    assert proposed.then < 0.6 * proposed.now
    after = fit(
        [*ONE_LOAD, Observation(proposed.runs, proposed.nodes, 50 + 2 * proposed.runs / proposed.nodes)],
        np.random.default_rng(7),
    )
    width = [np.log(found.high / found.low) for found in (answer(m, Question(400, 20)) for m in (model, after))]
    assert width[1] < width[0] / 2


def test_of_tests_that_tell_as_much_the_cheaper_one_is_proposed():
    known = [Observation(runs, nodes, 5 + runs / nodes) for runs in (50, 100, 200) for nodes in (2, 4, 8)]
    proposed = next_test(fit(known, np.random.default_rng(7)), 200, 8)
    assert proposed.nodes * proposed.takes_s < 0.6 * 16 * (5 + 400 / 16), "of the dearest candidate"
    assert (proposed.runs, proposed.nodes) in {(round(200 * a), round(8 * b)) for a in FACTORS for b in FACTORS}


@pytest.mark.parametrize(("runs", "nodes"), [(800, 8), (4000, 100)])
def test_the_time_and_the_uncertainty_of_a_proposal_are_those_of_the_model(runs, nodes):
    """What remains of the answer's variance is 1 - r² of it, by the correlation r with the proposed test's duration."""
    known = [Observation(runs, nodes, 5 + runs / nodes) for runs in (50, 100, 200) for nodes in (2, 4, 8)]
    model = fit(known, np.random.default_rng(7))
    proposed = next_test(model, runs, nodes)
    assert proposed.runs <= 2 * 200
    assert proposed.nodes <= 2 * 8
    assert proposed.takes_s == pytest.approx(model.durations(proposed.runs, proposed.nodes, (0.5,))[0, 0])
    at = np.array([[runs, proposed.runs], [nodes, proposed.nodes]], dtype=float)
    expected = np.log(np.concatenate([d.coefficients @ d.law.features(*at)[0] for d in model.draws]))
    seen = np.log(np.concatenate([d.durations(*at)[:, 1] for d in model.draws]))
    assert proposed.now == pytest.approx(expected.std())
    assert proposed.then == pytest.approx(expected.std() * np.sqrt(1 - np.corrcoef(expected, seen)[0, 1] ** 2))


def test_a_test_of_one_run_on_one_node_is_followed_by_whole_ones():
    proposed = next_test(fit([Observation(1, 1, 60.0)], np.random.default_rng(7)), 2, 1)
    assert proposed.runs in {1, 2}
    assert proposed.nodes in {1, 2}
