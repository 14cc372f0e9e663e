import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

from generators import portable


@settings(deadline=None)
@given(st.floats(-700, 700))
def test_exp_agrees_with_the_library(x):
    assert portable.exp(np.array([x]))[0] == pytest.approx(math.exp(x), rel=2e-15)


@settings(deadline=None)
@given(st.floats(1e-300, 1e300))
def test_log_agrees_with_the_library(x):
    assert portable.log(np.array([x]))[0] == pytest.approx(math.log(x), rel=2e-15, abs=1e-16)


@settings(deadline=None)
@given(st.floats(1e-15, 1 - 1e-15))
def test_the_normal_quantile_agrees_with_scipy(p):
    assert portable.normal_quantile(np.array([p]))[0] == pytest.approx(ndtri(p), rel=1e-13, abs=1e-15)


@settings(deadline=None)
@given(st.floats(-8, 8))
def test_the_normal_distribution_function_agrees_with_scipy(z):
    assert portable.normal_cdf(np.array([z]))[0] == pytest.approx(ndtr(z), abs=1e-14)


def test_far_tails_stay_strictly_between_0_and_1():
    far = portable.normal_cdf(np.array([-50.0, 50.0]))
    assert 0 < far[0] < far[1] < 1


def test_every_operation_is_one_that_ieee_754_rounds_exactly():
    # exp written out with Python's own floats, one rounding an operation: no bit may differ.
    for x in (-3.7, -0.1, 0.0, 0.3, 1.0, 12.345):
        k = round(x * (1.0 / (portable._LN2_HIGH + portable._LN2_LOW)))
        r = (x - k * portable._LN2_HIGH) - k * portable._LN2_LOW
        total = portable._INVERSE_FACTORIALS[0]
        for coefficient in portable._INVERSE_FACTORIALS[1:]:
            total = total * r + coefficient
        assert portable.exp(np.array([x]))[0] == math.ldexp(total, k)
    assert Fraction(portable._LN2_HIGH).limit_denominator(2**40) == Fraction(portable._LN2_HIGH)  # exact times k
