"""Single runs, one below the other."""

import numpy as np

from harness.analysis.timeline import Bools, Floats, Ints, floats
from harness.analysis.timeline.columns import evenly
from harness.analysis.waits.waits import PRECEDENCE, segments
from harness.model.phases import CANCELED, CONTROLLER, DISPATCH, FAILED, PUBLISHING, RUN_PHASES, SUBMIT
from reports.figures.figure import Figure, Trace, axis, figure, marks, stretches, unit_of
from reports.figures.phases import color
from reports.report import Report

_MOST_RUNS, _MOST_TICKS = 60, 10


def runs(report: Report) -> Figure | None:
    """Each phase of some runs, evenly chosen in the order of arrival, as bars from when the run was due."""
    split, timeline = report.waits, report.timeline
    if not split.row.size or not len(timeline.pods):
        return None
    chosen = split.row[evenly(split.row.size, _MOST_RUNS)]
    mask = np.zeros(len(timeline.runs), dtype=bool)
    mask[chosen] = True
    rows, phases, starts, ends = _stretches(report, chosen, mask)
    due, over = floats(timeline.runs, "due_s"), floats(timeline.runs, "over_s")
    unit = unit_of(float((over - due)[chosen].max()))
    place = np.full(len(timeline.runs), -1)
    place[chosen] = np.arange(chosen.size)
    traces: list[Trace] = []
    for phase in RUN_PHASES:
        mine = (phases == phase) & (ends > starts)
        if mine.any():
            row = rows[mine]
            traces.append(
                stretches(phase, place[row], starts[mine] - due[row], ends[mine] - due[row], color(phase), unit)
            )
    failed = chosen[timeline.runs["state"].isin([FAILED, CANCELED]).to_numpy(dtype=bool)[chosen]]
    if failed.size:
        traces.append(marks("failed", place[failed], (over - due)[failed], "--bad", unit))
    seq = floats(timeline.runs, "seq")[chosen]
    ticks = evenly(chosen.size, _MOST_TICKS)
    layout = {
        "barmode": "overlay",
        "xaxis": axis(f"{unit.name} after the run was due"),
        "yaxis": axis(
            "run", range=[chosen.size - 0.3, -0.7], tickvals=ticks.tolist(), zeroline=False,
            ticktext=[f"{seq[k]:,.0f}" for k in ticks],
        ),
    }  # fmt: skip
    which = "All" if chosen.size == split.row.size else f"{chosen.size} of {split.row.size:,}"
    caption = f"{which} runs in the order of arrival. A run with several pods shows what the furthest of them does."
    return figure("runs", "Runs, one by one", caption, traces, layout, height=max(300, 9 * chosen.size + 90))


def _stretches(
    report: Report, chosen: Ints, mask: Bools
) -> tuple[Ints, np.ndarray[tuple[int], np.dtype[np.str_]], Floats, Floats]:
    """(row, phase, start, end) of all stretches: what the load saw, what the pods did, what came after them."""
    due, sent, answered, over = (
        floats(report.timeline.runs, name)[chosen] for name in ("due_s", "sent_s", "answered_s", "over_s")
    )
    of_pods = segments(report.timeline, mask)
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
