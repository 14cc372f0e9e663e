import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import curve_fit

from harness.analysis.capacity.scaling import AMDAHL, LINEAR, USL, Curve, fit

# SPEC SDM91 as shipped with the R package usl; its documented coefficients, fitted values and peak.
SDM91_LOAD = np.array([1.0, 18, 36, 72, 108, 144, 216])
SDM91_THROUGHPUT = np.array([64.9, 995.9, 1652.4, 1853.2, 1828.9, 1775.0, 1702.2])
# A ray tracer on a NUMA machine, from the same package (Gunther 2007, table 5.1).
RAYTRACER_NODES = np.array([1.0, 4, 8, 12, 16, 20, 24, 28, 32, 48, 64])
RAYTRACER_THROUGHPUT = np.array([20.0, 78, 130, 170, 190, 200, 210, 230, 260, 280, 310])


def fitted(nodes, throughput, **more):
    return fit(np.asarray(nodes, float), np.asarray(throughput, float), np.random.default_rng(1), **more)


def usl(n, gamma, sigma, kappa):
    return gamma * n / (1 + sigma * (n - 1) + kappa * n * (n - 1))


def test_the_documented_example_of_the_r_package_is_reproduced():
    curve = fitted(SDM91_LOAD, SDM91_THROUGHPUT, law=USL).curve
    assert (curve.gamma, curve.sigma, curve.kappa) == pytest.approx((89.9952, 0.0277285, 0.0001044), rel=2e-3)
    assert curve.at(SDM91_LOAD).round() == pytest.approx([90, 1078, 1541, 1850, 1879, 1822, 1646], abs=1)
    assert curve.peak == pytest.approx(97, abs=0.6)


def test_the_packages_own_test_data_is_reproduced():
    found = fitted([1, 2, 4, 6, 8, 10], [1, 1.8868, 3.0769, 3.5294, 3.5398, 3.3557])
    assert (found.curve.gamma, found.curve.sigma, found.curve.kappa) == pytest.approx((1, 0.02, 0.02), rel=1e-3)


@pytest.mark.parametrize(
    ("nodes", "throughput"), [(SDM91_LOAD, SDM91_THROUGHPUT), (RAYTRACER_NODES, RAYTRACER_THROUGHPUT)]
)
def test_least_squares_agree_with_scipy(nodes, throughput):
    ours = fitted(nodes, throughput, law=USL).curve
    theirs, _ = curve_fit(
        usl, nodes, throughput, p0=(throughput[0], 0.05, 1e-5), bounds=(0, np.inf), xtol=1e-14, ftol=1e-14
    )
    assert (ours.gamma, ours.sigma) == pytest.approx(tuple(theirs[:2]), rel=1e-3)
    assert ours.kappa == pytest.approx(theirs[2], rel=1e-2, abs=1e-9)
    amdahl = fitted(nodes, throughput, law=AMDAHL).curve
    free, _ = curve_fit(lambda n, g, s: usl(n, g, s, 0), nodes, throughput, p0=(throughput[0], 0.05))
    assert (amdahl.gamma, amdahl.sigma) == pytest.approx(tuple(free), rel=1e-4)


@settings(max_examples=30, deadline=None)
@given(st.floats(1, 1e4), st.floats(0.002, 0.3), st.floats(1e-5, 1e-2))
def test_exact_data_gives_its_own_coefficients(gamma, sigma, kappa):
    nodes = np.array([1.0, 2, 4, 8, 12, 16, 24, 32])
    curve = fitted(nodes, usl(nodes, gamma, sigma, kappa), resamples=5).curve
    assert (curve.gamma, curve.sigma, curve.kappa) == pytest.approx((gamma, sigma, kappa), rel=1e-3)


@pytest.mark.parametrize(("sigma", "kappa", "law"), [(0, 0, LINEAR), (0.1, 0, AMDAHL), (0.05, 0.004, USL)])
def test_the_simplest_law_that_explains_the_data_is_chosen(sigma, kappa, law):
    random, chosen = np.random.default_rng(4), []
    nodes = np.repeat([1.0, 2, 4, 8, 12, 16, 24], 2)
    for _ in range(20):
        noisy = usl(nodes, 50.0, sigma, kappa) * (1 + 0.02 * random.standard_normal(nodes.size))
        chosen.append(fit(nodes, noisy, random, resamples=5).curve.law)
    assert chosen.count(law) >= 15


def test_intervals_have_their_nominal_coverage():
    random, hits, trials = np.random.default_rng(5), 0, 100
    nodes = np.repeat([1.0, 2, 4, 8, 12, 16, 24, 32], 2)
    truth = Curve(USL, 40.0, 0.04, 0.002)
    for _ in range(trials):
        noisy = truth.at(nodes) * (1 + 0.03 * random.standard_normal(nodes.size))
        low, high = fit(nodes, noisy, random, resamples=100).band(np.array([20.0]))
        hits += low[0] <= truth.at(20.0) <= high[0]
    assert 0.8 <= hits / trials <= 0.97


def test_enough_nodes_give_ninety_percent_of_the_limit():
    for curve in (Curve(USL, 40.0, 0.04, 0.002), Curve(AMDAHL, 40.0, 0.04), Curve(USL, 10.0, 0.0, 0.001)):
        assert curve.at(curve.enough) == pytest.approx(0.9 * curve.limit)
        assert curve.peak is None or curve.enough < curve.peak
    linear = Curve(LINEAR, 40.0)
    assert (linear.limit, linear.enough, linear.peak) == (None, None, None)
    assert linear.efficiency(7.0) == pytest.approx(1.0)


@pytest.mark.parametrize(
    "truth",
    [Curve(AMDAHL, 100.0, 1.0), Curve(AMDAHL, 100.0, 1.5), Curve(USL, 100.0, 1.2, 0.05), Curve(USL, 100.0, 0.5, 0.9)],
)
def test_where_more_nodes_never_help_one_suffices(truth):
    nodes = np.repeat([1.0, 2.0, 4.0, 8.0], 3)
    noise = 1 + 0.01 * np.random.default_rng(1).standard_normal(nodes.size)
    found = fit(nodes, truth.at(nodes) * noise, np.random.default_rng(2))
    for curve in (truth, found.curve):
        assert curve.enough == 1.0
        assert curve.at(np.arange(1.0, 50.0)).max() == pytest.approx(curve.limit, rel=0.02)
        assert curve.peak in {1.0, None}
    assert (found.enough.value, found.enough.low) == (1.0, 1.0)


@given(sigma=st.floats(0, 2), kappa=st.floats(1e-4, 1))
def test_no_number_of_nodes_exceeds_the_throughput_at_the_peak(sigma, kappa):
    curve = Curve(USL, 10.0, sigma, kappa)
    tried = np.append(np.geomspace(1.0, 1000.0, 500), curve.peak)
    assert curve.at(tried).max() == pytest.approx(curve.limit)
    assert 1.0 <= curve.enough <= curve.peak


def test_too_little_data_is_rejected():
    with pytest.raises(ValueError, match="three measurements"):
        fitted([4, 4, 4], [1, 2, 3])


def test_three_measurements_on_two_numbers_of_nodes_are_enough():
    found = fitted([4, 4, 8], [40, 40, 80])
    assert found.curve == Curve(LINEAR, pytest.approx(10.0))
    assert found.fitted_on == (4.0, 8.0)
    assert set(found.criteria.values()) == {np.inf}, "too few for any law's criterion"


def test_laws_are_told_apart_by_akaikes_criterion_for_small_samples():
    """n ln(RSS / n) + 2 k + 2 k (k + 1) / (n - k - 1), where the variance is one of the k parameters."""
    found = fitted(RAYTRACER_NODES, RAYTRACER_THROUGHPUT)
    for law, count in ((LINEAR, 2), (AMDAHL, 3), (USL, 4)):
        residuals = RAYTRACER_THROUGHPUT - fitted(RAYTRACER_NODES, RAYTRACER_THROUGHPUT, law=law).curve.at(
            RAYTRACER_NODES
        )
        expected = 11 * np.log((residuals**2).sum() / 11) + 2 * count + 2 * count * (count + 1) / (11 - count - 1)
        assert found.criteria[law] == pytest.approx(expected)
    assert found.curve.law == min(found.criteria, key=found.criteria.get)
    assert fitted([1, 2, 4, 8], [1.0, 2.1, 3.9, 8.0]).criteria[AMDAHL] == np.inf, "n = k + 1"


def test_the_unit_of_throughput_does_not_matter():
    for unit in (1e-6, 1e6):
        curve = fitted(SDM91_LOAD, unit * SDM91_THROUGHPUT, law=USL).curve
        assert (curve.gamma / unit, curve.sigma, curve.kappa) == pytest.approx(
            (89.9952, 0.0277285, 0.0001044), rel=2e-3
        )


def test_the_ends_of_an_interval_are_those_of_resamples():
    """Between a number and a law without a limit there is none to interpolate."""
    found = fitted(RAYTRACER_NODES, RAYTRACER_THROUGHPUT, resamples=99, law=USL)
    for interval, of in ((found.enough, lambda curve: curve.enough), (found.peak, lambda curve: curve.peak)):
        values = sorted(of(Curve(USL, *row)) or np.inf for row in found.resampled.tolist())
        low, high = values[4], values[94]  # the 5th and the 95th of 99: the least that 5 % and 95 % do not exceed
        assert (interval.low, interval.high) == (low, high if np.isfinite(high) else None)


def test_the_criterion_of_a_perfect_fit_is_that_of_an_error_by_rounding():
    nodes = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    found = fit(nodes, 2 * nodes, np.random.default_rng(1), resamples=10)
    squares = 4 * 55  # of the throughput; the variance is a parameter, too
    assert found.criteria[LINEAR] == pytest.approx(5 * np.log(1e-20 * squares / 5) + 2 * 2 + 2 * 2 * 3 / 2)


def test_the_band_holds_the_middle_share_of_the_resampled_curves():
    random = np.random.default_rng(3)
    nodes = np.tile([2.0, 4.0, 8.0, 16.0], 5)
    found = fit(nodes, 10 * nodes / (1 + 0.05 * (nodes - 1)) * random.lognormal(0, 0.05, nodes.size), random)
    at = np.array([3.0, 12.0, 40.0])
    low, high = found.band(at, level=0.8)
    curves = np.array([Curve(USL, *row).at(at) for row in found.resampled])
    assert np.mean(curves < low, axis=0) == pytest.approx(0.1, abs=0.005)
    assert np.mean(curves > high, axis=0) == pytest.approx(0.1, abs=0.005)
