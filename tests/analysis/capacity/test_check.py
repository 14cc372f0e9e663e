import numpy as np

from harness.analysis.capacity.check import leave_one_out
from harness.analysis.capacity.model import Observation


def test_leave_one_out_on_exact_data_finds_no_error():
    exact = [Observation(runs, nodes, 60 + 300 * runs / nodes) for runs in (40, 100, 200) for nodes in (2, 4, 8, 16)]
    check = leave_one_out(exact, np.random.default_rng(1))
    assert (check.sizes, check.tests, check.coverage) == (12, 12, 1.0)
    assert check.error < 0.03
    assert leave_one_out([Observation(100, 5, 60)] * 3, np.random.default_rng(1)) is None
