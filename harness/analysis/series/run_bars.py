"""Single runs, phase by phase."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.analysis.timeline import Floats, Ints, Timeline, evenly, floats
from harness.analysis.waits.waits import PRECEDENCE, segments, waits
from harness.model.phases import CANCELED, CONTROLLER, DISPATCH, FAILED, PUBLISHING, SUBMIT

_MOST_RUNS = 60


@dataclass(frozen=True, slots=True, eq=False)
class RunBars:
    """Bars of evenly chosen runs; seconds count from when the run was due.

    Attributes:
        runs: how many are over.
        seq: of the chosen ones, shape (n,).
        longest_s: the longest duration among them.
        place: per bar, the position of its run in `seq`.
        phase: per bar, its name.
        start_s: per bar.
        end_s: per bar, after its start.
        failed: positions of the runs that failed or were cancelled.
        failed_s: when those were over.
    """

    runs: int
    seq: Ints
    longest_s: float
    place: Ints
    phase: NDArray[np.str_]
    start_s: Floats
    end_s: Floats
    failed: Ints
    failed_s: Floats


def run_bars(timeline: Timeline) -> RunBars | None:
    """None when no run is over, or no pod was observed."""
    over_rows = waits(timeline).row
    if not over_rows.size or not len(timeline.pods):
        return None
    chosen = over_rows[evenly(over_rows.size, _MOST_RUNS)]
    row, phase, start, end = _bars(timeline, chosen)
    kept = end > start
    row, phase, start, end = row[kept], phase[kept], start[kept], end[kept]
    due, over = floats(timeline.runs, "due_s"), floats(timeline.runs, "over_s")
    place = np.full(len(timeline.runs), -1)
    place[chosen] = np.arange(chosen.size)
    failed = chosen[timeline.runs["state"].isin([FAILED, CANCELED]).to_numpy(dtype=bool)[chosen]]
    return RunBars(
        runs=over_rows.size,
        seq=floats(timeline.runs, "seq")[chosen].astype(np.int64),
        longest_s=float((over - due)[chosen].max()),
        place=place[row],
        phase=phase,
        start_s=start - due[row],
        end_s=end - due[row],
        failed=place[failed],
        failed_s=(over - due)[failed],
    )


def _bars(timeline: Timeline, chosen: Ints) -> tuple[Ints, NDArray[np.str_], Floats, Floats]:
    """(row, phase, start, end) of all bars: submission, pods, and the time between and after them."""
    due, sent, answered, over = (
        floats(timeline.runs, name)[chosen] for name in ("due_s", "sent_s", "answered_s", "over_s")
    )
    mask = np.zeros(len(timeline.runs), dtype=bool)
    mask[chosen] = True
    of_pods = segments(timeline, mask)
    names = np.array([*PRECEDENCE, CONTROLLER])
    first, last = (np.full(mask.size, np.nan) for _ in range(2))
    np.fmin.at(first, of_pods.row, of_pods.start)
    np.fmax.at(last, of_pods.row, of_pods.end)
    first, last = first[chosen], last[chosen]
    answered = np.where(over <= answered, np.fmin(answered, first), answered)  # the answer was the result
    parts = (
        (chosen, DISPATCH, due, sent), (chosen, SUBMIT, sent, answered), (chosen, CONTROLLER, answered, first),
        (chosen, PUBLISHING, last, over),
    )  # fmt: skip
    return (
        np.concatenate([of_pods.row, *(row for row, *_ in parts)]),
        np.concatenate([names[of_pods.level], *(np.full(chosen.size, phase) for _, phase, *_ in parts)]),
        np.concatenate([of_pods.start, *(start for *_, start, _ in parts)]),
        np.concatenate([of_pods.end, *(end for *_, end in parts)]),
    )
