"""A running test in the text format that Prometheus scrapes, to show it beside the platform's own metrics.

The format: https://prometheus.io/docs/instrumenting/exposition_formats (version 0.0.4).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

# Of the live view of the load: key, metric, type, help.
_LOAD = (
    ("intended", "pipeswarm_arrivals_intended", "gauge", "Arrivals of the schedule."),
    ("sent", "pipeswarm_arrivals_sent_total", "counter", "Arrivals that were sent."),
    ("accepted", "pipeswarm_arrivals_accepted_total", "counter", "Submissions that the platform accepted."),
    ("rejected", "pipeswarm_arrivals_rejected_total", "counter", "Submissions that were rejected, or got no response."),
    ("missed", "pipeswarm_arrivals_missed_total", "counter", "Arrivals that were due and never sent."),
    ("in_flight", "pipeswarm_runs_in_flight", "gauge", "Accepted runs that have not ended."),
    ("awaited", "pipeswarm_submissions_unanswered", "gauge", "Submissions without a response yet."),
    ("lag_p99_s", "pipeswarm_lag_p99_seconds", "gauge", "Lag (sent - due) of arrivals so far, 99th percentile."),
    ("lag_s", "pipeswarm_lag_seconds", "gauge", "Maximum lag (sent - due) of arrivals in the last second."),
)
_Series = tuple[Mapping[str, str], float]


def exposition(load: Mapping[str, Any], observed: Mapping[str, Any]) -> str:
    """The current state as a page of metrics; unknown ones are left out.

    Args:
        load: the load's part of ``live.json``.
        observed: the observer's part of it.
    """
    return "".join(f"{line}\n" for line in (*_of_load(load), *_of_observer(observed)))


def _of_load(load: Mapping[str, Any]) -> Iterator[str]:
    if load.get("stage"):
        running = {"stage": str(load["stage"])}
        yield from _family("pipeswarm_test_stage", "gauge", "1 for the current stage of the test.", [(running, 1.0)])
    for key, name, kind, text in _LOAD:
        if load.get(key) is not None:
            yield from _family(name, kind, text, [({}, float(load[key]))])
    ended = [({"outcome": key}, float(load[key])) for key in ("done", "failed") if key in load]
    yield from _family("pipeswarm_runs_ended_total", "counter", "Runs that have ended.", ended)


def _of_observer(observed: Mapping[str, Any]) -> Iterator[str]:
    yield from _family(
        "pipeswarm_platform_runs", "gauge", "Runs that the platform lists.", _labelled("state", observed.get("runs"))
    )
    yield from _family("pipeswarm_platform_pods", "gauge", "Pods of runs.", _labelled("phase", observed.get("pods")))
    if observed.get("ready_nodes") is not None:
        ready: list[_Series] = [({}, float(observed["ready_nodes"]))]
        yield from _family("pipeswarm_ready_nodes", "gauge", "Nodes that are ready.", ready)
    free = _labelled("volume", observed.get("store_free_bytes"))
    yield from _family("pipeswarm_store_free_bytes", "gauge", "Free space of the platform's volumes.", free)
    own = _labelled("endpoint", observed.get("requests"))
    yield from _family("pipeswarm_observer_requests_total", "counter", "Requests of the observer.", own)


def _labelled(label: str, values: Mapping[str, Any] | None) -> list[_Series]:
    return [({label: str(name)}, float(value)) for name, value in sorted((values or {}).items())]


def _family(name: str, kind: str, text: str, series: Sequence[_Series]) -> list[str]:
    if not series:
        return []
    return [f"# HELP {name} {text}", f"# TYPE {name} {kind}", *(_line(name, *each) for each in series)]


def _line(name: str, labels: Mapping[str, str], value: float) -> str:
    inside = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    return f"{name}{{{inside}}} {value!r}" if inside else f"{name} {value!r}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
