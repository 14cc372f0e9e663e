"""What each pod cost, from the allocation API of OpenCost, or of Kubecost below its ``/model``.

Source: https://opencost.io/docs/integrations/api
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from typing import Any

from harness.collectors.metrics.past import Answer, Ask
from harness.collectors.metrics.prometheus import data_of
from harness.collectors.source_health import UnreachableError
from harness.model.http import Exchange
from harness.model.units import timestamp

_PATH, _IDLE = "/allocation/compute", "__idle__"
_RESOLUTION_S = 60  # of its times


@dataclass(frozen=True, slots=True)
class Allocations(Ask):
    """One request for what the cluster cost in a time, `Ask` without PromQL."""

    @property
    def request(self) -> tuple[str, dict[str, str]]:
        """Path and query."""
        window = f"{timestamp(self.start_s)},{timestamp(self.end_s)}"
        return _PATH, {"window": window, "aggregate": "namespace,pod", "includeIdle": "true"}


def pod_costs(exchange: Exchange, path: str, query: Mapping[str, str]) -> Answer:
    """Labels, and the cost from its beginning on, of each pod, of what belongs to none, and of idle nodes.

    Raises:
        UnreachableError: there is no such answer, or one about another time.
    """
    found = data_of(exchange, path, query, ("code", 200), "message")
    since_s, until_s = map(_at_s, query["window"].split(","))
    try:
        costs = [_cost(name, each) for one in found if one is not None for name, each in one.items()]
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise UnreachableError(f"{path} did not answer as an OpenCost does") from error
    for _, begun_s, ended_s, _ in costs:
        if begun_s < since_s - _RESOLUTION_S or ended_s > until_s + _RESOLUTION_S:
            raise UnreachableError(f"{path} answered about another time than it was asked about, {query['window']}")
    return [(labels, [(round(since_s) * 10**9, cost)]) for labels, _, _, cost in costs]


def _cost(name: str, allocation: Mapping[str, Any]) -> tuple[dict[str, str], float, float, float]:
    """Labels, beginning and end of the set it belongs to (UTC s), and cost."""
    begun_s, ended_s = (_at_s(allocation["window"][each]) for each in ("start", "end"))
    cost = 0.0 if allocation["totalCost"] is None else allocation["totalCost"]  # null stands for NaN
    if type(cost) not in {int, float} or not isfinite(cost):
        raise ValueError(cost)
    namespace, _, pod = name.rpartition("/")
    return {"idle": "true"} if pod == _IDLE else {"namespace": namespace, "pod": pod}, begun_s, ended_s, float(cost)


def _at_s(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()
