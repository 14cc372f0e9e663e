"""The API server takes on runs at a fixed rate, whatever is offered: its client's token bucket (QPS and burst)."""

from dataclasses import dataclass

import numpy as np

from harness.analysis.timeline import Timeline, floats
from harness.detectors.detector import SUBMISSIONS, slowed
from harness.model.findings import Evidence, Finding
from harness.model.records import Outcome
from harness.model.units import format_duration

NAME = "api-throttled"
NEEDS = (SUBMISSIONS,)

_SLOW_S = 0.5
_MANY = 20
_EVEN = 0.25
_FIT = 0.98


@dataclass(frozen=True, slots=True)
class Plateau:
    """Answers leave at an even `rate` (per second) while submissions queue; `spread` is the gaps' variation."""

    rate: float
    count: int
    spread: float
    fit: float


def detect(timeline: Timeline) -> list[Finding]:
    """While submissions wait for their answers, the answers come evenly: a bucket drips, a busy server stutters."""
    runs = timeline.runs
    accepted = (runs["outcome"] == Outcome.ACCEPTED.value).to_numpy(dtype=bool)
    sent, answered = floats(runs, "sent_s"), floats(runs, "answered_s")
    known = accepted & np.isfinite(sent) & np.isfinite(answered)
    service = (answered - sent)[known]
    if service.size < _MANY or np.quantile(service, 0.95) < _SLOW_S:
        return []
    found = plateau(sent[known], answered[known])
    if found is None:
        return []
    even = found.spread < _EVEN
    share = float(service.sum() / max(np.nansum(floats(runs, "over_s") - floats(runs, "due_s")), service.sum()))
    slowest = float(service.max())
    return [
        Finding(
            NAME,
            f"The API server takes on {found.rate:.1f} runs/s at most; the slowest submission waited "
            f"{format_duration(slowest)}",
            0.92 if even else 0.6,
            (
                Evidence(
                    f"{found.count:,} answers in a row came at {found.rate:.2f}/s while others waited "
                    f"(a straight line explains {found.fit:.1%})",
                    found.rate, "1/s", "submissions", "answered_at",
                ),
                Evidence(
                    f"the gaps between them vary by {found.spread:.0%}: " + (
                        "as even as a token bucket drips" if even else "uneven, as of a busy server"
                    ),
                    found.spread, "share", "submissions", "answered_at",
                ),
                Evidence(f"submissions took up to {format_duration(slowest)}", slowest, "s", "submissions"),
            ),
            "Raise the API server's client limits (CLIENTQPS and CLIENTBURST, 5 and 10 by default), or run more "
            "replicas of it: each has its own bucket. Each run costs a create, and a get and a patch when it ends.",
            (
                f"kubectl set env deployment/ml-pipeline -n {timeline.namespace} CLIENTQPS=50 CLIENTBURST=100",
                f"kubectl rollout status deployment/ml-pipeline -n {timeline.namespace}",
            ),
            slowed(max(share, 0.3)),
        )
    ]  # fmt: skip


def plateau(
    sent: "np.ndarray[tuple[int], np.dtype[np.float64]]", answered: "np.ndarray[tuple[int], np.dtype[np.float64]]"
) -> Plateau | None:
    """The even flow of answers while a queue stands; none when there is no such stretch.

    A queue stands between two answers when more has been sent than answered. Gaps under a full queue are the
    server's own pace; the first answers (a bucket's burst) are left out by their shorter gaps.
    """
    at = np.sort(answered)
    waiting = np.searchsorted(np.sort(sent), at, side="right") - np.arange(1, at.size + 1)
    queued = waiting >= 2
    if np.count_nonzero(queued) < _MANY:
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
