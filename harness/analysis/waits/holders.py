"""What pods do that hold something for which others wait.

A wait for a node, or for room in a quota, ends when other pods let go. So what those spend on pulls or on storing, the
waiting pods wait for, too: as much as each of them holds of what is lacked, and as many as wait meanwhile.

A queue hands delays on: what a pod pulls before the others wait, or while few do, all later ones wait for until nobody
waits any more. So quick pulls would save each wait the pulls since its queue began, as far as it lasts (Lindley's
recursion of a queue's waits, with the pulls left out of the service times).
"""

from dataclasses import dataclass

import numpy as np

from harness.analysis.cost.requested import requests_by
from harness.analysis.timeline import Bools, Floats, Ints, Timeline, beginnings, floats
from harness.analysis.timeline.curves import integral, merged, total_active
from harness.analysis.waits.lacking import REQUESTS
from harness.analysis.waits.storing import storing
from harness.model.phases import POD_PHASES, PULLING, RUNNING, SERVING, STARTING, STORING

_PULLING = POD_PHASES.index(PULLING)
_NOTHING = 1e-9


@dataclass(frozen=True, slots=True)
class Holders:
    """Shares of what is held while others wait for it; of waits that go on when all have let go, nothing.

    Attributes:
        pulling: by pods that pull their images.
        storing: by pods that store outputs, estimated where it can't be separated from running.
        queued_by_pulls: share of the waits that would not be without any pull of the holders.
    """

    pulling: float = 0.0
    storing: float = 0.0
    queued_by_pulls: float = 0.0

    @property
    def working(self) -> float:
        """Share held by pods that start or run, and neither pull nor store."""
        return 1.0 - self.pulling - self.storing


def holders(timeline: Timeline, begun: Floats, ended: Floats, resource: str = "") -> Holders:
    """What the runs' pods do with a resource while others wait for it.

    Args:
        timeline: what was observed.
        begun: start of each wait, seconds after t0, shape (n,).
        ended: its end; NaN where it goes on.
        resource: a key of `lacking.REQUESTS`; another, or one of which no requests were observed, counts pods.
    """
    ended = np.nan_to_num(ended, nan=timeline.end_s)
    at = np.unique(np.concatenate((begun, ended)))
    if not at.size:
        return Holders()
    pods = timeline.pods[timeline.of_runs(PULLING, STARTING, RUNNING, STORING, SERVING)]
    if not len(pods):
        return Holders()
    waited = integral(begun, ended, at)
    start, end = floats(pods, "start_s"), np.nan_to_num(floats(pods, "end_s"), nan=timeline.end_s)
    tasks, code, phase = pods["task"].cat, pods["task"].cat.codes.to_numpy(), pods["phase"].to_numpy()
    amounts = dict(requests_by(timeline, REQUESTS[resource], "task")) if resource in REQUESTS else {}
    size = np.array([amounts.get(str(name), 0.0 if amounts else 1.0) for name in tasks.categories])
    held = size[code] * np.maximum(np.interp(end, at, waited) - np.interp(start, at, waited), 0.0)
    whole = float(held.sum())
    if whole <= 0:
        return Holders()
    by_pulls = without(begun, ended, Held(pods["pod"].to_numpy(), start, end, size[code], phase == _PULLING))
    by_phase = np.bincount(phase, held, len(POD_PHASES))
    hidden = float((held * storing(timeline).hidden[code])[phase == POD_PHASES.index(RUNNING)].sum())
    stored = float(by_phase[POD_PHASES.index(STORING)])
    while_held = float(np.interp(end[held > 0].max(), at, waited)) / max(float(waited[-1]), _NOTHING)
    return Holders(float(by_phase[_PULLING]) / whole * while_held, (stored + hidden) / whole * while_held, by_pulls)


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """Stretches of pods or runs, those of one beside each other: how much each holds, and whether it is left out."""

    of: Ints
    start: Floats
    end: Floats
    size: Floats
    out: Bools


def without(begun: Floats, ended: Floats, held: Held) -> float:
    """The share of the waits that would not be without the stretches that are left out.

    Args:
        begun: start of each wait for what others hold, shape (n,).
        ended: its end.
        held: by those others.
    """
    queues, over = merged(begun, np.maximum(begun, ended))
    edges = np.unique(np.concatenate((held.start, held.end, queues)))
    whole = total_active(held.start, held.end, held.size, edges)
    out = total_active(held.start[held.out], held.end[held.out], held.size[held.out], edges)
    part = np.divide(out, whole, out=np.zeros(edges.size), where=whole > _NOTHING)
    passed = np.concatenate(([0.0], np.cumsum(part[:-1] * np.diff(edges))))
    own = np.searchsorted(queues, begun, side="right") - 1
    before = _before(queues, held, whole[np.searchsorted(edges, queues)])
    late = np.interp(np.minimum(ended, over[own]), edges, passed) - np.interp(queues, edges, passed)[own] + before[own]
    waited = np.maximum(ended - begun, 0.0)
    return float(np.clip(late, 0.0, waited).sum() / max(float(waited.sum()), _NOTHING))


def _before(queues: Floats, held: Held, whole: Floats) -> Floats:
    """By queue: what of its beginning's holders is left out before it, as seconds of all that is held then."""
    heads = beginnings(held.of)
    until = np.repeat(np.maximum.reduceat(held.end, heads), np.diff(heads, append=held.of.size))
    place = np.searchsorted(queues, held.start, side="right")  # the first queue that begins later
    there = held.out & (place < queues.size)
    there[there] = queues[place[there]] < until[there]
    place = place[there]
    seconds = np.minimum(held.end[there], queues[place]) - held.start[there]
    found = np.bincount(place, seconds * held.size[there], queues.size)
    return np.divide(found, whole, out=np.zeros(queues.size), where=whole > _NOTHING)
