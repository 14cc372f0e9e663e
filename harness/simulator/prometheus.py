"""The text format that Prometheus scrapes."""

from collections.abc import Iterable, Mapping

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
        for index, bound in enumerate(self._bounds):
            if value <= bound:
                self._counts[index] += 1
                return
        self._counts[-1] += 1

    def lines(self, name: str, labels: Labels) -> Iterable[str]:
        """The exposition of one series."""
        total = 0
        for bound, count in zip((*map(_number, self._bounds), "+Inf"), self._counts, strict=True):
            total += count
            yield _line(f"{name}_bucket", {**labels, "le": bound}, total)
        yield _line(f"{name}_sum", labels, self.sum)
        yield _line(f"{name}_count", labels, total)


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
