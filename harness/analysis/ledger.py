"""What became of every arrival, exactly: intended = terminal + in flight + missed + rejected."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.analysis.timeline import LATE_ROWS, RECOVERED, Timeline, remembered
from harness.model.phases import CANCELED, FAILED, REMOVED, SKIPPED, SUCCEEDED
from harness.model.records import Outcome

_SEQUENCE = 4  # evenly spaced numbers, from this many on, are abbreviated


@dataclass(frozen=True, slots=True)
class Ledger:
    """Counts of arrivals. `in_flight` are censored: accepted, and not seen to end."""

    intended: int
    succeeded: int
    failed: int
    canceled: int
    skipped: int
    in_flight: int
    rejected: int
    missed: int
    foreign: int = 0  # runs on the platform that do not belong to this test

    @property
    def terminal(self) -> int:
        """Runs that have ended, in whatever state."""
        return self.succeeded + self.failed + self.canceled + self.skipped

    @property
    def accepted(self) -> int:
        """Runs that the platform accepted."""
        return self.terminal + self.in_flight

    @property
    def lost(self) -> int:
        """Requested and not done: failed, canceled or rejected."""
        return self.failed + self.canceled + self.rejected

    @property
    def unaccounted(self) -> int:
        """Arrivals without a record; negative when more were recorded than intended."""
        return self.intended - self.accepted - self.rejected - self.missed

    def share(self, count: int) -> float:
        """`count` as a share of the intended arrivals."""
        return count / self.intended if self.intended else 0.0


@remembered
def ledger(timeline: Timeline) -> Ledger:
    """Count the arrivals by outcome. Without a load of our own, the observed runs are the intended ones."""
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


def removed(timeline: Timeline) -> int:
    """How many of the runs in flight the platform had removed, so that their ends are unknown."""
    gone = timeline.events_of("Run", REMOVED)["object"]
    return int((timeline.runs["run"].isin(gone) & timeline.is_open).sum())


def missing(timeline: Timeline) -> list[int]:
    """Sequence numbers of arrivals without a record."""
    recorded = timeline.runs["seq"].to_numpy(dtype=np.int64)
    return [int(seq) for seq in np.setdiff1d(np.arange(timeline.plan.intended), recorded)]


def recovered(timeline: Timeline) -> tuple[str, ...]:
    """What was added to the ledger after its worker, or the whole test, had been given up: one sentence each."""
    return tuple(text for reason in (LATE_ROWS, RECOVERED) for text in timeline.events_of("Test", reason)["message"])


def in_words(seqs: Sequence[int], most: int = 20) -> str:
    """Ascending numbers as a list; evenly spaced ones, as a lost worker leaves them, are abbreviated: "3, 5, …, 41".

    After `most` entries the rest is left out: ", …".
    """
    parts: list[str] = []
    k = 0
    while k < len(seqs) and len(parts) < most:
        end = k
        while end + 1 < len(seqs) and seqs[end + 1] - seqs[end] == seqs[k + 1] - seqs[k]:
            end += 1
        if end - k < _SEQUENCE - 1:
            parts.append(str(seqs[k]))
            k += 1
        else:
            parts.append(f"{seqs[k]}, {seqs[k + 1]}, …, {seqs[end]}")
            k = end + 1
    return ", ".join(parts) + (", …" if k < len(seqs) else "")
