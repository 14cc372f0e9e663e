"""The course of a test as counts over time, for the plot of the web UI."""

import time
from collections.abc import Mapping
from typing import Any

from harness.model.live import LiveLoad

_MAX_POINTS = 720  # beyond, every second point is dropped
_SERIES = ("at_s", "in_flight", "awaited", "done", "failed", "ready_nodes")


class History:
    """Counts over seconds since the first point, thinned out as the test gets longer."""

    def __init__(self) -> None:
        self._points: list[tuple[float, ...]] = []
        self._began_s: float | None = None
        self._every_s = 0.0

    def add(self, load: LiveLoad, observed: Mapping[str, Any], now_s: float | None = None) -> None:
        """Keep the present counts, unless the last point is too recent."""
        counts = load.counts
        if counts is None:
            return
        now_s = time.monotonic() if now_s is None else now_s
        if self._began_s is None:
            self._began_s = now_s
        at_s = now_s - self._began_s
        if self._points and at_s < self._points[-1][0] + self._every_s:
            return
        nodes = observed.get("ready_nodes")
        ready_nodes = float("nan") if nodes is None else nodes
        point = (at_s, counts.in_flight, load.awaited, counts.done, counts.failed, ready_nodes)
        self._points.append(tuple(map(float, point)))
        if len(self._points) > _MAX_POINTS:
            self._points = self._points[::2]
            self._every_s = 2 * (self._points[1][0] - self._points[0][0]) * 0.75

    def columns(self) -> dict[str, list[float]]:
        """The series by name, all of the same length; NaN where nothing was observed."""
        return {name: [point[place] for point in self._points] for place, name in enumerate(_SERIES)}
