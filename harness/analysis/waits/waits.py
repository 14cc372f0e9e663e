"""Where the time went: each run's duration from due to end, split into phases that add up to it.

    due ─ dispatch ─ sent ─ submit ─ answered ─ controller ─ first pod … last pod ─ publishing ─ over

Between its first and its last pod a run is in the furthest phase that any of its pods is in: while one pod runs, the
run runs. A pod that serves others of its run, as a Dask scheduler does, counts last. Between pods a run waits for the
controller. Platform and harness have different clocks, and the platform's timestamps are whole seconds, so a phase may
come out negative; it is kept, since clamping would break the sum. Only a run that by its stamp ended in the second in
which it was sent, and before, counts as ended when it was answered: else its total would be negative.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from harness.analysis.capacity.autoscaling import provisioning
from harness.analysis.timeline import Bools, Floats, Ints, Timeline, beginnings, floats, position, remembered
from harness.model.phases import (
    CONTROLLER,
    DISPATCH,
    POD_PHASES,
    PRECEDENCE,
    PROVISIONING,
    PUBLISHING,
    RUN_PHASES,
    SUBMIT,
    UNKNOWN,
    UNSCHEDULABLE,
    WORKFLOW,
)

_STAMP_S = 1.0  # the platforms' timestamps are whole seconds
_WORKFLOW_ENDS = ("Succeeded", "Failed", "Error")  # Argo's phases
_LEVEL = np.array([PRECEDENCE.index(phase) for phase in POD_PHASES], dtype=np.int8)
_BLOCK = 2**17  # intervals that are sorted at once
_COLUMN = {name: k for k, name in enumerate(RUN_PHASES)}


@dataclass(frozen=True, slots=True, eq=False)
class Waits:
    """Seconds by run and phase.

    Attributes:
        row: rows of `Timeline.runs`, shape (n,).
        seconds: shape (n, len(RUN_PHASES)), column after column; each row adds up to `total`.
        total: from due to end (or to the end of the observation), shape (n,).
        reversed: intervals of pods that end before they start; they are left out.
    """

    row: Ints
    seconds: Floats
    total: Floats
    reversed: int = 0

    def of(self, phase: str) -> Floats:
        """The seconds of one phase, by run."""
        return self.seconds[:, _COLUMN[phase]]

    def shares(self) -> dict[str, float]:
        """Each phase's share of all the time of all runs."""
        whole = float(self.total.sum())
        sums = self.seconds.sum(axis=0).tolist()
        return {name: total / whole if whole else 0.0 for name, total in zip(RUN_PHASES, sums, strict=True)}


@remembered
def waits(timeline: Timeline) -> Waits:
    """Split the duration of every finished run."""
    return _split(timeline, timeline.is_over & np.isfinite(floats(timeline.runs, "over_s")))


@remembered
def waits_so_far(timeline: Timeline) -> Waits:
    """Split the duration of every finished run, and of unfinished ones up to the end of the observation.

    On a platform so slow that hardly any run finishes, the unfinished ones are the evidence.
    """
    if not timeline.is_open.any():
        return waits(timeline)
    return _split(timeline, timeline.is_over & np.isfinite(floats(timeline.runs, "over_s")) | timeline.is_open)


def _split(timeline: Timeline, chosen: Bools) -> Waits:
    row = np.flatnonzero(chosen)
    due, sent, answered, over_s = (
        floats(timeline.runs, name)[row] for name in ("due_s", "sent_s", "answered_s", "over_s")
    )
    unfinished = timeline.is_open[row]
    over_s = np.where(unfinished, timeline.end_s, over_s)
    sent = np.where(np.isfinite(sent), sent, due)
    answered = np.where(np.isfinite(answered), answered, sent)  # the answer was lost, the run was not
    # It can't have ended before it was sent: its end's second began then.
    over_s = np.where((over_s < sent) & (over_s > sent - _STAMP_S), np.maximum(answered, sent), over_s)
    seconds = np.zeros((row.size, len(RUN_PHASES)), order="F")
    swept = _sweep(timeline, chosen)
    first, last = swept.first[row], swept.last[row]
    answered = np.where(over_s <= answered, np.fmin(answered, first), answered)  # the answer was the result
    seconds[:, _COLUMN[DISPATCH]] = sent - due
    seconds[:, _COLUMN[SUBMIT]] = answered - sent
    seen = np.isfinite(first)
    # An unfinished run without a pod waits for its next one, provided that pods are observed at all.
    awaited = ~seen & unfinished & (bool(len(timeline.pods)) and not timeline.executed)
    seconds[:, _COLUMN[UNKNOWN]] = np.where(seen | awaited, 0.0, over_s - answered)
    for phase, of_runs in swept.seconds.items():
        if of_runs.any():  # a column of zeros that is left alone takes no memory
            seconds[:, _COLUMN[phase]] = of_runs[row]
    seconds[:, _COLUMN[CONTROLLER]] += np.where(seen, first - answered, np.where(awaited, over_s - answered, 0.0))
    after_last = np.where(seen, over_s - last, 0.0)
    # The controller is done with a workflow that ended: what the platform takes to show it is another component's time.
    unshown = np.fmin(np.nan_to_num(over_s - workflow_end_s(timeline)[row], nan=0.0), after_last)
    seconds[:, _COLUMN[PUBLISHING]] = np.where(unfinished, unshown, after_last)
    seconds[:, _COLUMN[CONTROLLER]] += np.where(unfinished, after_last - unshown, 0.0)
    return Waits(row, seconds, over_s - due, swept.reversed)


@remembered
def workflow_end_s(timeline: Timeline) -> Floats:
    """When each run's workflow ended, by row of `Timeline.runs`; NaN where that was not seen."""
    ends = timeline.events_of(WORKFLOW, *_WORKFLOW_ENDS)
    found = np.full(len(timeline.runs), np.nan)
    row = position(ends["run"], timeline.runs["run"])
    np.fmin.at(found, row[row >= 0], floats(ends, "at_s")[row >= 0])
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Sweep:
    first: Floats  # by row of runs: start of the first pod; NaN without pods
    last: Floats
    seconds: dict[str, Floats]
    reversed: int


def _sweep(timeline: Timeline, over: Bools) -> _Sweep:
    """From a run's first to its last pod: seconds in each pod phase, and between pods."""
    count, levels = len(timeline.runs), len(PRECEDENCE) + 1
    unschedulable = PRECEDENCE.index(UNSCHEDULABLE)
    coming = provisioning(timeline)
    first, last = np.full(count, np.nan), np.full(count, np.nan)
    seconds, provisioned = np.zeros((count, levels), order="F"), np.zeros(count)
    reversed_ = 0
    for block in _blocks(timeline, over):
        whole = block.end >= block.start
        reversed_ += int(np.count_nonzero(~whole))
        segment = _segments(block.of(whole))
        if not segment.row.size:
            continue
        new = beginnings(segment.row)
        rows, place = segment.row[new], np.repeat(np.arange(new.size), np.diff(new, append=segment.row.size))
        first[rows], last[rows] = segment.start[new], segment.end[np.append(new[1:], segment.row.size) - 1]
        cell = place * levels + segment.level
        seconds[rows] = np.bincount(cell, segment.length, rows.size * levels).reshape(-1, levels)
        waiting = segment.level == unschedulable
        covered = coverage(*coming, segment.start[waiting], segment.end[waiting])
        provisioned[rows] = np.bincount(place[waiting], covered, rows.size)
    found = {name: seconds[:, k] for k, name in enumerate((*PRECEDENCE, CONTROLLER))}
    found[PROVISIONING] = provisioned
    found[UNSCHEDULABLE] = found[UNSCHEDULABLE] - provisioned
    return _Sweep(first, last, found, reversed_)


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """Intervals of runs in which the phase does not change.

    Attributes:
        row: of `Timeline.runs`.
        level: index into PRECEDENCE, or its length where no pod lives between pods.
        start: seconds after t0.
        end: seconds after t0.
    """

    row: Ints
    level: Ints
    start: Floats
    end: Floats

    @property
    def length(self) -> Floats:
        """Seconds of each interval."""
        return self.end - self.start


def segments(timeline: Timeline, chosen: Bools) -> Segments:
    """The phases of the chosen runs (a mask over `Timeline.runs`) between their first and their last pod, by run."""
    found = [_segments(block.of(block.end >= block.start)) for block in _blocks(timeline, chosen)]
    whole = _joined(found)
    order = np.argsort(whole.row, kind="stable")
    return Segments(*(getattr(whole, name)[order] for name in Segments.__slots__))


def segments_of(row: Ints, phase: Ints, start: Floats, end: Floats) -> Segments:
    """The phases of runs from the intervals of their pods: place of the run, index into POD_PHASES, begin and end."""
    order = np.argsort(row, kind="stable")
    return _segments(_Intervals(row[order], phase[order].astype(np.int8), start[order], end[order]))


@dataclass(frozen=True, slots=True, eq=False)
class _Intervals:
    """Intervals of the pods of some runs; those of a run are adjacent."""

    row: Ints
    phase: "np.ndarray[tuple[int], np.dtype[np.int8]]"
    start: Floats
    end: Floats

    def of(self, chosen: Bools) -> "_Intervals":
        return _Intervals(self.row[chosen], self.phase[chosen], self.start[chosen], self.end[chosen])


def _blocks(timeline: Timeline, chosen: Bools) -> Iterator[_Intervals]:
    """The pods of the chosen runs, whole runs at a time; an open interval ends with its run."""
    pods = timeline.pods
    row, phase = pods["row"].to_numpy(), pods["phase"].to_numpy()
    start, end = floats(pods, "start_s"), floats(pods, "end_s")
    until = np.nan_to_num(floats(timeline.runs, "over_s"), nan=timeline.end_s)
    new_run = np.append(beginnings(row)[1:], row.size)
    cuts = np.unique(new_run[np.searchsorted(new_run, np.arange(_BLOCK, row.size, _BLOCK))])
    for low, high in pairwise([0, *cuts[cuts < row.size].tolist(), row.size]):
        here = slice(low, high)
        kept = (row[here] >= 0) & np.append(chosen, False)[row[here]]
        rows = row[here][kept].astype(np.int64)
        begun, ended = start[here][kept], end[here][kept]
        yield _Intervals(
            rows, phase[here][kept], begun, np.where(np.isfinite(ended), ended, np.maximum(until[rows], begun))
        )


def _segments(of: _Intervals) -> Segments:
    """Sort each run's starts and ends by time; between two neighbours the counts by phase are constant.

    Runs with equally many intervals are rows of one array: many short sorts cost far less than one of them all.
    """
    first = beginnings(of.row)
    counts = np.diff(first, append=of.row.size)
    found = [_equally_long(of, first[counts == count], int(count)) for count in np.flatnonzero(np.bincount(counts))]
    return _joined(found)


def _joined(parts: Sequence[Segments]) -> Segments:
    nothing = np.zeros(0, dtype=np.int64)
    parts = parts or [Segments(nothing, nothing, np.zeros(0), np.zeros(0))]
    return Segments(*(np.concatenate([getattr(part, name) for part in parts]) for name in Segments.__slots__))


def _equally_long(of: _Intervals, first: Ints, count: int) -> Segments:
    """The segments of the runs that begin at `first` and have `count` intervals each."""
    at_interval = first[:, None] + np.arange(count)
    at = np.concatenate((of.start[at_interval], of.end[at_interval]), axis=1)
    order = np.argsort(at, axis=1)
    at = np.take_along_axis(at, order, axis=1)
    levels = np.take_along_axis(np.tile(_LEVEL[of.phase[at_interval]], 2), order, axis=1)
    step = np.where(order < count, 1, -1).astype(np.int8)
    level = np.full(at.shape, len(PRECEDENCE), dtype=np.int8)
    for k in reversed(np.flatnonzero(np.bincount(levels.ravel()))):
        level[np.cumsum(step * (levels == k), axis=1, dtype=np.int32) > 0] = k
    row = np.repeat(of.row[first], 2 * count - 1)
    return Segments(row, level[:, :-1].ravel().astype(np.int64), at[:, :-1].ravel(), at[:, 1:].ravel())


def coverage(starts: Floats, ends: Floats, low: Floats, high: Floats) -> Floats:
    """Seconds of each [low, high] that the disjoint, ascending intervals cover."""
    if not starts.size:
        return np.zeros(low.size)
    at = np.ravel(np.column_stack((starts, ends)))
    covered = np.concatenate(([0.0], np.cumsum(np.diff(at) * (np.arange(at.size - 1) % 2 == 0))))
    return np.asarray(np.interp(high, at, covered) - np.interp(low, at, covered), dtype=np.float64)
