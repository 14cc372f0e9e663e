"""The records contradict each other: runs in flight as they were counted are not those that the stamps tell of."""

import numpy as np

from harness.analysis.timeline import Timeline, floats
from harness.analysis.timeline.curves import active
from harness.detectors.detector import RUNS, CannotJudgeError, slowed
from harness.model.findings import Evidence, Finding
from harness.model.phases import RUNS_IN_FLIGHT
from harness.model.units import counted

NAME = "inconsistent-records"
NEEDS = (RUNS,)

_LEAST = 10  # counts
_FEW = 3.0  # runs: below that a poll's delay is all there is
_OFF = 0.3


def detect(timeline: Timeline) -> list[Finding]:
    """Little's law as a check of the data (Little 1961).

    The mean number in flight, L, is the arrival rate times the mean time in the system, λW, whatever the platform does.
    λW over the counts' instants is the mean of what the stamps say was in flight then; L was counted independently, by
    listing the runs. Runs that others started are counted and have no stamps here, so with them nothing is compared.
    """
    samples = timeline.metric(RUNS_IN_FLIGHT)
    if len(samples) < _LEAST or timeline.foreign:
        why = (
            "runs of others were listed as well"
            if timeline.foreign
            else f"they were counted {counted(len(samples), 'time')}"
        )
        raise CannotJudgeError(f"runs in flight could not be compared with their stamps: {why}")
    runs = timeline.runs
    until = np.fmax(floats(runs, "over_s"), floats(runs, "said_s"))
    expected = active(floats(runs, "created_s"), until, floats(samples, "at_s"))
    seen, told = float(np.mean(floats(samples, "value"))), float(expected.mean())
    off = abs(seen - told) / max(told, 1e-9)
    if max(seen, told) < _FEW or off < _OFF:
        return []
    return [
        Finding(
            NAME,
            f"The records contradict each other: {seen:.1f} runs were counted in flight, the stamps say {told:.1f}",
            0.7,
            (
                Evidence(f"L, counted: {seen:.2f} (mean of {len(samples):,})", seen, "runs", "samples", RUNS_IN_FLIGHT),
                Evidence(f"λW, from creations and ends at the same instants: {told:.2f}", told, "runs", "spans"),
            ),
            "Look for a gap in the observation, for clocks that differ, or for runs that the platform's listing leaves "
            "out; trust durations less until it is found.",
            (),
            slowed(0.2),
        )
    ]
