"""The width of a workload over time as an SVG: runs started per stage, stacked by tenant."""

import math
from collections.abc import Sequence

import numpy as np

from generators.workload import Arrivals
from harness.model.units import format_duration
from harness.svg import COLOURS, MUTED, Plot

_SIZE, _MARGINS = (960, 400), (60, 20, 66, 60)
_BINS = 100


def plot(arrivals: Arrivals, stage_s: float, duration_s: float, phases: Sequence[tuple[str, float]] = ()) -> str:
    """The SVG. `phases` are (name, start in seconds after the first arrival)."""
    stages = max(1, math.ceil(duration_s / stage_s - 1e-9))
    names = list(dict.fromkeys(sorted(arrivals.tenants)))
    counts = np.zeros((len(names), stages), dtype=np.int64)
    index = {name: row for row, name in enumerate(names)}
    for due_s, tenant in zip(arrivals.due_s, arrivals.tenants, strict=True):
        counts[index[tenant], min(int(due_s / stage_s + 1e-9), stages - 1)] += 1
    widest = int(counts.sum(axis=0).max(initial=0))
    runs = f"{len(arrivals.due_s)} runs over {format_duration(duration_s)}, at most {widest} per stage"
    drawn = Plot(f"Runs started per stage of {format_duration(stage_s)}", runs, _SIZE, _MARGINS)
    step = _round_up(max(widest, 1) / 5)
    x, y = drawn.x_scale(0.0, duration_s), drawn.y_scale(0.0, step * math.ceil(max(widest, 1) / step))
    drawn.y_axis(y, ((width, f"{width}") for width in range(0, round(y.high) + 1, step)))
    times = (tick * duration_s / 6 for tick in range(7))
    drawn.x_axis(x, ((time_s, format_duration(time_s) if time_s else "0") for time_s in times), grid=False)
    for name, start_s in phases:
        drawn.line([(x(start_s), drawn.top - 14), (x(start_s), drawn.bottom)], stroke="#888", stroke_dasharray="3 3")
        drawn.text(x(start_s) + 4, drawn.top - 6, name, fill=MUTED)
    edges = [duration_s * (stage + side) / stages for stage in range(stages) for side in (0, 1)]
    heights = np.repeat(np.vstack([np.zeros(stages, np.int64), counts.cumsum(axis=0)]), 2, axis=1).tolist()
    for row in range(len(names)):
        floor, ceiling = (
            [(x(at), y(height)) for at, height in zip(edges, heights[k], strict=True)] for k in (row, row + 1)
        )
        drawn.polygon([*ceiling, *reversed(floor)], fill=COLOURS[row % len(COLOURS)], fill_opacity=0.8)
    _legend(drawn, names)
    return drawn.svg()


def stage_for(duration_s: float) -> float:
    """A round length of stage that makes about a hundred of them."""
    return float(_round_up(max(duration_s, 1.0) / _BINS))


def _round_up(value: float) -> int:
    """The next number of the form 1, 2 or 5 times a power of ten, at least 1."""
    power = 10 ** max(0, math.floor(math.log10(max(value, 1))))
    return int(next(factor * power for factor in (1, 2, 5, 10) if factor * power >= value))


def _legend(drawn: Plot, names: Sequence[str]) -> None:
    x = drawn.left
    for row, name in enumerate(names):
        drawn.rectangle(x, drawn.bottom + 38, 12, 12, fill=COLOURS[row % len(COLOURS)])
        drawn.text(x + 18, drawn.bottom + 48, name or "all")
        x += 40 + 7 * len(name)
