"""What another finding explains is not stated as surely: attempts that fail are repeated after a pause."""

import pytest

from harness.detectors import diagnose
from tests.support.injection.case import simulated
from tests.support.injection.installations import draw


@pytest.mark.parametrize(
    ("seed", "number", "first", "explained"),
    [
        (882113, 72, "store-unreachable-from-old-nodes", ("controller-backlog", "store-slow", "steps-end-late")),
        (500001, 73, "store-full", ("controller-backlog", "store-slow", "steps-end-late")),
        (31415, 237, "image-missing", ("image-pull",)),
    ],
)
def test_the_time_of_repeated_attempts_is_that_of_what_makes_them_fail(seed, number, first, explained):
    drawn = draw(seed, number)
    found = diagnose(simulated(drawn.case, drawn.strength, drawn.seed, drawn.profile)).findings
    sure = {finding.name: finding.confidence for finding in found}
    assert found[0].name == first
    assert sure[first] > 0.6
    assert all(sure.get(name, 0.0) <= 0.3 for name in explained)
