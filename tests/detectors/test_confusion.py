"""A small confusion matrix; `python -m tests.detectors.confusion` prints a large one."""

import pytest

from tests.detectors.confusion import CASES, CLEAN, SEEN, named

# The planted wave takes nodes on which none of the profile's short steps is still at work: nothing is lost by it.
HARMLESS = {"spot-evictions"}


@pytest.mark.parametrize("fault", [name for name in SEEN if name not in HARMLESS])
def test_a_planted_fault_is_named_first(fault):
    assert named(CASES[fault], seed=1)[:1] == [fault]


@pytest.mark.parametrize("seed", range(4))
def test_a_sound_platform_is_not_accused(seed):
    assert named(CASES[CLEAN], seed) == []
