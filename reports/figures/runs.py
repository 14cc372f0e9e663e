"""Single runs, one below the other."""

from harness.analysis.result import Result
from harness.model.phases import RUN_PHASES
from reports.figures.figure import Figure, axis, figure, marks, spans, unit_of
from reports.figures.phases import color

_MOST_TICKS = 10


def runs(result: Result) -> Figure | None:
    """The phases of evenly chosen runs in order of arrival, as bars from when the run was due."""
    found = result.run_bars
    if found is None:
        return None
    unit, count, traces = unit_of(found.longest_s), found.seq.size, []
    for phase in RUN_PHASES:
        mine = found.phase == phase
        if mine.any():
            traces.append(spans(phase, found.place[mine], found.start_s[mine], found.end_s[mine], color(phase), unit))
    if found.failed.size:
        traces.append(marks("failed", found.failed, found.failed_s, "--bad", unit))
    ticks = sorted({k * (count - 1) // (_MOST_TICKS - 1) for k in range(_MOST_TICKS)})
    layout = {
        "barmode": "overlay",
        "xaxis": axis(f"{unit.name} after the run was due"),
        "yaxis": axis(
            "run", range=[count - 0.3, -0.7], tickvals=ticks, zeroline=False,
            ticktext=[f"{found.seq[k]:,}" for k in ticks],
        ),
    }  # fmt: skip
    which = "All" if count == found.runs else f"{count} of {found.runs:,}"
    caption = f"{which} runs in order of arrival. A run with several pods shows the most advanced of them."
    return figure("runs", "Single runs", caption, traces, layout, height=max(300, 9 * count + 90))
