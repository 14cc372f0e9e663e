"""What the observer shows of the present, in ``live.json``."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveObserver:
    """One view of the platform; each collector fills in its own fields. None is not known.

    Attributes:
        at: when it was written, UTC ns.
        stage: observing or over.
        runs: count by state.
        ends_at: ends of runs until then are known, UTC ns; None where they are known at once.
        pods: count of the runs' pods by phase.
        blocked: how many runs have waited for a minute for what will not come unless someone intervenes.
        nodes: how many machines there are, in the pools that the runs' steps use.
        ready_nodes: how many of them are ready.
        coming_nodes: how many were claimed and take no pods yet, where the autoscaler shows it.
        kubernetes: why the cluster is not observed.
        store_free_bytes: by volume.
        store_writable: the artifact store takes objects.
        services_up: by service.
        scraped_pages: ``/metrics`` pages that respond.
        prometheus_metrics: metrics found in the Prometheus.
        metrics_server: it responds.
        callbacks: results received.
        requests: the observer's own, by endpoint.
        last_error: of the observer; "" for none.
        other: what third-party collectors show, by key.
    """

    at: int | None = None
    stage: str | None = None
    runs: Mapping[str, int] | None = None
    ends_at: int | None = None
    pods: Mapping[str, int] | None = None
    blocked: int | None = None
    nodes: int | None = None
    ready_nodes: int | None = None
    coming_nodes: int | None = None
    kubernetes: str | None = None
    store_free_bytes: Mapping[str, float] | None = None
    store_writable: bool | None = None
    services_up: Mapping[str, bool] | None = None
    scraped_pages: int | None = None
    prometheus_metrics: int | None = None
    metrics_server: bool | None = None
    callbacks: int | None = None
    requests: Mapping[str, int] | None = None
    last_error: str | None = None
    other: Mapping[str, object] = field(default_factory=dict)

    def ends_age_s(self, now_at: int) -> float | None:
        """How old the counts of ended runs are at `now_at`, also if the observer hangs; None where they never are."""
        return None if self.ends_at is None else max(now_at - self.ends_at, 0) / 1e9

    def __or__(self, more: "LiveObserver") -> "LiveObserver":
        """Both together; where both know a field, the right one counts."""
        return LiveObserver.from_json(self.to_json() | more.to_json())

    def to_json(self) -> dict[str, object]:
        """One flat object with the fields that are known."""
        known = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "other"}
        return {name: value for name, value in known.items() if value is not None} | dict(self.other)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The inverse of `to_json`; unknown keys go into `other`."""
        names = {each.name for each in fields(cls)} - {"other"}
        known = {name: value for name, value in raw.items() if name in names}
        return cls(**known, other={name: value for name, value in raw.items() if name not in names})
