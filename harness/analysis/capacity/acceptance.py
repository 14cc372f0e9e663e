"""The rate at which the platform accepts runs when submissions queue."""

from dataclasses import dataclass

import numpy as np

from harness.analysis.timeline import Floats, Timeline, floats
from harness.model.records import Outcome

LEAST = 20  # responses while submissions queue
SLOW_S = 0.5  # a response within this time shows no queue
_FIT = 0.98


@dataclass(frozen=True, slots=True)
class Plateau:
    """Responses at an even `rate` (per second) under a queue; `spread` is the gaps' relative IQR, `fit` the R²."""

    rate: float
    count: int
    spread: float
    fit: float


def acceptance(timeline: Timeline) -> Plateau | None:
    """The plateau of a test's accepted submissions; none when they never queued.

    None as well where a response is the run's result: its pace is that of the work, not of the API.
    """
    if timeline.answers_are_results:
        return None
    runs = timeline.runs
    accepted = (runs["outcome"] == Outcome.ACCEPTED.value).to_numpy(dtype=bool)
    sent, answered = floats(runs, "sent_s"), floats(runs, "answered_s")
    known = accepted & np.isfinite(sent) & np.isfinite(answered)
    return plateau(sent[known], answered[known])


def plateau(sent: Floats, answered: Floats) -> Plateau | None:
    """The even flow of responses while requests queue; none when there is no such stretch.

    Requests queue while more have been sent than answered. The gaps between responses are then the server's own pace;
    the first responses, a token bucket's burst, are left out.
    """
    if sent.size < LEAST or np.quantile(answered - sent, 0.95) < SLOW_S:
        return None
    at = np.sort(answered)
    waiting = np.searchsorted(np.sort(sent), at, side="right") - np.arange(1, at.size + 1)
    queued = waiting >= 2
    if np.count_nonzero(queued) < LEAST:
        return None
    busy = at[queued]
    # The last three quarters: a token bucket's burst comes first, at network speed.
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
