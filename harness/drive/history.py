"""How the counts of a test moved, thinned out as it grows: what the web UI draws."""

import time
from collections.abc import Mapping
from typing import Any

_MOST = 720  # points; beyond, every second one is left out
_SERIES = ("in_flight", "awaited", "done", "failed")


class History:
    """Counts over seconds since the first point."""

    def __init__(self) -> None:
        self._points: list[tuple[float, ...]] = []
        self._began_s: float | None = None
        self._every_s = 0.0

    def add(self, load: Mapping[str, Any], observed: Mapping[str, Any], now_s: float | None = None) -> None:
        """Keep what is known now, unless the last point is not old enough."""
        if "intended" not in load:
            return
        now_s = time.monotonic() if now_s is None else now_s
        if self._began_s is None:
            self._began_s = now_s
        at_s = now_s - self._began_s
        if self._points and at_s < self._points[-1][0] + self._every_s:
            return
        nodes = observed.get("ready_nodes")
        counts = (float(load.get(name, 0)) for name in _SERIES)
        self._points.append((at_s, *counts, float("nan") if nodes is None else float(nodes)))
        if len(self._points) > _MOST:
            self._points = self._points[::2]
            self._every_s = 2 * (self._points[1][0] - self._points[0][0]) * 0.75

    def columns(self) -> dict[str, list[float]]:
        """The series by name, "at_s" among them; NaN is what was not observed."""
        names = ("at_s", *_SERIES, "ready_nodes")
        return {name: [point[place] for point in self._points] for place, name in enumerate(names)}
