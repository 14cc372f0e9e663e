"""The records contradict each other: the counted runs in flight do not match the runs' timestamps."""

import numpy as np

from harness.analysis.timeline import active
from harness.detectors.detector import CannotJudgeError, Capability, Timeline, counted, floats, slowed
from harness.model.findings import Evidence, Finding
from harness.model.phases import RUNS_IN_FLIGHT

NAME = "inconsistent-records"
NEEDS = (Capability.RUNS,)
DOUBT = True

_MIN_COUNTS = 10  # counts
_MIN_IN_FLIGHT = 3.0  # runs in flight: with fewer, the polling delay alone explains a difference
_MAX_DIFFERENCE = 0.3  # of the runs in flight: far beyond what rounding and polling explain
_STAMP_S = 1.0  # platforms round the instants of a run down to seconds


def detect(timeline: Timeline) -> list[Finding]:
    """Little's law as a check of the data (Little 1961).

    The mean number in flight, L, is the arrival rate times the mean time in the system, λW, whatever the platform does.
    λW is the mean number in flight by the runs' timestamps, at the instants of the counts; L was counted independently,
    by listing the runs. Runs that others started are counted and have no timestamps here: then nothing is compared.
    """
    samples = timeline.metric(RUNS_IN_FLIGHT)
    if len(samples) < _MIN_COUNTS or timeline.foreign:
        why = (
            "the listing includes runs that others started"
            if timeline.foreign
            else f"they were counted only {counted(len(samples), 'time')}"
        )
        raise CannotJudgeError(f"runs in flight could not be compared with the timestamps: {why}")
    runs, over = timeline.runs, floats(timeline.runs, "over_s")
    created = floats(runs, "created_s")
    stamped_runs = np.isfinite(created)  # an end without a start would count as -1
    instants = floats(samples, "at_s")
    # The API may show the end later than its stamp, and an observer that polls learns it later still.
    ended, told = (
        float(active(created[stamped_runs], until[stamped_runs], instants).mean())
        for until in (over, np.fmax(over, floats(runs, "said_s")))
    )
    seen = float(np.mean(floats(samples, "value")))
    stamped = float(np.clip(seen, ended, told))
    off = abs(seen - stamped)
    # Each run may have been in flight for a second more or less than its stamps say: a second's arrivals.
    blurred = np.count_nonzero(stamped_runs) / max(np.ptp(instants), _STAMP_S) * _STAMP_S
    if max(seen, stamped) < _MIN_IN_FLIGHT or off < max(_MAX_DIFFERENCE * stamped, blurred):
        return []
    return [
        Finding(
            NAME,
            f"The records contradict each other: {seen:.1f} runs in flight by count, {stamped:.1f} by timestamps",
            0.7,
            (
                Evidence(f"L, counted: {seen:.2f} (mean of {len(samples):,})", seen, "runs", "samples", RUNS_IN_FLIGHT),
                Evidence(f"λW, by timestamps at the same instants: {stamped:.2f}", stamped, "runs", "spans"),
            ),
            "Check for gaps in the observation, differing clocks, or runs missing from the platform's listing. Until "
            "then, treat durations with caution.",
            (),
            slowed(0.2),
        )
    ]
