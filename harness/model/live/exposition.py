"""The text format that Prometheus scrapes, and a running load test in it.

The format: https://prometheus.io/docs/instrumenting/exposition_formats (version 0.0.4).
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)  # seconds


class Histogram:
    """Counts of observations at or below each bound (ascending), and their sum."""

    def __init__(self, bounds: Sequence[float] = _BOUNDS) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        """Count an observation, in the unit of the bounds."""
        self.sum += times * value
        self._counts[bisect_left(self._bounds, value)] += times

    def buckets(self) -> Iterator[tuple[str, int]]:
        """Each bound as text, ``+Inf`` last, with the number of observations at or below it."""
        return zip((*map(_number, self._bounds), "+Inf"), accumulate(self._counts), strict=True)


Series = tuple[Mapping[str, str], float | Histogram]  # labels and value
Family = tuple[str, str, str, Sequence[Series]]  # name, type, help, series


def written(families: Iterable[Family]) -> str:
    """A page of metrics; a family without series is left out, as client libraries do."""
    lines = (line for name, kind, text, series in families if series for line in _family(name, kind, text, series))
    return "".join(f"{line}\n" for line in lines)


def _family(name: str, kind: str, text: str, series: Iterable[Series]) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"
    for labels, value in series:
        if isinstance(value, Histogram):
            count = 0
            for bound, count in value.buckets():  # the last one counts all
                yield _line(f"{name}_bucket", {**labels, "le": bound}, count)
            yield _line(f"{name}_sum", labels, value.sum)
            yield _line(f"{name}_count", labels, count)
        else:
            yield _line(name, labels, value)


def _line(name: str, labels: Mapping[str, str], value: float) -> str:
    inside = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    return f"{name}{{{inside}}} {_number(value)}" if inside else f"{name} {_number(value)}"


def _number(value: float) -> str:
    return repr(float(value)).removesuffix(".0")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
