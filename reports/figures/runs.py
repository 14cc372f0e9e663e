"""Single runs, one below the other, phase by phase."""

import numpy as np
from numpy.typing import NDArray

from harness.analysis.result import Result
from harness.analysis.timeline import Floats, Ints, Timeline, evenly, floats
from harness.analysis.waits.waits import segments, waits
from harness.model.phases import CANCELED, CONTROLLER, DISPATCH, FAILED, PRECEDENCE, PUBLISHING, RUN_PHASES, SUBMIT
from reports.figures.figure import Figure, axis, figure, marks, spans, unit_of
from reports.figures.phases import color

_MOST_RUNS = 60
_MOST_TICKS = 10


def runs(result: Result) -> Figure | None:
    """The phases of evenly chosen runs in order of arrival, as bars from when the run was due.

    None when no run is over, or no pod was observed.
    """
    timeline = result.timeline
    over_rows = waits(timeline).row
    if not over_rows.size or not len(timeline.pods):
        return None
    chosen = over_rows[evenly(over_rows.size, _MOST_RUNS)]
    row, phases, start, end = _bars(timeline, chosen)
    due, over, place = floats(timeline.runs, "due_s"), floats(timeline.runs, "over_s"), np.full(len(timeline.runs), -1)
    place[chosen] = np.arange(chosen.size)
    unit, traces = unit_of(float((over - due)[chosen].max())), []
    for phase in RUN_PHASES:
        mine = (phases == phase) & (end > start)
        if mine.any():
            at = due[row[mine]]
            traces.append(spans(phase, place[row[mine]], start[mine] - at, end[mine] - at, color(phase), unit))
    failed = chosen[timeline.runs["state"].isin([FAILED, CANCELED]).to_numpy(dtype=bool)[chosen]]
    if failed.size:
        traces.append(marks("failed", place[failed], (over - due)[failed], "--bad", unit))
    count, seq = chosen.size, floats(timeline.runs, "seq")[chosen].astype(np.int64)
    ticks = sorted({k * (count - 1) // (_MOST_TICKS - 1) for k in range(_MOST_TICKS)})
    layout = {
        "barmode": "overlay",
        "xaxis": axis(f"{unit.name} after the run was due"),
        "yaxis": axis(
            "run", range=[count - 0.3, -0.7], tickvals=ticks, zeroline=False, ticktext=[f"{seq[k]:,}" for k in ticks]
        ),
    }
    which = "All" if count == over_rows.size else f"{count} of {over_rows.size:,}"
    caption = f"{which} runs in order of arrival. A run with several pods shows the most advanced of them."
    return figure("runs", "Single runs", caption, traces, layout, height=max(300, 9 * count + 90))


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
