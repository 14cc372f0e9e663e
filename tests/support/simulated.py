"""The records of a simulation, one by one."""

from collections.abc import Iterator, Sequence
from typing import Any

from harness.model import PodSpans
from harness.simulator.fast import Arrival, Record, simulate_compactly
from harness.simulator.profile import Profile


def simulate(profile: Profile, package: bytes, arrivals: Sequence[Arrival], **options: Any) -> Iterator[Record]:
    """As `simulate_compactly`, with each span as a record of its own."""
    for each in simulate_compactly(profile, package, arrivals, **options):
        if isinstance(each, PodSpans):
            yield from each.spans()
        else:
            yield each
