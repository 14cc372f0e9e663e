"""Elementary functions that are bit-identical on every machine.

NumPy's `exp` and `log` choose an implementation by the CPU, and their last bits differ; one differing bit in a million
rows makes another file. These functions use only additions, multiplications, divisions and square roots, which IEEE 754
rounds exactly, one NumPy call each, so that no compiler can fuse two of them.
"""

from collections.abc import Sequence

import numpy as np

from generators.streams import Floats

_LN2_HIGH = 0.693147180369123816490  # ln 2 in two parts: the first has 32 low zero bits, so k * _LN2_HIGH is exact
_LN2_LOW = 1.90821492927058770002e-10
_INVERSE_FACTORIALS = tuple(1.0 / f for f in (
    6227020800, 479001600, 39916800, 3628800, 362880, 40320, 5040, 720, 120, 24, 6, 2, 1, 1,
))  # fmt: skip


def _polynomial(x: Floats, coefficients: Sequence[float]) -> Floats:
    """Horner's scheme, highest power first."""
    total = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        total *= x
        total += coefficient
    return total


def exp(x: Floats) -> Floats:
    """e**x, relative error below 1e-15: Taylor's series on |r| <= ln 2 / 2, scaled by 2**k."""
    x = np.clip(np.asarray(x, dtype=np.float64), -745.0, 709.7)
    k = np.rint(x * (1.0 / (_LN2_HIGH + _LN2_LOW)))
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    scaled: Floats = np.ldexp(_polynomial(r, _INVERSE_FACTORIALS), k.astype(np.int32))
    return scaled


def log(x: Floats) -> Floats:
    """The natural logarithm of x > 0, relative error below 1e-15: 2 atanh((m - 1) / (m + 1)) + k ln 2."""
    m, k = np.frexp(np.asarray(x, dtype=np.float64))
    low = m < 0.7071067811865476
    m = np.where(low, m * 2.0, m)
    k = (k - low).astype(np.float64)
    s = (m - 1.0) / (m + 1.0)
    series = _polynomial(s * s, [1.0 / odd for odd in range(23, 0, -2)])
    return k * _LN2_HIGH + (2.0 * s * series + k * _LN2_LOW)


# Wichura, "Algorithm AS 241: The percentage points of the normal distribution", Applied Statistics 37 (1988), PPND16.
_CENTRE = (
    (2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
     13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608),
    (5226.495278852854561, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867,
     5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1.0),
)  # fmt: skip
_SHOULDER = (
    (7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258,
     3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734),
    (1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459,
     0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1.0),
)  # fmt: skip
_TAIL = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386, 0.026532189526576123093,
     0.29656057182850489123, 1.7848265399172913358, 5.4637849111641143699, 6.6579046435011037772),
    (2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5, 7.868691311456132591e-4,
     0.0148753612908506148525, 0.13692988092273580531, 0.59983220655588793769, 1.0),
)  # fmt: skip


def _ratio(x: Floats, coefficients: tuple[tuple[float, ...], tuple[float, ...]]) -> Floats:
    return _polynomial(x, coefficients[0]) / _polynomial(x, coefficients[1])


def normal_quantile(p: Floats) -> Floats:
    """The standard normal quantile of probabilities strictly between 0 and 1, relative error about 1e-15 (AS 241)."""
    q = np.asarray(p, dtype=np.float64) - 0.5
    result = q * _ratio(0.180625 - q * q, _CENTRE)
    outer = np.flatnonzero(np.abs(q) > 0.425)
    if len(outer):
        side = q[outer]
        r = np.sqrt(-log(np.where(side < 0, p[outer], 1.0 - p[outer])))
        near = r <= 5.0
        z = np.where(near, _ratio(r - 1.6, _SHOULDER), _ratio(r - 5.0, _TAIL))
        result[outer] = np.where(side < 0, -z, z)
    return result


# Hart et al., "Computer Approximations" (1968), algorithm 5666, as given by West, "Better approximations to cumulative
# normal functions", Wilmott (2005).
_HART = (
    (0.0352624965998911, 0.700383064443688, 6.37396220353165, 33.912866078383, 112.079291497871, 221.213596169931,
     220.206867912376),
    (0.0883883476483184, 1.75566716318264, 16.064177579207, 86.7807322029461, 296.564248779674, 637.333633378831,
     793.826512519948, 440.413735824752),
)  # fmt: skip


def normal_cdf(z: Floats) -> Floats:
    """The standard normal distribution function, absolute error below 1e-14; kept strictly between 0 and 1."""
    z = np.asarray(z, dtype=np.float64)
    far = np.minimum(np.abs(z), 8.0)  # 1 - cdf(8) is 6e-16: beyond, the result is indistinguishable from 1
    continued = far + 0.65
    for k in (4.0, 3.0, 2.0, 1.0):
        continued = far + k / continued
    upper = exp(far * far * -0.5) * np.where(far < 7.07106781186547, _ratio(far, _HART), 0.3989422804014327 / continued)
    return np.clip(np.where(z > 0, 1.0 - upper, upper), 2.0**-53, 1.0 - 2.0**-53)
