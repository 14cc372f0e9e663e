"""The capacity model by hand: features of its laws, noise, caps, and what one number of runs leaves open."""

import math
from statistics import NormalDist

import numpy as np
import pytest

from harness.analysis.capacity.caps import Cap
from harness.analysis.capacity.model import AMDAHL, LINEAR, TERMS, USL, CapacityModel, Draws, Law, Range


def test_waves_by_hand():
    features = Law("linear", 3).features(np.array([30.0, 31.0]), np.array([10.0, 10.0]))
    assert features[:, 1].tolist() == [1.0, 2.0]
    flowing = Law("linear", 3, waves=False).features(np.array([0.3, 30.0, 3000.0]), np.array([10.0, 10.0, 10.0]))
    assert flowing[:, 1] == pytest.approx([1.0, math.sqrt(2), 100.0], rel=1e-3)


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
    both = platform(60.0, 30.0, runs=(40.0, 40.0)).durations([400.0, 20.0], 10.0, (0.05, 0.5, 0.95))
    assert both.T.ravel() == pytest.approx([*unknown, *fewer])
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
