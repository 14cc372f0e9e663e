"""How much of their time executions wait for a worker, and what the workers do meanwhile.

A worker does one thing at a time: while it loads for one execution or computes another, the others wait. A service
reports some of that as queueing, and the rest as longer loading and sending, since other executions interrupt both.
What loading itself takes is bounded three times: while all workers have work, those that don't compute load; executions
that found an idle worker loaded without interruption; and in a queue that a worker serves in turns, a load waits behind
other loads, and a send, which blocks no worker, behind other loads and computing: the excess of sends is the computing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace

import numpy as np

from harness.analysis.services.executions import Executions, executions
from harness.analysis.services.service_replicas import ServiceReplicas, service_replicas
from harness.analysis.timeline import Bools, Floats, Timeline, active, floats, remembered
from harness.analysis.waits.waits import waits
from harness.model.phases import COMPUTING


def balanced_waits(came: Floats, takes: Floats, workers: int) -> Floats:
    """Seconds that each execution waits, served in the order in which they come; shape (n,).

    Args:
        came: instants of arrival, seconds, shape (n,), in any order.
        takes: how long each keeps a worker, seconds, shape (n,).
        workers: how many there are, at least 1.
    """
    order = np.argsort(came, kind="stable")
    free = [-np.inf] * workers
    heapify(free)
    waits = np.empty(came.size)
    for place, at, long in zip(order.tolist(), came[order].tolist(), takes[order].tolist(), strict=True):
        starts = max(at, free[0])
        waits[place] = starts - at
        heapreplace(free, starts + long)
    return waits


_MIN_COMPUTING = 0.02  # of a worker's time: computing takes that much of it even if loads take nearly all
_BUSY_QUANTILE = 0.9  # quantile of the time, by the number that compute
_MIN_SHARE_AT_ONCE = 0.002  # of the time in which any computed
_QUICK_QUANTILE = 0.1  # quantile of loads that nothing interrupts
_MIN_SHARE_MEASURED = 0.3  # of the wait: with less measured in a queue, the rest may be long loads
_MIN_SHARE_IN_ONE = 0.8  # of the replicas' CPU time: idle ones use some, too
_MIN_REPLICAS_BUSY = 1.2  # times the workers of a replica would usually compute at once, if all replicas had work
_MEAN_OF_QUICK = 3.0  # times a quick load is the mean one, if durations vary as usual: lognormal, p95 = 2.5 medians


@dataclass(frozen=True, slots=True)
class Saturation:
    """Executions and their workers; all times as shares of the runs' whole time.

    Attributes:
        waiting: executions waited for a worker: in the queue, and while they were loading or sending.
        moving: loading and sending took, without that wait.
        computing: share of the workers' busy time spent computing; in the rest they loaded.
        covered: share of the workers that had work while executions waited, weighted with the number that waited.
        workers: as many as usually compute at once in busy times, over all replicas.
        used: share of the workers that computed or loaded while there was an execution for each; below 1 where some
            were idle, by replica where replicas are named.
        most: as many as Kubernetes shows, or as ever computed at once for more than a moment, over all replicas.
        enough: there ever was an execution for each of `most` workers.
        balanced: executions would still wait, if each went to the first worker that is free.
        queued: the part of `waiting` that was measured in a queue; the rest is inferred from long loads and sends.
        in_one: one of several replicas did all the work: it alone is named, or never more computed at once than it has
            workers, and more would if the others had work.
    """

    waiting: float
    moving: float
    computing: float
    covered: float
    workers: int
    used: float = 1.0
    most: int = 0
    enough: bool = True
    balanced: float = 0.0
    queued: float = 1.0
    in_one: bool = False

    @property
    def measured(self) -> bool:
        """Whether enough of the wait was measured in a queue for the inferred rest to be one, too."""
        return self.queued >= _MIN_SHARE_MEASURED * self.waiting


@remembered
def saturation(timeline: Timeline) -> Saturation:
    """Of the executions that reported their phases; all 0 where none did."""
    done = executions(timeline)
    groups = tuple(_groups(timeline, done))
    computed, loaded, sent = (float(each.sum()) for each in (done.computing, done.loading, done.sending))
    own_sending = min(sent, unhindered(done.sending))
    excess = sent - own_sending - loaded
    most_own = min(loaded, unhindered(done.loading))
    if excess > computed > 0:
        most_own = min(most_own, computed * loaded / excess)  # in turns

    def own_loading(busy: float | None) -> float:
        return most_own if busy is None else min(most_own, computed * (1 - busy) / max(busy, _MIN_COMPUTING))

    used, known = _share([group.whole for group in groups]), service_replicas(timeline).total
    own = own_loading(_share([group.usual for group in groups]))
    computing = computed / max(computed + own, 1e-9)
    # Of workers that Kubernetes shows, those that don't compute may be idle as well as load: at most, they load.
    own_of_all = own_loading(used) if known else own
    whole = max(float(waits(timeline).total.sum()), 1e-9)
    workers = sum(group.workers for group in groups)
    takes = done.computing + own_of_all * done.loading / max(loaded, 1e-9)
    came = floats(timeline.runs, "sent_s")[done.row]
    queued = float(done.queued.sum())
    return Saturation(
        waiting=(queued + loaded - own + sent - own_sending) / whole,
        moving=(own + own_sending) / whole,
        computing=computing,
        covered=_covered(timeline, done, groups),
        workers=workers,
        used=1.0 if used is None else min(1.0, used * (computed + own_of_all) / max(computed, 1e-9)),
        most=sum(group.most for group in groups),
        enough=used is not None,
        balanced=float(np.nansum(balanced_waits(came, takes, max(known, workers, 1)))) / whole,
        queued=queued / whole,
        in_one=_in_one(done, service_replicas(timeline), groups, computing),
    )


def _in_one(done: Executions, shown: ServiceReplicas, groups: Sequence["_Group"], computing: float) -> bool:
    """Whether one of several replicas did all the work, as far as answers or the number that computed at once show."""
    if len(shown.pods) < 2 or (shown.cpu_s.size and shown.cpu_s.max() < _MIN_SHARE_IN_ONE * shown.cpu_s.sum()):
        return False  # a name that all answers have may be a load balancer's
    if done.replicas:
        return len(done.replicas) == 1
    seen = sum(group.seen for group in groups)
    return shown.each > 0 and seen <= shown.each and len(shown.pods) * computing >= _MIN_REPLICAS_BUSY


def unhindered(seconds: Floats) -> float:
    """At most this much did all of them take without interruption, judged by the quickest of the later half."""
    late = seconds[seconds.size // 2 :]
    return _MEAN_OF_QUICK * float(np.quantile(late, _QUICK_QUANTILE)) * seconds.size if late.size else 0.0


@dataclass(frozen=True, slots=True)
class _Share:
    """Worker-seconds of computing, and in all, while there was work for that many workers."""

    spent_s: float
    offered_s: float


def _share(of_groups: Sequence[_Share]) -> float | None:
    """That of all groups; none where there never was work for all workers."""
    offered_s = sum(group.offered_s for group in of_groups)
    return sum(group.spent_s for group in of_groups) / offered_s if offered_s > 0 else None


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """The executions of one replica, or of all where replicas are not named.

    Attributes:
        workers: how many there seem to be.
        seen: how many ever computed at once.
        most: as many, or as there are known to be.
        came: start of each execution at the service, shape (n,).
        left: its end, shape (n,).
        usual: the share of the workers' time spent computing.
        whole: the same for `most` workers, of which some may not get work.
    """

    workers: int
    seen: int
    most: int
    came: Floats
    left: Floats
    usual: "_Share"
    whole: "_Share"


def _groups(timeline: Timeline, done: Executions) -> Iterator[_Group]:
    home = np.full(len(timeline.runs), -1)
    home[done.row] = done.replica
    ran = np.zeros(len(timeline.runs), dtype=bool)
    ran[done.row] = True
    stretches = timeline.pods[timeline.of_runs(COMPUTING)]
    row, start, end = stretches["row"].to_numpy(), floats(stretches, "start_s"), floats(stretches, "end_s")
    sent, over = floats(timeline.runs, "sent_s"), floats(timeline.runs, "over_s")
    shown = service_replicas(timeline)
    for k in np.unique(done.replica):
        here, of_group = (home[row] == k) & (row >= 0), ran & (home == k)
        known = shown.each if done.replicas else shown.total
        yield _group(start[here], end[here], sent[of_group], over[of_group], known)


def _group(begun: Floats, ended: Floats, came: Floats, left: Floats, known: int) -> _Group:
    """With the `known` number of workers, 0 where it is not known: some of them may never get work."""
    at = np.unique(np.concatenate((begun, ended, came, left)))
    at = at[np.isfinite(at)]
    length = np.diff(at)
    computing = active(begun, ended, at[:-1])
    there = active(came, left, at[:-1])
    seen = _most(computing, length)
    workers = _workers(computing, length, there >= seen, seen)
    most = max(seen, known)

    def computed(number: int) -> _Share:
        enough: Bools = there >= number
        return _Share(float(computing[enough] @ length[enough]), number * float(length[enough].sum()))

    return _Group(workers, seen, most, came, left, computed(workers), computed(most))


def _most(computing: Floats, length: Floats) -> int:
    """The largest number that computed at once, at least 1; passing overlaps come from how steps are reported."""
    reached = np.arange(1, int(computing.max(initial=1.0)) + 1)
    busy_s = np.array([float(length[computing >= number].sum()) for number in reached])
    return int(reached[busy_s >= _MIN_SHARE_AT_ONCE * busy_s[0]].max())


def _workers(computing: Floats, length: Floats, enough: Bools, most: int) -> int:
    """How many workers there are, where that many computed at once, and there was `enough` work for `most` of them.

    At least as many as usually compute in busy times. Where workers mostly load, seldom many of them compute at once:
    if each does so for a share p of the time, independently, the number is binomial with mean kp and variance
    kp(1 - p), so k is mean / (1 - variance / mean). Now and then more seem to compute than can, since an execution's
    steps are reported as if they followed each other.
    """
    by_number = np.argsort(computing, kind="stable")
    time = np.cumsum(length[by_number] * (computing[by_number] > 0))
    usual = computing[by_number][np.searchsorted(time, _BUSY_QUANTILE * time[-1])] if time.size else 1.0
    least, weight = max(int(usual), 1), length * enough
    if not weight.any():
        return least
    mean = float(np.average(computing, weights=weight))
    spread = float(np.average((computing - mean) ** 2, weights=weight))
    return int(np.clip(round(mean / (1 - spread / mean)), least, most)) if spread < mean else least


def _covered(timeline: Timeline, done: Executions, groups: tuple[_Group, ...]) -> float:
    """The share of workers with work, over the instants at which more executions were open than workers there are."""
    sent, over = floats(timeline.runs, "sent_s")[done.row], floats(timeline.runs, "over_s")[done.row]
    at = np.sort(np.concatenate((sent, over)))
    at = at[np.isfinite(at)]
    working, waiting = np.zeros(max(at.size - 1, 0)), np.zeros(max(at.size - 1, 0))
    for group in groups:
        there = active(group.came, group.left, at[:-1])
        working += np.minimum(there, group.workers)
        waiting += np.maximum(there - group.workers, 0.0)
    weight = waiting * np.diff(at)
    workers = sum(group.workers for group in groups)
    return float(weight @ working) / max(float(weight.sum()) * workers, 1e-9)
