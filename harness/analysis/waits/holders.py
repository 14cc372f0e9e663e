"""What pods do that hold something for which others wait.

A wait for a node, or for room in a quota, ends when other pods let go. So what those spend on pulls or on storing, the
waiting pods wait for, too: as much as each of them holds of what is lacked, and as many as wait meanwhile.
"""

from dataclasses import dataclass

import numpy as np

from harness.analysis.cost.requested import requests_by
from harness.analysis.timeline import Floats, Timeline, floats
from harness.analysis.timeline.curves import integral
from harness.analysis.waits.lacking import REQUESTS
from harness.analysis.waits.storing import storing
from harness.model.phases import POD_PHASES, PULLING, RUNNING, SERVING, STARTING, STORING


@dataclass(frozen=True, slots=True)
class Holders:
    """Shares of what is held while others wait for it.

    Attributes:
        pulling: by pods that pull their images.
        storing: by pods that store outputs, estimated where it can't be separated from running.
    """

    pulling: float = 0.0
    storing: float = 0.0

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
    by_phase = np.bincount(phase, held, len(POD_PHASES))
    hidden = float((held * storing(timeline).hidden[code])[phase == POD_PHASES.index(RUNNING)].sum())
    stored = float(by_phase[POD_PHASES.index(STORING)])
    return Holders(float(by_phase[POD_PHASES.index(PULLING)]) / whole, (stored + hidden) / whole)
