"""The text format that Prometheus scrapes."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from itertools import accumulate

Labels = Mapping[str, str]
Series = tuple[Labels, float]
_CREATE_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)


class Histogram:
    """Counts of observations at or below each bound, and their sum."""

    def __init__(self, bounds: tuple[float, ...] = _CREATE_BUCKETS) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Count one."""
        self.sum += value
        self._counts[bisect_left(self._bounds, value)] += 1

    def lines(self, name: str, labels: Labels) -> Iterable[str]:
        """The exposition of one series."""
        for bound, total in self.buckets():
            yield _line(f"{name}_bucket", {**labels, "le": bound}, total)
        yield _line(f"{name}_sum", labels, self.sum)
        yield _line(f"{name}_count", labels, sum(self._counts))

    def buckets(self) -> Iterable[tuple[str, float]]:
        """Each bound as text, with the count of observations at or below it."""
        bounds = (*map(_number, self._bounds), "+Inf")
        return zip(bounds, accumulate(self._counts), strict=True)


def _number(value: float) -> str:
    return f"{value:.10g}"


def _line(name: str, labels: Labels, value: float) -> str:
    inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    return f"{name}{{{inside}}} {_number(value)}" if inside else f"{name} {_number(value)}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def family(name: str, kind: str, help_text: str, series: Iterable[Series]) -> list[str]:
    """The exposition of one metric with all its series."""
    lines = [f"# HELP {name} {help_text}", f"# TYPE {name} {kind}"]
    return lines + [_line(name, labels, value) for labels, value in series]
