"""What became of every arrival, exactly: intended = terminal + in flight + missed + rejected."""

from dataclasses import dataclass

import numpy as np

from harness.analysis.timeline import Timeline
from harness.model.phases import CANCELED, FAILED, SKIPPED, SUCCEEDED
from harness.model.records import Outcome


@dataclass(frozen=True, slots=True)
class Ledger:
    """Counts of arrivals. `in_flight` are the censored ones: accepted, their end not seen."""

    intended: int
    succeeded: int
    failed: int
    canceled: int
    skipped: int
    in_flight: int
    rejected: int
    missed: int
    foreign: int = 0  # runs on the platform that are not of this test

    @property
    def terminal(self) -> int:
        """Runs that are over, whatever their state."""
        return self.succeeded + self.failed + self.canceled + self.skipped

    @property
    def accepted(self) -> int:
        """Runs the platform took on."""
        return self.terminal + self.in_flight

    @property
    def unaccounted(self) -> int:
        """Arrivals nobody recorded; below 0 when more was recorded than intended."""
        return self.intended - self.accepted - self.rejected - self.missed

    def share(self, count: int) -> float:
        """`count` as a share of what was intended."""
        return count / self.intended if self.intended else 0.0


def ledger(timeline: Timeline) -> Ledger:
    """Fold the arrivals into counts. Without a load of ours what was observed is what was intended."""
    runs = timeline.runs
    outcomes = runs["outcome"].value_counts()
    of_accepted = runs["state"][runs["outcome"] == Outcome.ACCEPTED.value].value_counts()

    def states(name: str) -> int:
        return int(of_accepted.get(name, 0))

    return Ledger(
        intended=timeline.plan.intended or len(runs),
        succeeded=states(SUCCEEDED),
        failed=states(FAILED),
        canceled=states(CANCELED),
        skipped=states(SKIPPED),
        in_flight=int(timeline.is_open.sum()),
        rejected=int(outcomes.get(Outcome.REJECTED.value, 0)),
        missed=int(outcomes.get(Outcome.MISSED.value, 0)),
        foreign=timeline.foreign,
    )


def missing(timeline: Timeline, most: int = 20) -> list[int]:
    """Sequence numbers of arrivals that nobody recorded, at most `most` of them."""
    recorded = timeline.runs["seq"].to_numpy(dtype=np.int64)
    absent = np.setdiff1d(np.arange(timeline.plan.intended), recorded)
    return [int(seq) for seq in absent[:most]]
