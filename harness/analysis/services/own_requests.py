"""The observer's own requests by endpoint, and their share of all requests to the platform under test."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import orjson

from harness.analysis.timeline import Timeline, floats
from harness.model.phases import OBSERVER_REQUESTS


@dataclass(frozen=True, slots=True)
class OwnRequests:
    """The observer's requests.

    Attributes:
        by_endpoint: requests by source, method and path.
        platform: those to the API of the platform under test.
        share: of all requests that load and observer sent to it; none when they sent none.
    """

    by_endpoint: Mapping[str, int]
    platform: int
    share: float | None


def own_requests(timeline: Timeline) -> OwnRequests | None:
    """The requests counted during the test; none without an observer.

    The recorded counts are cumulative and start again from 0 when the observer is restarted.
    """
    counted = timeline.metric(OBSERVER_REQUESTS)
    if not len(counted):
        return None
    found: dict[str, int] = {}
    for labels, samples in counted.groupby("labels", sort=True):
        totals = floats(samples, "value")
        steps = np.diff(totals, prepend=0.0)
        found[str(orjson.loads(str(labels))["endpoint"])] = int(np.where(steps < 0, totals, steps).sum())
    platform = sum(count for endpoint, count in found.items() if endpoint.startswith(f"{timeline.plan.target} "))
    sent = int(timeline.runs["sent_s"].notna().sum()) if timeline.plan.intended else 0
    return OwnRequests(found, platform, platform / (platform + sent) if platform + sent else None)
