import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.analysis.capacity.answer import Question, answer
from harness.analysis.capacity.caps import Cap
from harness.analysis.capacity.check import leave_one_out
from harness.analysis.capacity.fit import fit
from harness.analysis.capacity.model import AMDAHL, LINEAR, TERMS, USL, CapacityModel, Draws, Law, Observation, Range
from harness.analysis.capacity.recorded import eviction_factor, recorded
from tests.support.timelines import burst

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


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 10**4), st.integers(1, 500), st.floats(1.0, 1e6)), min_size=1, max_size=12),
    st.integers(1, 10**4),
    st.integers(1, 100),
)
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


def test_leave_one_out_on_exact_data_finds_no_error():
    check = leave_one_out(measured(linear), np.random.default_rng(1))
    assert (check.sizes, check.tests, check.coverage) == (12, 12, 1.0)
    assert check.error < 0.03
    assert leave_one_out([Observation(100, 5, 60)] * 3, np.random.default_rng(1)) is None


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


def test_waves_by_hand():
    features = Law("linear", 3).features(np.array([30.0, 31.0]), np.array([10.0, 10.0]))
    assert features[:, 1].tolist() == [1.0, 2.0]
    flowing = Law("linear", 3, waves=False).features(np.array([0.3, 30.0, 3000.0]), np.array([10.0, 10.0, 10.0]))
    assert flowing[:, 1] == pytest.approx([1.0, math.sqrt(2), 100.0], rel=1e-3)


@pytest.mark.parametrize("rows", [[], [(0, 1, 1)], [(1, 0, 1)], [(1, 1, 0)]])
def test_impossible_observations_are_rejected(rows):
    with pytest.raises(ValueError, match=r"observation|above 0"):
        fitted([Observation(*row) for row in rows])


def test_evictions_repeat_work_as_in_simulation():
    """Oracle: steps of 1 h on nodes that are taken back at random, 0.5 times an hour."""
    random = np.random.default_rng(3)
    total = 0.0
    for _ in range(20_000):
        while (until := random.exponential(7200.0)) < 3600.0:
            total += until
        total += 3600.0
    assert eviction_factor(3600.0, 0.5, 0.0) == pytest.approx(total / 20_000 / 3600.0, rel=0.03)
    assert eviction_factor(3600.0, 0.0, 180.0) == 1.0
    assert eviction_factor(1.0, 0.5, 180.0) == pytest.approx(1 + 0.5 * 180 / 3600, rel=1e-3)


def test_a_recorded_burst_is_an_observation(tmp_path):
    story = burst(200, pool=2)
    test = recorded(story.timeline(tmp_path))
    (observation,) = test.observations
    assert (observation.runs, observation.nodes) == (200, 2)
    assert observation.duration_s == pytest.approx(
        max(r.ended_at or 0 for r in story.records if getattr(r, "phase", "") == "run") / 1e9 - 1_790_000_000, abs=1
    )
    assert test.step_s == pytest.approx(3.0)
    assert test.price is None


@pytest.mark.parametrize(
    ("law", "name"),
    [
        (Law(LINEAR), "service"),
        (Law(USL, 3), "waves of 3 per node, usl"),
        (Law(AMDAHL, 4, waves=False, spread=0.3), "service of 4 per node, amdahl, stragglers"),
        (Law(LINEAR, others=2.5), "service on 2.5 more nodes"),
        (Law(AMDAHL, 4, waves=False, others=4.0), "service of 4 per node on 4 more nodes, amdahl"),
    ],
)
def test_a_law_has_a_name(law, name):
    assert law.name == name


@pytest.mark.parametrize(
    ("law", "features"),
    [
        (Law(LINEAR), (1.0, 10.0)),
        (Law(AMDAHL), (1.0, 10.0, 40.0)),
        (Law(USL), (1.0, 10.0, 40.0, 160.0)),
        (Law(USL, others=1.0), (1.0, 8.0, 40.0, 160.0)),
        (Law(LINEAR, 3), (1.0, 4.0)),
        (Law(LINEAR, 5), (1.0, 2.0)),  # exactly two waves
        (Law(LINEAR, 5, waves=False), (1.0, math.sqrt(1 + 2.0**2))),
        (Law(LINEAR, 5, waves=False, others=4.0), (1.0, math.sqrt(2))),
    ],
)
def test_forty_runs_on_four_nodes_by_hand(law, features):
    assert law.features(np.array([40.0]), np.array([4.0]))[0] == pytest.approx(features)


def test_the_slowest_of_many_runs_is_the_median_of_the_greatest_of_so_many_draws():
    slowest = math.exp(0.3 * NormalDist().inv_cdf(0.5 ** (1 / 40)))
    assert Law(AMDAHL, spread=0.3).features(np.array([40.0]), np.array([4.0]))[0] == pytest.approx(
        (slowest, 10.0, 40.0), rel=1e-4
    )
    filled = Law(LINEAR, 5, waves=False, spread=0.3).features(np.array([40.0]), np.array([4.0]))[0]
    assert filled == pytest.approx((slowest, math.hypot(slowest, 2.0)), rel=1e-4)


@pytest.mark.parametrize(
    ("noise", "power", "factor"),
    [
        (0.0, 1.0, 1.0),
        (0.2, 1.0, math.exp(0.2)),
        (-3.0, 1.0, math.exp(-3.0)),
        (1.0, 1.0, math.e),
        (1.5, 1.0, 1.5 * math.e),  # the tangent
        (0.2, 0.5, math.exp(0.2 * (360.0 / 90.0) ** -0.5)),
        (0.2, 0.0, math.exp(0.2 / 4)),
    ],
)
def test_noise_is_lognormal_and_grows_with_the_duration_by_its_power(noise, power, factor):
    draws = Draws(Law(LINEAR), np.array([[60.0, 30.0]]), np.array([noise]), power, 90.0)
    assert draws.durations(np.array([40.0]), np.array([4.0])) == pytest.approx(np.array([[360.0 * factor]]))


@pytest.mark.parametrize(
    ("law", "coefficients", "free", "shared"),
    [
        (Law(LINEAR), (80.0, 30.0), (80.0, 30.0, 0.0), (0.0, 30.0, 2.0)),
        (Law(AMDAHL, 3), (40.0, 30.0, 1.0), (80.0, 30.0, 0.0), (0.0, 30.0, 2.0)),
        (Law(USL), (40.0, 30.0, 1.0, 0.5), (80.0, 30.0, 0.0, 0.5), (0.0, 30.0, 2.0, 0.5)),
    ],
)
def test_what_more_nodes_do_not_shorten_is_overhead_or_a_shared_resource(law, coefficients, free, shared):
    """At the 40 runs that were tested both take 80 s."""
    draws = Draws(law, np.array([coefficients]), np.array([0.1]), 0.5, 90.0)
    for explained, expected in (
        (draws.explained(40.0, shared=False), free),
        (draws.explained(40.0, shared=True), shared),
    ):
        assert explained.coefficients.tolist() == [list(expected)]
        assert explained.law.jobs_per_node == law.jobs_per_node
        at_40 = np.array([40.0]), np.array([7.0])
        assert explained.durations(*at_40) == pytest.approx(draws.durations(*at_40))


def platform(*coefficients, runs=(40.0, 400.0), nodes=(4.0, 8.0), caps=(), noise=0.0):
    law = Law({2: LINEAR, 3: AMDAHL, 4: USL}[len(coefficients)])
    draws = Draws(law, np.outer(np.linspace(0.9, 1.1, 101), coefficients), np.zeros(101), 1.0, 90.0)
    return CapacityModel((draws,), {law: 1.0}, Range(runs, nodes, (1.0, 1e4), 9), noise, tuple(caps))


def test_one_number_of_runs_leaves_an_interval_that_holds_both_explanations():
    """60 s at 40 runs: of 400 runs, overhead is 60 s still, at a shared resource they take 600 s."""
    at = (400.0, 10.0, (0.05, 0.5, 0.95))
    known = platform(60.0, 30.0).durations(*at)[:, 0]
    assert known == pytest.approx([0.91 * 1260, 1260, 1.09 * 1260])
    unknown = platform(60.0, 30.0, runs=(40.0, 40.0)).durations(*at)[:, 0]
    assert unknown == pytest.approx([0.91 * 1260, 1260, 1.09 * 1800])
    fewer = platform(60.0, 30.0, runs=(40.0, 40.0)).durations(20.0, 10.0, (0.05, 0.5, 0.95))[:, 0]
    assert fewer == pytest.approx([0.91 * 90, 120, 1.09 * 120])
    one_size = platform(60.0, 30.0, runs=(40.0, 40.0), nodes=(4.0, 4.0)).durations(*at)[:, 0]
    assert one_size == pytest.approx(known), "nothing tells overhead from work, either"


SLOW = Cap("parallelism", "p", 360.0, math.inf, "")  # 10 s a run
QUICK = Cap("quota", "q", 3600.0, math.inf, "")
ROOM = Cap("volume", "v", math.inf, math.inf, "", 50.0)


def test_no_number_of_nodes_is_quicker_than_the_slowest_cap():
    model = platform(60.0, 30.0, caps=(QUICK, SLOW, ROOM), noise=0.1)
    low, middle, high = model.durations([40.0, 4.0], 100.0, (0.05, 0.5, 0.95)).T.tolist()[0]
    deviation = math.exp(1.644854 * math.sqrt(2) * 0.1)
    assert (low, middle, high) == pytest.approx((400 / deviation, 400, 400 * deviation))
    assert model.durations([40.0, 4.0], 100.0, (0.5,))[0].tolist() == pytest.approx([400.0, 61.2])


@pytest.mark.parametrize(
    ("caps", "runs", "nodes", "binding"),
    [
        ((QUICK, SLOW), 40.0, 100.0, SLOW),
        ((SLOW, ROOM, QUICK), 40.0, 100.0, SLOW),
        ((SLOW,), 6.0, 100.0, None),  # 60 s < 61.8 s
        ((SLOW,), 400.0, 3.0, None),  # 10 s of a node's work each
        ((QUICK,), 400.0, 100.0, QUICK),
        ((QUICK,), 40.0, 100.0, None),
        ((), 40.0, 100.0, None),
    ],
)
def test_the_slowest_cap_binds_where_it_takes_longer_than_the_nodes(caps, runs, nodes, binding):
    assert platform(60.0, 30.0, caps=caps).binding_cap(runs, nodes) is binding


def test_shares_are_those_of_the_terms():
    """40 runs on 4 nodes: 60 s, 300 s, 80 s and 160 s."""
    model = platform(60.0, 30.0, 2.0, 1.0)
    assert model.shares(40.0, 4.0) == pytest.approx(dict(zip(TERMS, (0.1, 0.5, 0.8 / 6, 1.6 / 6), strict=True)))
    assert platform(60.0, 30.0).shares(40.0, 4.0) == pytest.approx(dict(zip(TERMS, (1 / 6, 5 / 6, 0, 0), strict=True)))


def test_laws_have_the_shares_of_their_draws():
    one, other = platform(100.0, 0.0).draws[0], platform(0.0, 10.0, 0.0).draws[0]
    model = CapacityModel(
        (one, other, other), {Law(LINEAR): 0.3, Law(AMDAHL): 0.7}, Range((1, 1), (1, 1), (1, 1), 1), 0.1
    )
    assert model.law == Law(AMDAHL)
    assert model.shares(40.0, 4.0) == pytest.approx(dict(zip(TERMS, (1 / 3, 2 / 3, 0, 0), strict=True)))


def test_longer_work_leaves_the_overhead():
    for coefficients in ((60.0, 30.0), (60.0, 30.0, 2.0), (60.0, 30.0, 2.0, 1.0)):
        middle = platform(*coefficients).draws[0].coefficients[50]
        stretched = platform(*coefficients).scaled(1.5).draws[0].coefficients[50]
        assert stretched[0] == middle[0]
        assert stretched[1:] == pytest.approx(1.5 * middle[1:])


@pytest.mark.parametrize(
    ("runs", "nodes", "one_load"),
    [((40.0, 40.0), (4.0, 8.0), True), ((40.0, 40.0), (4.0, 4.0), False), ((40.0, 80.0), (4.0, 8.0), False)],
)
def test_one_load_is_one_number_of_runs_on_several_numbers_of_nodes(runs, nodes, one_load):
    assert Range(runs, nodes, (1.0, 2.0), 3).one_load is one_load
