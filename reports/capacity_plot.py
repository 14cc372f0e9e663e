"""Capacity as a picture: time against nodes (or runs), as an SVG that needs no library.

Both axes are logarithmic: perfect scaling is a straight line, and an interval is as wide on paper wherever it is the
same share. What was observed is on white; what is foretold beyond it is on grey, its lines dashed.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log, log10

from harness.model.units import format_duration

# Okabe & Ito's palette, which people with colour vision deficiencies can tell apart.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MOST_CURVES = len(_COLOURS)
_WIDTH, _HEIGHT = 960, 560
_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 128, 84, 62
_LINE = 17  # pixels between two labels
_TIMES = (
    1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 432000, 864000,
)  # fmt: skip
_FAR = 2.0


@dataclass(frozen=True, slots=True)
class Curve:
    """The median time with its 90 % interval, in seconds, along x; `observed` says whether its size was tested."""

    name: str
    x: tuple[float, ...]
    low: tuple[float, ...]
    middle: tuple[float, ...]
    high: tuple[float, ...]
    observed: bool


@dataclass(frozen=True, slots=True)
class Point:
    """A test that was made: its place, what to say of it, and the curve it belongs to, if any."""

    x: float
    time_s: float
    label: str
    curve: int | None


@dataclass(frozen=True, slots=True)
class Mark:
    """An answer: its place on a curve and, where it is a number of nodes or runs, the interval along x."""

    x: float
    time_s: float
    label: str
    curve: int
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class CapacityPlot:
    """All that is drawn; `observed` is the range of x that was tested, `limits_s` the times asked for."""

    title: str
    x_name: str
    curves: tuple[Curve, ...]
    points: tuple[Point, ...]
    marks: tuple[Mark, ...]
    limits_s: tuple[float, ...]
    observed: tuple[float, float]


@dataclass(frozen=True, slots=True)
class _Scale:
    """Logarithmic: values from `low` to `high` on pixels from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        held = min(max(value, self.low), self.high)
        return round(self.start + (self.end - self.start) * log(held / self.low) / log(self.high / self.low), 1)


def draw(plot: CapacityPlot) -> str:
    """The SVG."""
    x, y = _scales(plot)
    key = "line: median · band: 90% interval of the next test · dots: tests made · dashed or on grey: not observed"
    look = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" font-size="13" fill="#1d2329"'
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" {look} role="img">',
        f"<title>{escape(plot.title)}</title>",
        f"<desc>{escape('; '.join(mark.label for mark in plot.marks))}</desc>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="28" font-size="18" font-weight="600">{escape(plot.title)}</text>',
        f'<text x="{_LEFT}" y="49" fill="#59636e">{key}</text>',
        *_unobserved(plot, x),
        *_grid(plot, x, y),
        *(shape for at, curve in enumerate(plot.curves) for shape in _curve(plot, curve, _COLOURS[at], x, y)),
        *(_point(point, x, y) for point in plot.points),
        *_limits(plot, x, y),
        *(shape for mark in plot.marks for shape in _interval(mark, x, y)),
        *(_answer(mark, x, y) for mark in plot.marks),
        *_names(plot, y),
        "</svg>",
        "",
    ])  # fmt: skip


def _scales(plot: CapacityPlot) -> tuple[_Scale, _Scale]:
    across = [v for curve in plot.curves for v in curve.x] + [point.x for point in plot.points]
    times = [v for curve in plot.curves for v in (*curve.low, *curve.high)] + [p.time_s for p in plot.points]
    times += plot.limits_s
    return (
        _Scale(min(across) / 1.08, max(across) * 1.08, _LEFT, _WIDTH - _RIGHT),
        _Scale(min(times) / 1.1, max(times) * 1.1, _HEIGHT - _BOTTOM, _TOP),
    )


def _unobserved(plot: CapacityPlot, x: _Scale) -> Iterator[str]:
    """Grey where nothing was tested, darker beyond twice of it, each with its name where there is room."""
    least, most = plot.observed
    for low, high, shade, name in (
        (x.low, min(least, x.high), "#f1f1ef", "not observed"),
        (max(most, x.low), min(_FAR * most, x.high), "#f1f1ef", "not observed"),
        (_FAR * most, x.high, "#e3e3df", "beyond twice"),
    ):
        if high > low:
            start, end = x(low), x(high)
            yield (
                f'<rect x="{start}" y="{_TOP}" width="{round(end - start, 1)}" height="{_HEIGHT - _TOP - _BOTTOM}" '
                f'fill="{shade}"/>'
            )
            if end - start > 8 * len(name):
                middle = round((start + end) / 2, 1)
                yield f'<text x="{middle}" y="{_TOP - 7}" text-anchor="middle" fill="#59636e">{name}</text>'


def _grid(plot: CapacityPlot, x: _Scale, y: _Scale) -> Iterator[str]:
    base, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    for value in _counts(x.low, x.high):
        yield f'<line x1="{x(value)}" x2="{x(value)}" y1="{_TOP}" y2="{base}" stroke="#d8d8d4"/>'
        yield f'<text x="{x(value)}" y="{base + 19}" text-anchor="middle">{value:,.0f}</text>'
    for value in (float(time_s) for time_s in _TIMES if y.low <= time_s <= y.high):
        yield f'<line x1="{_LEFT}" x2="{right}" y1="{y(value)}" y2="{y(value)}" stroke="#d8d8d4"/>'
        yield f'<text x="{_LEFT - 9}" y="{y(value) + 4.5}" text-anchor="end">{format_duration(value)}</text>'
    middle = (_LEFT + right) / 2
    yield f'<text x="{middle}" y="{_HEIGHT - 16}" text-anchor="middle" fill="#59636e">{escape(plot.x_name)}</text>'
    yield f'<text x="20" y="{_TOP - 7}" fill="#59636e">time</text>'


def _counts(low: float, high: float) -> list[float]:
    """1, 2, 5, 10, … within the range; where those are few, every power of two or every number."""
    decades = range(floor(log10(low)), ceil(log10(high)) + 1)
    round_ = [factor * 10.0**power for power in decades for factor in (1, 2, 5)]
    found = [value for value in round_ if low <= value <= high and value >= 1]
    if len(found) >= 4:
        return found
    step = max(1, ceil((high - low) / 10))
    return [float(value) for value in range(ceil(low / step) * step, floor(high) + 1, step)]


def _limits(plot: CapacityPlot, x: _Scale, y: _Scale) -> Iterator[str]:
    for limit_s in plot.limits_s:
        at = y(limit_s)
        yield f'<line x1="{x(x.low)}" x2="{x(x.high)}" y1="{at}" y2="{at}" stroke="#1d2329" stroke-width="1.5"/>'
        halo = 'stroke="white" stroke-width="4" paint-order="stroke"'
        yield f'<text x="{_LEFT + 6}" y="{at - 6}" font-weight="600" {halo}>within {format_duration(limit_s)}</text>'


def _curve(plot: CapacityPlot, curve: Curve, colour: str, x: _Scale, y: _Scale) -> Iterator[str]:
    upper = [f"{x(a)},{y(b)}" for a, b in zip(curve.x, curve.high, strict=True)]
    lower = [f"{x(a)},{y(b)}" for a, b in zip(curve.x, curve.low, strict=True)]
    yield f'<polygon points="{" ".join(upper + lower[::-1])}" fill="{colour}" fill-opacity="0.14"/>'
    least, most = plot.observed
    places = list(zip(curve.x, curve.middle, strict=True))
    inside = [(a, b) for a, b in places if curve.observed and least <= a <= most]
    yield _line(places, colour, x, y, ' stroke-dasharray="5 4"')
    if len(inside) > 1:
        yield _line(inside, colour, x, y, "")


def _line(places: Sequence[tuple[float, float]], colour: str, x: _Scale, y: _Scale, more: str) -> str:
    points = " ".join(f"{x(a)},{y(b)}" for a, b in places)
    return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"{more}/>'


def _point(point: Point, x: _Scale, y: _Scale) -> str:
    fill = "white" if point.curve is None else _COLOURS[point.curve]
    stroke = "#6d7a85" if point.curve is None else "white"
    where = f'cx="{x(point.x)}" cy="{y(point.time_s)}"'
    return f'<circle {where} r="4.5" fill="{fill}" stroke="{stroke}"><title>{escape(point.label)}</title></circle>'


def _interval(mark: Mark, x: _Scale, y: _Scale) -> Iterator[str]:
    """A bar along x; it ends in an arrow where nothing bounds it."""
    if mark.low is None:
        return
    height, colour = y(mark.time_s), _COLOURS[mark.curve]
    start, end = x(mark.low), x(x.high if mark.high is None else mark.high)
    stroke = f'stroke="{colour}" stroke-width="6" stroke-opacity="0.6"'
    yield f'<line x1="{start}" x2="{end}" y1="{height}" y2="{height}" {stroke}/>'
    if mark.high is None:
        yield f'<polygon points="{end + 9},{height} {end - 3},{height - 7} {end - 3},{height + 7}" fill="{colour}"/>'


def _answer(mark: Mark, x: _Scale, y: _Scale) -> str:
    at, height, colour = x(mark.x), y(mark.time_s), _COLOURS[mark.curve]
    corners = f"{at - 8},{height} {at},{height - 8} {at + 8},{height} {at},{height + 8}"
    return (
        f'<polygon points="{corners}" fill="white" stroke="{colour}" stroke-width="2.5">'
        f"<title>{escape(mark.label)}</title></polygon>"
    )


def _names(plot: CapacityPlot, y: Callable[[float], float]) -> Iterator[str]:
    """Each curve's name at its right end, moved apart where two would touch."""
    ends = sorted((y(curve.middle[-1]), at) for at, curve in enumerate(plot.curves))
    below = float(_TOP)
    for height, at in ends:
        below = max(height + 4.5, below)
        curve = plot.curves[at]
        where = f'x="{_WIDTH - _RIGHT + 10}" y="{round(below, 1)}"'
        yield f'<text {where} fill="{_COLOURS[at]}" font-weight="600">{escape(curve.name)}</text>'
        below += _LINE
