"""What a figure is, and the pieces it is made of: Plotly descriptions in the page's colours.

Colours are names of the page's CSS variables ("--good"); the page resolves them, so that light, dark and print each get
their own. Long series are thinned honestly: the least and the greatest of each stretch stay.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from harness.analysis.timeline import Floats, Ints
from reports.document import tidy

MOST_POINTS = 1500
FEW = 10  # runs: their axis would get ticks between them
Trace = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure with the words that carry it. `key` is its element's id; `spec` has Plotly's `data` and `layout`."""

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
    """What an axis of time counts in."""

    name: str
    sign: str
    seconds: float


_UNITS = ((600.0, Unit("seconds", "s", 1.0)), (36_000.0, Unit("minutes", "min", 60.0)))


def unit_of(longest_s: float) -> Unit:
    """The unit in which an axis up to `longest_s` has small numbers."""
    return next((unit for below, unit in _UNITS if longest_s < below), Unit("hours", "h", 3600.0))


def thinned(x: Floats, y: Floats, most: int = MOST_POINTS) -> tuple[Floats, Floats]:
    """At most `most` points: of each stretch the least and the greatest, in their order."""
    known = np.isfinite(x) & np.isfinite(y)
    x, y = x[known], y[known]
    if x.size <= most:
        return x, y
    bounds = np.linspace(0, x.size, most // 2 + 1).astype(int)
    keep: set[int] = {0, x.size - 1}
    for low, high in pairwise(bounds.tolist()):
        stretch = y[low:high]
        keep |= {low + int(stretch.argmin()), low + int(stretch.argmax())}
    chosen = np.array(sorted(keep))
    return x[chosen], y[chosen]


def bars(name: str, x: Floats, y: Floats, of: str, width: float) -> Trace:
    """Upright bars of one colour."""
    return {
        "type": "bar", "name": name, "x": x.tolist(), "y": y.tolist(), "width": width,
        "marker": {"color": of, "line": {"width": 0}},
    }  # fmt: skip


def stretches(name: str, lane: Ints | Floats, start: Floats, end: Floats, of: str, unit: Unit, **more: object) -> Trace:
    """Bars that lie on lanes, from `start` to `end` (seconds); `more` is Plotly's."""
    return {
        "type": "bar", "orientation": "h", "name": name, "y": lane.tolist(), "base": (start / unit.seconds).tolist(),
        "x": ((end - start) / unit.seconds).tolist(), "width": 0.82, "marker": {"color": of},
        "hovertemplate": f"%{{x:.4g}} {unit.sign}<extra>{name}</extra>", **more,
    }  # fmt: skip


def marks(name: str, lane: Ints, at: Floats, of: str, unit: Unit, symbol: str = "x") -> Trace:
    """Signs on lanes, at so many seconds."""
    return {
        "type": "scatter", "mode": "markers", "name": name, "x": (at / unit.seconds).tolist(), "y": lane.tolist(),
        "marker": {"color": of, "size": 6, "symbol": symbol}, "hovertemplate": f"{name}<extra></extra>",
    }  # fmt: skip


def line(
    name: str, x: Floats, y: Floats, of: str, *, yaxis: str = "y", width: float = 1.5, dash: str = "solid",
    shape: str = "linear", **more: object,
) -> Trace:  # fmt: skip
    """A thinned line; `more` is Plotly's."""
    x, y = thinned(x, y)
    stroke = {"color": of, "width": width, "dash": dash, "shape": shape}
    return {
        "type": "scatter", "mode": "lines", "name": name, "x": x.tolist(), "y": y.tolist(), "yaxis": yaxis,
        "line": stroke, **more,
    }  # fmt: skip


def points(name: str, x: Floats, y: Floats, of: str, symbol: str = "circle") -> Trace:
    """Thinned points of one colour."""
    x, y = thinned(x, y)
    return {
        "type": "scatter", "mode": "markers", "name": name, "x": x.tolist(), "y": y.tolist(),
        "marker": {"color": of, "size": 4, "symbol": symbol, "opacity": 0.75},
    }  # fmt: skip


def axis(title: str, **more: object) -> dict[str, Any]:
    """An axis with its title."""
    return {"title": {"text": title, "standoff": 8}, **more}


def time_axis(unit: Unit, **more: object) -> dict[str, Any]:
    """The axis of time after t0."""
    return axis(f"{unit.name} after the start", rangemode="tozero", **more)


def figure(
    key: str, title: str, caption: str, traces: list[Trace], layout: dict[str, Any], *, height: int = 340
) -> Figure:
    """Put together and round, so that the page is the same everywhere."""
    spec = tidy({"data": traces, "layout": layout})
    return Figure(key, title, caption, spec, height)
