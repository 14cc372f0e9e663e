"""When the artifact store refuses a write."""

import pytest

from harness.simulator.platform import Platform
from harness.simulator.profile import ArtifactStore
from tests.support.platforms import profile


@pytest.mark.parametrize(
    ("min_free", "size", "full"), [(0.0, 200, False), (0.0, 201, True), (0.1, 100, False), (0.1, 101, True)]
)
def test_a_write_is_refused_that_would_leave_less_than_the_share_that_stays_free(
    min_free: float, size: float, full: bool
) -> None:
    store = Platform(profile(store=ArtifactStore(capacity=1000, used=800, min_free=min_free))).store
    assert store.full_for(size) is full
