import numpy as np

from reports.figures.figure import thinned


def test_thinning_keeps_the_extremes():
    x = np.arange(100_000.0)
    y = np.sin(x / 9000)
    y[[777, 88_888]] = [50.0, -50.0]
    at, kept = thinned(x, y, most=400)
    assert at.size <= 402
    assert {kept.max(), kept.min()} == {50.0, -50.0}
    assert (np.diff(at) > 0).all()
