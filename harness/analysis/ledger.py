"""What became of every arrival, exactly: intended = terminal + in flight + missed + rejected."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.analysis.timeline import Timeline
from harness.model.phases import CANCELED, FAILED, SKIPPED, SUCCEEDED
from harness.model.records import Outcome

_STRETCH = 4  # so many evenly spaced numbers are told by their ends


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
    def lost(self) -> int:
        """What the platform was asked for and did not do: failed, canceled or refused."""
        return self.failed + self.canceled + self.rejected

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


def missing(timeline: Timeline) -> list[int]:
    """Sequence numbers of arrivals that nobody recorded."""
    recorded = timeline.runs["seq"].to_numpy(dtype=np.int64)
    return [int(seq) for seq in np.setdiff1d(np.arange(timeline.plan.intended), recorded)]


def in_words(seqs: Sequence[int], most: int = 20) -> str:
    """Ascending numbers as a list; evenly spaced ones, as a lost worker leaves them, by their ends: "3, 5, …, 41".

    After `most` such stretches and single numbers the rest is left out: ", …".
    """
    parts: list[str] = []
    k = 0
    while k < len(seqs) and len(parts) < most:
        end = k
        while end + 1 < len(seqs) and seqs[end + 1] - seqs[end] == seqs[k + 1] - seqs[k]:
            end += 1
        if end - k < _STRETCH - 1:
            parts.append(str(seqs[k]))
            k += 1
        else:
            parts.append(f"{seqs[k]}, {seqs[k + 1]}, …, {seqs[end]}")
            k = end + 1
    return ", ".join(parts) + (", …" if k < len(seqs) else "")
