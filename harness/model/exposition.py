"""The text format that Prometheus scrapes, and a running load test in it.

The format: https://prometheus.io/docs/instrumenting/exposition_formats (version 0.0.4).
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)  # seconds


class Histogram:
    """Counts of observations at or below each bound (ascending), and their sum."""

    def __init__(self, bounds: Sequence[float] = _BOUNDS) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Count one observation, in the unit of the bounds."""
        self.sum += value
        self._counts[bisect_left(self._bounds, value)] += 1

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


# --- a running load test ------------------------------------------------------------------------------------------

# What the load generator reports: key, metric, type, help.
_LOAD = (
    ("intended", "pipeswarm_arrivals_intended", "gauge", "Arrivals in the schedule."),
    ("sent", "pipeswarm_arrivals_sent_total", "counter", "Arrivals that were sent."),
    ("accepted", "pipeswarm_arrivals_accepted_total", "counter", "Submissions that the platform accepted."),
    ("rejected", "pipeswarm_arrivals_rejected_total", "counter", "Submissions that were refused or not answered."),
    ("missed", "pipeswarm_arrivals_missed_total", "counter", "Arrivals that were due and never sent."),
    ("in_flight", "pipeswarm_runs_in_flight", "gauge", "Accepted runs that have not ended."),
    ("awaited", "pipeswarm_submissions_unanswered", "gauge", "Submissions that wait for their response."),
    ("lag_p99_s", "pipeswarm_lag_p99_seconds", "gauge", "99th percentile of the delay from due to sent."),
    ("lag_s", "pipeswarm_lag_seconds", "gauge", "Largest delay from due to sent in the last second."),
)


def exposition(load: Mapping[str, Any], observed: Mapping[str, Any]) -> str:
    """The present state of a load test as a page of metrics; unknown values are left out.

    Args:
        load: the load generator's last report (in ``live.json``).
        observed: the observer's last report (there).
    """
    return written((*_of_load(load), *_of_observer(observed)))


def _of_load(load: Mapping[str, Any]) -> Iterator[Family]:
    if load.get("stage"):
        yield (
            "pipeswarm_test_stage",
            "gauge",
            "1 for the current stage of the test.",
            [({"stage": str(load["stage"])}, 1)],
        )
    for key, name, kind, text in _LOAD:
        if load.get(key) is not None:
            yield name, kind, text, [({}, load[key])]
    ended: list[Series] = [({"outcome": key}, load[key]) for key in ("done", "failed") if key in load]
    yield "pipeswarm_runs_ended_total", "counter", "Runs that have ended.", ended


def _of_observer(observed: Mapping[str, Any]) -> Iterator[Family]:
    yield "pipeswarm_platform_runs", "gauge", "Runs that the platform lists.", _by("state", observed.get("runs"))
    yield "pipeswarm_platform_pods", "gauge", "Pods of runs.", _by("phase", observed.get("pods"))
    if observed.get("ready_nodes") is not None:
        yield "pipeswarm_ready_nodes", "gauge", "Nodes that are ready.", [({}, observed["ready_nodes"])]
    free = _by("volume", observed.get("store_free_bytes"))
    yield "pipeswarm_store_free_bytes", "gauge", "Free space on the platform's volumes.", free
    requests = _by("endpoint", observed.get("requests"))
    yield "pipeswarm_observer_requests_total", "counter", "Requests sent by the observer itself.", requests


def _by(label: str, values: Mapping[str, Any] | None) -> list[Series]:
    return [({label: str(name)}, value) for name, value in sorted((values or {}).items())]
