"""Capacity as a plot: time against nodes (or runs), as SVG.

Both axes are logarithmic: perfect scaling is a straight line, and equal relative intervals look equally wide. Sizes
that were tested are on white; extrapolation is on grey, with dashed lines.
"""

from math import ceil, floor, log10

from harness.analysis.capacity.picture import CapacityPlot, Curve, Mark
from harness.model.units import format_duration
from harness.svg import COLOURS, INK, MUTED, Plot, Scale

_SIZE, _MARGINS = (960, 560), (76, 128, 84, 62)
_LINE = 17  # pixels between two labels
_TIMES = (
    1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 432000, 864000,
)  # fmt: skip
_FAR = 2.0


def draw(plot: CapacityPlot) -> str:
    """The picture as SVG text."""
    drawn = Plot(plot.title, "; ".join(mark.label for mark in plot.marks), _SIZE, _MARGINS)
    key = "line: median · band: 90% interval of the next test · dots: completed tests · dashed or grey: extrapolated"
    drawn.text(drawn.left, 49, key, fill=MUTED)
    x, y = _scales(plot, drawn)
    _draw_extrapolated(drawn, plot.observed, x)
    drawn.x_axis(x, ((value, f"{value:,.0f}") for value in _counts(x.low, x.high)))
    drawn.y_axis(y, ((float(s), format_duration(s)) for s in _TIMES if y.low <= s <= y.high))
    drawn.text((drawn.left + drawn.right) / 2, drawn.bottom + 46, plot.x_name, text_anchor="middle", fill=MUTED)
    drawn.text(20, drawn.top - 7, "time", fill=MUTED)
    for colour, curve in zip(COLOURS, plot.curves, strict=False):
        _draw_curve(drawn, curve, plot.observed, colour, x, y)
    for test in plot.tests:
        fill, stroke = ("white", "#6d7a85") if test.curve is None else (COLOURS[test.curve], "white")
        drawn.dot(x(test.x), y(test.time_s), test.label, fill=fill, stroke=stroke)
    for limit_s in plot.limits_s:
        drawn.line([(drawn.left, y(limit_s)), (drawn.right, y(limit_s))], stroke=INK, stroke_width=1.5)
        halo: dict[str, str | float] = {"stroke": "white", "stroke_width": 4, "paint_order": "stroke"}
        drawn.text(drawn.left + 6, y(limit_s) - 6, f"within {format_duration(limit_s)}", font_weight=600, **halo)
    for mark in plot.marks:
        _draw_interval(drawn, mark, x, y)
    for mark in plot.marks:
        at, height = x(mark.x), y(mark.time_s)
        diamond = [(at - 8, height), (at, height - 8), (at + 8, height), (at, height + 8)]
        drawn.polygon(diamond, mark.label, fill="white", stroke=COLOURS[mark.curve], stroke_width=2.5)
    _draw_names(drawn, plot, y)
    return drawn.svg()


def _scales(plot: CapacityPlot, drawn: Plot) -> tuple[Scale, Scale]:
    across = [v for curve in plot.curves for v in curve.x] + [test.x for test in plot.tests]
    times = [v for curve in plot.curves for v in (*curve.low, *curve.high)] + [test.time_s for test in plot.tests]
    times += plot.limits_s
    return (
        drawn.x_scale(min(across) / 1.08, max(across) * 1.08, logarithmic=True),
        drawn.y_scale(min(times) / 1.1, max(times) * 1.1, logarithmic=True),
    )


def _draw_extrapolated(drawn: Plot, observed: tuple[float, float], x: Scale) -> None:
    """Grey where nothing was tested, darker beyond twice the largest size, labelled where there is room."""
    least, most = observed
    for low, high, shade, name in (
        (x.low, min(least, x.high), "#f1f1ef", "not observed"),
        (max(most, x.low), min(_FAR * most, x.high), "#f1f1ef", "not observed"),
        (_FAR * most, x.high, "#e3e3df", "beyond twice"),
    ):
        if high > low:
            start, end = x(low), x(high)
            drawn.rectangle(start, drawn.top, end - start, drawn.bottom - drawn.top, fill=shade)
            if end - start > 8 * len(name):
                drawn.text(round((start + end) / 2, 1), drawn.top - 7, name, text_anchor="middle", fill=MUTED)


def _draw_curve(drawn: Plot, curve: Curve, observed: tuple[float, float], colour: str, x: Scale, y: Scale) -> None:
    upper, middle, lower = (
        [(x(a), y(b)) for a, b in zip(curve.x, times, strict=True)] for times in (curve.high, curve.middle, curve.low)
    )
    drawn.polygon([*upper, *reversed(lower)], fill=colour, fill_opacity=0.14)
    drawn.line(middle, stroke=colour, stroke_width=2, stroke_dasharray="5 4")
    least, most = observed
    tested = [place for place, size in zip(middle, curve.x, strict=True) if curve.observed and least <= size <= most]
    if len(tested) > 1:
        drawn.line(tested, stroke=colour, stroke_width=2)


def _counts(low: float, high: float) -> list[float]:
    """1, 2, 5, 10, … within the range; where those are few, multiples of a whole step."""
    decades = range(floor(log10(low)), ceil(log10(high)) + 1)
    round_ = [factor * 10.0**power for power in decades for factor in (1, 2, 5)]
    found = [value for value in round_ if low <= value <= high and value >= 1]
    if len(found) >= 4:
        return found
    step = max(1, ceil((high - low) / 10))
    return [float(value) for value in range(ceil(low / step) * step, floor(high) + 1, step)]


def _draw_interval(drawn: Plot, mark: Mark, x: Scale, y: Scale) -> None:
    """A bar along x; an arrow marks an interval without an upper end."""
    if mark.low is None:
        return
    height, colour = y(mark.time_s), COLOURS[mark.curve]
    end = x(x.high if mark.high is None else mark.high)
    drawn.line([(x(mark.low), height), (end, height)], stroke=colour, stroke_width=6, stroke_opacity=0.6)
    if mark.high is None:
        drawn.polygon([(end + 9, height), (end - 3, height - 7), (end - 3, height + 7)], fill=colour)


def _draw_names(drawn: Plot, plot: CapacityPlot, y: Scale) -> None:
    """Each curve's name at its right end, moved apart where two would overlap."""
    below = float(drawn.top)
    for height, at in sorted((y(curve.middle[-1]), at) for at, curve in enumerate(plot.curves)):
        below = max(height + 4.5, below)
        drawn.text(drawn.right + 10, round(below, 1), plot.curves[at].name, fill=COLOURS[at], font_weight=600)
        below += _LINE
