"""A figure and its pieces: descriptions for harness/plot.js, in Plotly's words and the page's colours.

Colours are names of the page's CSS variables ("--good"); the page resolves them, so that light, dark and print each get
their own.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from typing import Any

import numpy as np

from harness.analysis.timeline import Floats, Ints
from harness.model.text.inert import visible
from reports.document import tidy

FEW = 10  # runs: with fewer, their axis gets one tick each
MOST_POINTS = 1500
Trace = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure with its title and caption. `key` is its element's id; `spec` has `data` and `layout`."""

    key: str
    title: str
    caption: str
    spec: dict[str, Any]
    height: int = 340

    @property
    def legend(self) -> list[tuple[str, str]]:
        """(name, CSS variable) of each series; the page sets it as text, where it can wrap and be read aloud."""
        if self.spec["layout"].get("showlegend") is False:
            return []
        named = ((t["name"], t.get("marker", t.get("line", {})).get("color")) for t in self.spec["data"])
        return [(name, of) for name, of in named if of]


@dataclass(frozen=True, slots=True)
class Unit:
    """The unit of a time axis, and its length in seconds."""

    name: str
    sign: str
    seconds: float


_UNITS = ((600.0, Unit("seconds", "s", 1.0)), (36_000.0, Unit("minutes", "min", 60.0)))


def unit_of(longest_s: float) -> Unit:
    """The unit in which an axis up to `longest_s` has small numbers."""
    return next((unit for below, unit in _UNITS if longest_s < below), Unit("hours", "h", 3600.0))


def bars(name: str, x: Floats, y: Floats, of: str, width: float) -> Trace:
    """Upright bars of one colour."""
    return {
        "type": "bar", "name": name, "x": x.tolist(), "y": y.tolist(), "width": width,
        "marker": {"color": of, "line": {"width": 0}},
    }  # fmt: skip


def spans(name: str, lane: Ints | Floats, start: Floats, end: Floats, of: str, unit: Unit, **more: object) -> Trace:
    """Horizontal bars on lanes, from `start` to `end` (seconds); `more` are other keys of the trace."""
    return {
        "type": "bar", "orientation": "h", "name": name, "y": lane.tolist(), "base": (start / unit.seconds).tolist(),
        "x": ((end - start) / unit.seconds).tolist(), "width": 0.82, "marker": {"color": of},
        "hovertemplate": f"%{{x:.4g}} {unit.sign}<extra>{name}</extra>", **more,
    }  # fmt: skip


def marks(name: str, lane: Ints, at: Floats, of: str, unit: Unit, symbol: str = "x") -> Trace:
    """Markers on lanes; `at` in seconds."""
    return {
        "type": "scatter", "mode": "markers", "name": name, "x": (at / unit.seconds).tolist(), "y": lane.tolist(),
        "marker": {"color": of, "size": 6, "symbol": symbol}, "hovertemplate": f"{name}<extra></extra>",
    }  # fmt: skip


def line(
    name: str, x: Iterable[float], y: Iterable[float], of: str, *, yaxis: str = "y", width: float = 1.5,
    dash: str = "solid", shape: str = "linear", **more: object,
) -> Trace:  # fmt: skip
    """A line through the points that are finite; `more` are other keys of the trace."""
    known = [(float(a), float(b)) for a, b in zip(x, y, strict=True) if isfinite(a) and isfinite(b)]
    stroke = {"color": of, "width": width, "dash": dash, "shape": shape}
    return {
        "type": "scatter", "mode": "lines", "name": name, "x": [a for a, _ in known], "y": [b for _, b in known],
        "yaxis": yaxis,
        "line": stroke, **more,
    }  # fmt: skip


def points(name: str, x: Floats, y: Floats, of: str, symbol: str = "circle") -> Trace:
    """Small points of one colour."""
    return {
        "type": "scatter", "mode": "markers", "name": name, "x": x.tolist(), "y": y.tolist(),
        "marker": {"color": of, "size": 4, "symbol": symbol, "opacity": 0.75},
    }  # fmt: skip


def thinned(x: Floats, y: Floats, most: int = MOST_POINTS) -> tuple[Floats, Floats]:
    """A series with fewer points: minimum and maximum of each of `most / 2` equal sections, in order.

    Points that are not finite are dropped.
    """
    known = np.isfinite(x) & np.isfinite(y)
    x, y = x[known], y[known]
    if x.size <= most:
        return x, y
    bounds = np.linspace(0, x.size, most // 2 + 1).astype(int)
    keep: set[int] = {0, x.size - 1}
    for low, high in pairwise(bounds.tolist()):
        section = y[low:high]
        keep |= {low + int(section.argmin()), low + int(section.argmax())}
    chosen = np.array(sorted(keep))
    return x[chosen], y[chosen]


def axis(title: str, **more: object) -> dict[str, Any]:
    """An axis with its title."""
    return {"title": {"text": title, "standoff": 8}, **more}


def time_axis(unit: Unit, **more: object) -> dict[str, Any]:
    """The axis of time after t0."""
    return axis(f"{unit.name} after the start", rangemode="tozero", **more)


def figure(
    key: str, title: str, caption: str, traces: list[Trace], layout: dict[str, Any], *, height: int = 340
) -> Figure:
    """A figure whose numbers are rounded, so that the page has the same bytes on every machine."""
    spec = _inert(tidy({"data": traces, "layout": layout}))
    return Figure(key, title, caption, spec, height)


def _inert(value: Any) -> Any:
    """Names of a platform without control characters."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {key: _inert(item) for key, item in value.items()}
    return [_inert(item) for item in value] if isinstance(value, list) else value
