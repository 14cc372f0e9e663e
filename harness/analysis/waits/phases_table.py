"""Where each run's time went, as a long table for pandas or SQL."""

import numpy as np
import pandas as pd

from harness.analysis.timeline import Timeline
from harness.analysis.waits.waits import Waits
from harness.model.phases import RUN_PHASES


def phases_table(timeline: Timeline, split: Waits) -> pd.DataFrame:
    """One row per run and phase: seq, run, state, phase, length_s; by seq, then phase.

    A run's lengths add up to its duration from due to end. Phases that took no time are left out; a negative length
    shows that clocks disagree.
    """
    which, phase = np.nonzero(split.seconds)
    runs = timeline.runs.iloc[split.row[which]]
    frame = pd.DataFrame(
        {
            "seq": runs["seq"].to_numpy(dtype=np.int64),
            "run": runs["run"].array,  # never objects: a large test has millions of rows
            "state": runs["state"].array,
            "phase": pd.array(RUN_PHASES, dtype="str").take(phase),
            "length_s": split.seconds[which, phase],
        }
    )
    return frame.sort_values("seq", kind="stable", ignore_index=True)
