"""What KFP's API server answered to requests that create runs, as its own metrics count it."""

from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from harness.analysis.services.database import refusals
from harness.analysis.timeline import Timeline, floats

METRIC = "kfp_requests_per_s"
_METHOD, _OK, _INTERNAL = "CreateRun", "OK", "Internal"


def rejected_by_code(timeline: Timeline) -> Mapping[str, float]:
    """By gRPC code, the share of the requests that create runs which were answered with that error.

    Empty where the metrics show no such request. Shares are of rates summed over the samples of the observed time,
    which are evenly spaced.
    """
    rates = _rates(timeline)
    total = sum(rates.values())
    return {code: rate / total for code, rate in sorted(rates.items()) if code != _OK and rate > 0} if total else {}


def lost_to_database(timeline: Timeline) -> float:
    """The share of these requests that failed for want of a connection: internal errors, at most one a refusal."""
    rates, refused = _rates(timeline), float(refusals(timeline).per_s.sum())
    return min(rates[_INTERNAL], refused) / sum(rates.values()) if rates[_INTERNAL] else 0.0


def _rates(timeline: Timeline) -> dict[str, float]:
    rates = defaultdict[str, float](float)
    for code, samples in timeline.labelled(METRIC, "grpc_code", grpc_method=_METHOD).groupby("grpc_code"):
        rates[str(code)] += float(np.nansum(floats(samples, "value")))
    return rates
