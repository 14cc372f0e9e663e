"""Single runs, one below the other."""

from harness.analysis.result import Result
from harness.model.phases import RUN_PHASES
from reports.figures.figure import Figure, axis, figure, marks, spans, unit_of
from reports.figures.phases import color

_MOST_TICKS = 10


def runs(result: Result) -> Figure | None:
    """The phases of evenly chosen runs in order of arrival, as bars from when the run was due."""
    run_bars = result.run_bars
    if run_bars is None:
        return None
    unit, count, traces = unit_of(run_bars.longest_s), run_bars.seq.size, []
    for phase in RUN_PHASES:
        mine = run_bars.phase == phase
        if mine.any():
            traces.append(
                spans(phase, run_bars.place[mine], run_bars.start_s[mine], run_bars.end_s[mine], color(phase), unit)
            )
    if run_bars.failed.size:
        traces.append(marks("failed", run_bars.failed, run_bars.failed_s, "--bad", unit))
    ticks = sorted({k * (count - 1) // (_MOST_TICKS - 1) for k in range(_MOST_TICKS)})
    layout = {
        "barmode": "overlay",
        "xaxis": axis(f"{unit.name} after the run was due"),
        "yaxis": axis(
            "run", range=[count - 0.3, -0.7], tickvals=ticks, zeroline=False,
            ticktext=[f"{run_bars.seq[k]:,}" for k in ticks],
        ),
    }  # fmt: skip
    which = "All" if count == run_bars.runs else f"{count} of {run_bars.runs:,}"
    caption = f"{which} runs in order of arrival. A run with several pods shows the most advanced of them."
    return figure("runs", "Single runs", caption, traces, layout, height=max(300, 9 * count + 90))
