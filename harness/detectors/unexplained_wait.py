"""The last resort: runs waited for long, or for longer and longer, and nothing that was observed says why."""

import numpy as np

from harness.analysis.waits.startup_delay import startup_delay
from harness.analysis.waits.waits import Waits, waits, waits_so_far
from harness.detectors.detector import FEW_RUNS, Capability, Timeline, format_duration, quarters, slowed
from harness.model.findings import Evidence, Finding
from harness.model.phases import (
    CONTROLLER,
    PROVISIONING,
    PUBLISHING,
    PULLING,
    RUN_PHASES,
    SCHEDULING,
    STARTING,
    SUBMIT,
    UNKNOWN,
    UNSCHEDULABLE,
)

NAME = "unexplained-wait"
SEEN = ("folder: a5-quota6",)
NEEDS = (Capability.RUNS,)
LAST_RESORT = True

# Phases in which a run makes no progress.
WAITING = (SUBMIT, CONTROLLER, UNSCHEDULABLE, PROVISIONING, SCHEDULING, PULLING, STARTING, PUBLISHING)
MIN_SHARE, MIN_RUNS = 0.3, 5  # of the runs' time in one of them: a third of a run is worth a question
MIN_GROWTH = 1.5  # of the runs' duration, from the first quarter of the runs to the last
MIN_SHARE_OF_GROWTH = 0.5  # by one phase
MIN_S = 5.0  # shorter waits are the platform's own steps: reconciliation, scheduling, start
_OF_PODS = (Capability.PODS, Capability.NODES, Capability.POD_EVENTS, Capability.NODE_CPU, Capability.STORE)
_OF_SERVICES = (Capability.EXECUTIONS, Capability.NODE_CPU)
_FIX = "Observe what is missing here, and repeat the test; or send less, to see from which rate on runs wait."


def detect(timeline: Timeline) -> list[Finding]:
    """One phase grew with the runs' duration; else, runs spent much of their time in one in which they only wait."""
    return _grown(timeline) or _waited(timeline)


def _grown(timeline: Timeline) -> list[Finding]:
    split = waits(timeline)
    if split.row.size < FEW_RUNS:
        return []
    order = np.argsort(split.row, kind="stable")
    early, late = (float(quarter.mean()) for quarter in quarters(split.total[order]))
    if not (late >= MIN_GROWTH * early and late - early >= MIN_S):  # one of them may not be a number
        return []
    first, last = zip(*(quarters(split.of(phase)[order]) for phase in RUN_PHASES), strict=True)
    growth = np.array([float(b.mean() - a.mean()) for a, b in zip(first, last, strict=True)])
    most = int(np.argmax(growth))
    if growth[most] < MIN_SHARE_OF_GROWTH * (late - early):
        return []
    began, became = (float(each[most].mean()) for each in (first, last))
    phase = RUN_PHASES[most]
    where = "a time that no observation divides" if phase == UNKNOWN else f"the phase “{phase}”"
    return [
        _finding(
            timeline,
            f"Later runs took longer, {format_duration(late)} instead of {format_duration(early)}, and no cause was "
            f"found: {where} grew",
            Evidence(
                f"{where} took {format_duration(began)} in the first quarter of the runs and "
                f"{format_duration(became)} in the last (means)",
                became, "s", "spans",
            ),
            (late - early) / late,
        )
    ]  # fmt: skip


def _waited(timeline: Timeline) -> list[Finding]:
    split: Waits = waits_so_far(timeline)
    shares = split.shares()
    phase = max(WAITING, key=lambda each: shares[each])
    mean_s = float(split.of(phase).mean()) if split.row.size else 0.0
    if split.row.size < MIN_RUNS or not (shares[phase] >= MIN_SHARE and mean_s >= MIN_S):  # either may not be a number
        return []
    start = startup_delay(timeline)
    limited = (
        f"; at most {start.most} were active at once, as under a quota, a semaphore or a limit on workflows"
        if phase == CONTROLLER and start.capped
        else ""
    )
    return [
        _finding(
            timeline,
            f"Runs spent {shares[phase]:.0%} of their time in the phase “{phase}”, and no cause was found{limited}",
            Evidence(f"{format_duration(mean_s)} of each run (mean)", mean_s, "s", "spans", f"phase = {phase}"),
            shares[phase],
        )
    ]


def _finding(timeline: Timeline, title: str, evidence: Evidence, share: float) -> Finding:
    unseen = (Evidence(f"not observed, and it might tell: {reason}") for reason in _unseen(timeline))
    return Finding(NAME, title, 0.3, (evidence, *unseen), _FIX, (), slowed(share))


def _unseen(timeline: Timeline) -> list[str]:
    """Why some kinds of observations are missing that the platform could show."""
    kinds = _OF_SERVICES if timeline.answers_are_results else _OF_PODS
    return [kind.reason(timeline) for kind in kinds if not kind.observed(timeline)]
