import numpy as np

from harness.analysis.series.thinning import thinned


def test_thinning_keeps_the_extremes():
    x = np.arange(100_000.0)
    y = np.sin(x / 9000)
    y[[777, 88_888]] = [50.0, -50.0]
    kept = thinned(x, y, most=400)
    assert kept.x.size <= 402
    assert {kept.y.max(), kept.y.min()} == {50.0, -50.0}
    assert (np.diff(kept.x) > 0).all()
