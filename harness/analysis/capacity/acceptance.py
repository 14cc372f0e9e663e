"""How fast the platform takes on runs when more are offered than it takes."""

from dataclasses import dataclass

import numpy as np

from harness.analysis.timeline import Floats, Timeline, floats
from harness.model.records import Outcome

LEAST = 20  # answers under a queue
SLOW_S = 0.5  # an answer within that is no queue, only an API under way
_FIT = 0.98


@dataclass(frozen=True, slots=True)
class Plateau:
    """Answers leave at an even `rate` (per second) while submissions queue; `spread` is the gaps' variation."""

    rate: float
    count: int
    spread: float
    fit: float


def acceptance(timeline: Timeline) -> Plateau | None:
    """The plateau of a run's accepted submissions; none when no queue stood before the API.

    Where an answer is the run's result, its pace is that of the work, not of the API: none as well.
    """
    if timeline.answers_are_results:
        return None
    runs = timeline.runs
    accepted = (runs["outcome"] == Outcome.ACCEPTED.value).to_numpy(dtype=bool)
    sent, answered = floats(runs, "sent_s"), floats(runs, "answered_s")
    known = accepted & np.isfinite(sent) & np.isfinite(answered)
    return plateau(sent[known], answered[known])


def plateau(sent: Floats, answered: Floats) -> Plateau | None:
    """The even flow of answers while a queue stands; none when there is no such stretch.

    A queue stands between two answers when more has been sent than answered. Gaps under a full queue are the
    server's own pace; the first answers (a bucket's burst) are left out by their shorter gaps.
    """
    if sent.size < LEAST or np.quantile(answered - sent, 0.95) < SLOW_S:
        return None
    at = np.sort(answered)
    waiting = np.searchsorted(np.sort(sent), at, side="right") - np.arange(1, at.size + 1)
    queued = waiting >= 2
    if np.count_nonzero(queued) < LEAST:
        return None
    busy = at[queued]
    # The last three quarters: a burst goes first at the speed of the network.
    busy = busy[busy.size // 4 :]
    span = float(busy[-1] - busy[0])
    if span <= 0:
        return None
    rank = np.arange(busy.size)
    fit = float(np.corrcoef(busy, rank)[0, 1] ** 2)
    if fit < _FIT:
        return None
    gaps = np.diff(busy)
    middle = float(np.median(gaps))
    spread = float(np.subtract(*np.quantile(gaps, (0.75, 0.25))) / middle) if middle > 0 else np.inf
    return Plateau((busy.size - 1) / span, int(busy.size), spread, fit)
