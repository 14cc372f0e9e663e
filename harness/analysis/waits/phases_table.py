"""Where each run's time went, as a long table for pandas or SQL."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from harness.analysis.timeline import Timeline
from harness.analysis.waits.waits import Waits
from harness.model.phases import RUN_PHASES

_RUNS = 20_000  # of a part


def phases_table(timeline: Timeline, split: Waits) -> Iterator[pd.DataFrame]:
    """One row per run and phase: seq, run, state, phase, length_s; by seq, then phase, in parts of whole runs.

    A run's lengths add up to its duration from due to end. Phases that took no time are left out; a negative length
    shows that clocks disagree.
    """
    seq = timeline.runs["seq"].to_numpy(dtype=np.int64)[split.row]
    order = np.argsort(seq, kind="stable")
    for low in range(0, order.size, _RUNS):
        part = order[low : low + _RUNS]
        seconds, rows = split.seconds[part], split.row[part]
        which, phase = np.nonzero(seconds)
        run, state = (timeline.runs[name].take(rows).array for name in ("run", "state"))
        yield pd.DataFrame(
            {
                "seq": seq[part][which],
                "run": run.take(which),  # never objects: a large test has millions of rows
                "state": state.take(which),
                "phase": pd.array(RUN_PHASES, dtype="str").take(phase),
                "length_s": seconds[which, phase],
            }
        )
