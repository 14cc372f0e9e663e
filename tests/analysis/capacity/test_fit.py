import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness.analysis.capacity.answer import Question, answer
from harness.analysis.capacity.fit import _Problem, fit
from harness.analysis.capacity.model import AMDAHL, LINEAR, USL, Law, Observation

SIZES = [(runs, nodes) for nodes in (2, 4, 8, 16) for runs in (40, 100, 200)]


def measured(truth, sizes=SIZES):
    return [Observation(runs, nodes, truth(runs, nodes)) for runs, nodes in sizes]


def fitted(observations, **more):
    return fit(observations, np.random.default_rng(1), **more)


def linear(runs, nodes):
    return 60 + 300 * runs / nodes


def waves(runs, nodes):
    return 90 + 600 * math.ceil(runs / (3 * nodes))


def universal(runs, nodes):
    return 30 + 200 * runs / nodes * (1 + 0.05 * (nodes - 1) + 0.001 * nodes * (nodes - 1))


@pytest.mark.parametrize(
    ("truth", "name"), [(linear, "service"), (waves, "waves of 3 per node"), (universal, "service, usl")]
)
def test_the_law_of_exact_data_is_recovered_and_predicts(truth, name):
    model = fitted(measured(truth))
    assert model.law.name == name
    found = model.durations(400, 32, (0.05, 0.5, 0.95))[:, 0]
    assert found[1] == pytest.approx(truth(400, 32), rel=0.05)
    assert found[0] < truth(400, 32) < found[2]


def test_nodes_that_were_not_counted_are_found_and_kept_when_others_are_added():
    """Steps that tolerate a pool's taint run on the default pool, too."""

    def truth(runs, nodes):
        return 60 + 300 * runs / (nodes + 4)

    model = fitted(measured(truth))
    assert model.law.name == "service on 4 more nodes"
    assert model.durations(400, 32, (0.5,))[0, 0] == pytest.approx(truth(400, 32), rel=0.05)


def test_the_slowest_of_more_runs_takes_longer_as_drawn_durations_do():
    random = np.random.default_rng(3)

    def truth(runs, nodes):
        return 60 + np.median(random.lognormal(np.log(600), 0.3, (2000, runs)).max(axis=1))

    sizes = [(runs, nodes) for nodes in (2, 4, 8) for runs in (5, 10, 40)]
    model = fitted(measured(truth, sizes))
    assert model.law.name.endswith("stragglers")
    low, middle, high = model.durations(160, 16, (0.05, 0.5, 0.95))[:, 0]
    assert middle == pytest.approx(truth(160, 16), rel=0.05)
    assert low < truth(160, 16) < high


def test_the_linear_example_of_the_operators():
    """500 runs on 20 nodes take 3 h: 1000 take 6 h there, and 40 nodes take 3 h for them."""
    hours = [(o, n, o / n * 432) for n in (5, 10, 20) for o in (125, 250, 500)]
    model = fitted([Observation(*row) for row in hours])
    assert answer(model, Question(runs=1000, nodes=20)).value == pytest.approx(6 * 3600, rel=0.04)
    nodes = answer(model, Question(runs=1000, within_s=3 * 3600))
    assert nodes.value == pytest.approx(40, abs=2)
    assert nodes.low <= 40 <= nodes.high
    assert answer(model, Question(nodes=40, within_s=3 * 3600)).value == pytest.approx(1000, rel=0.05)


def test_the_three_answers_agree_with_each_other():
    model = fitted(measured(waves))
    nodes = answer(model, Question(runs=300, within_s=4000)).value
    durations = model.durations(300, np.arange(1.0, nodes + 1), (0.5,))[0]
    assert durations[-1] <= 4000 < durations[-2]
    runs = answer(model, Question(nodes=12, within_s=4000)).value
    assert model.durations(runs, 12, (0.5,))[0, 0] <= 4000 < model.durations(runs + 1, 12, (0.5,))[0, 0]


def test_the_ends_of_how_many_runs_are_done_in_time_with_95_and_5_percent():
    model = fitted(measured(universal))
    found = answer(model, Question(nodes=12, within_s=400_000))

    def chance(runs):
        at = np.array([runs]), np.array([12.0])
        return np.mean(np.concatenate([drawn.durations(*at)[:, 0] for drawn in model.draws]) <= 400_000)

    for runs, sure in ((found.low, 0.95), (found.value, 0.5), (found.high, 0.05)):
        assert chance(runs) >= sure - 0.001
        assert chance(runs + 1) <= sure + 0.001


@pytest.mark.parametrize(("factor", "off"), [(100.0, 1 / 3), (0.2, 3.0)])
def test_an_outlier_weighs_as_a_third_to_three_times_its_duration(factor, off):
    """By the fitted duration alone a single slow test would count a hundred times as much as the others."""
    ordinary = measured(linear, SIZES * 10)
    runs, nodes = ordinary[5].runs, ordinary[5].nodes
    observations = [*ordinary, Observation(runs, nodes, factor * linear(runs, nodes))]
    weights = _Problem.of(Law(LINEAR, waves=False), 1.0, observations).weight_s
    ratio = weights / [each.duration_s for each in observations]
    assert ratio[-1] == pytest.approx(off)
    assert ((ratio >= 1 / 3 - 1e-12) & (ratio <= 3 + 1e-12)).all()


@settings(max_examples=8, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 10**4), st.integers(1, 500), st.floats(1.0, 1e6)), min_size=1, max_size=12),
    st.integers(1, 10**4),
    st.integers(1, 100),
)
@example([(1, 159, 21859.0), (133, 1, 2.0)], 543, 1)  # their squares are singular
@example([(1, 500, 1e6), (10**4, 1, 1.0)], 10**4, 100)
def test_any_table_gives_ordered_monotone_answers(rows, runs, nodes):
    model = fitted([Observation(*row) for row in rows], count=300)
    low, middle, high = model.durations(runs, nodes, (0.05, 0.5, 0.95))[:, 0]
    assert 0 < low <= middle <= high < math.inf
    assert (np.diff(model.durations(np.arange(1.0, 200.0, 7.0), nodes, (0.05, 0.5, 0.95)), axis=1) >= -1e-9).all()
    found = answer(model, Question(runs=runs, within_s=float(middle)))
    if found.value is not None:
        assert model.durations(runs, found.value, (0.5,))[0, 0] <= middle * (1 + 1e-6)
        assert found.value <= nodes
    assert sum(model.shares(runs, nodes).values()) == pytest.approx(1.0)
    assert sum(model.weights.values()) == pytest.approx(1.0, abs=0.02)


def test_more_observations_narrow_the_interval_and_noise_widens_it():
    def width(observations):
        low, high = fitted(observations).durations(300, 20, (0.05, 0.95))[:, 0]
        return high / low

    assert width(measured(linear)) < width(measured(linear)[:3])
    random = np.random.default_rng(2)
    noisy = [
        Observation(o.runs, o.nodes, o.duration_s * math.exp(0.15 * random.standard_normal())) for o in measured(linear)
    ]
    assert width(noisy) > 1.2 * width(measured(linear))


def test_a_single_test_gives_an_answer_with_a_warning():
    found = answer(fitted([Observation(500, 20, 10800)]), Question(runs=1000, nodes=20))
    assert found.low < 21600 < found.high
    assert any("1 observation:" in warning for warning in found.warnings)


def test_beyond_twice_the_observed_range_there_is_a_warning():
    model = fitted(measured(linear))
    assert answer(model, Question(runs=400, nodes=32)).warnings == ()
    assert any("2.5 times" in warning for warning in answer(model, Question(runs=500, nodes=16)).warnings)


def test_what_no_number_of_nodes_achieves_has_no_answer():
    found = answer(
        fitted(measured(lambda runs, nodes: 5 * runs + 100 * runs / nodes)), Question(runs=1000, within_s=2000)
    )
    assert found.value is None
    assert found.binding == "contention"
    assert any("no number of nodes" in warning for warning in found.warnings)


def test_known_jobs_per_node_leave_only_waves_of_that_size():
    model = fitted(measured(waves), jobs_per_node=3)
    assert {law.jobs_per_node for law in model.weights} <= {3, None}


def test_noise_that_does_not_grow_with_the_duration_narrows_the_interval_of_long_tests():
    """Stragglers cost the same seconds whatever the size."""
    random = np.random.default_rng(5)
    sizes = [(runs, nodes) for nodes in (2, 4, 8) for runs in (25, 50, 100, 200)] * 2
    same = [Observation(r, n, linear(r, n) + 150 * random.standard_normal()) for r, n in sizes]
    share = [Observation(r, n, linear(r, n) * (1 + 0.05 * random.standard_normal())) for r, n in sizes]

    def width(observations, runs, nodes):
        low, high = fitted(observations).durations(runs, nodes, (0.05, 0.95))[:, 0]
        return high / low

    assert width(same, 25, 8) / width(same, 200, 2) > 1.2 * width(share, 25, 8) / width(share, 200, 2)


@pytest.mark.parametrize("rows", [[], [(0, 1, 1)], [(1, 0, 1)], [(1, 1, 0)]])
def test_impossible_observations_are_rejected(rows):
    with pytest.raises(ValueError, match=r"observation|above 0"):
        fitted([Observation(*row) for row in rows])


def test_a_model_knows_what_it_was_fitted_on():
    seen = fitted(measured(linear)).fitted_on
    assert (seen.runs, seen.nodes, seen.duration_s) == ((40, 200), (2, 16), (linear(40, 16), linear(200, 2)))
    assert (seen.observations, seen.unit) == (12, "node")
    assert fitted(measured(linear), unit="replica").fitted_on.unit == "replica"


@pytest.mark.parametrize("jobs", [3, 500])
def test_known_jobs_per_node_are_the_only_ones_whatever_the_data(jobs):
    assert {law.jobs_per_node for law in fitted(measured(linear), jobs_per_node=jobs).weights} <= {jobs, None}
    assert jobs in {law.jobs_per_node for law in fitted([Observation(100, 5, 600)], jobs_per_node=jobs).weights}


def test_hundreds_of_tests_that_take_hours_or_milliseconds_have_weights():
    for unit in (1e-3, 100.0):
        many = [Observation(runs, nodes, unit * linear(runs, nodes)) for runs, nodes in SIZES * 20]
        assert sum(fitted(many, count=50).weights.values()) == pytest.approx(1.0, abs=0.02)


def test_stretches_from_the_middle_of_a_test_have_no_overhead():
    steady = [Observation(r, n, 300 * r / n, steady=True) for r, n in SIZES]
    whole = [Observation(r, n, 600 + 300 * r / n) for r, n in SIZES]
    model = fitted([*steady, *whole])
    assert model.durations(400, 32, (0.5,))[0, 0] == pytest.approx(600 + 3750, rel=0.02)
    assert model.noise < 0.02, "both kinds are explained"


def test_of_laws_that_explain_a_test_alike_that_with_fewer_terms_is_likelier():
    """The density of one test at its prior mean is about 1 / its deviation, which each further term widens by 0.3²."""
    weights = fitted([Observation(100, 4, 600)]).weights
    variances = {LINEAR: 0.35, AMDAHL: 0.44, USL: 0.53}  # shares of 0.3², 0.5², 0.3², 0.3², and noise of 0.1²
    for one, other in ((LINEAR, AMDAHL), (AMDAHL, USL)):
        expected = math.sqrt(variances[other] / variances[one])
        assert weights[Law(one, waves=False)] / weights[Law(other, waves=False)] == pytest.approx(expected, rel=0.03)


def test_one_test_leaves_open_how_much_of_it_is_overhead():
    """Drawn from the prior (overhead 0 ± 0.3, work 1 ± 0.5 of the test), by how well they explain the test."""
    model = fitted([Observation(100, 4, 600)])
    (draws,) = [each for each in model.draws if each.law == Law(LINEAR, waves=False) and each.power == 1.0]
    random = np.random.default_rng(2)
    overhead, work = random.normal(0, 0.3, 200_000), random.normal(1, 0.5, 200_000)
    likely = np.exp(-0.5 * ((1 - overhead - work) / 0.1) ** 2) * ((overhead >= 0) & (work >= 0))
    expected = np.average(overhead, weights=likely)
    found = draws.coefficients[:, 0] / 600
    assert found[found > 0].mean() == pytest.approx(expected, rel=0.3)
    assert np.std(found) > 0.1


def test_noise_grows_with_the_duration_as_that_of_the_data_does():
    random = np.random.default_rng(5)
    sizes = [(runs, nodes) for nodes in (2, 4, 8) for runs in (25, 50, 100, 200)] * 4
    for power, noise in ((0.5, lambda took: 4 * took**0.5), (1.0, lambda took: 0.08 * took)):
        tests = [Observation(r, n, linear(r, n) + noise(linear(r, n)) * random.standard_normal()) for r, n in sizes]
        likeliest = fitted(tests).draws[0]
        assert likeliest.power == power
        typical = math.exp(np.mean([math.log(o.duration_s) for o in tests]))
        assert likeliest.reference_s == pytest.approx(typical, rel=0.03)
