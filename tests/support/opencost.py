"""Answers of OpenCost's allocation API.

Fields and values of an allocation are those of https://www.opencost.io/allocation-example-output.json.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any


def allocations(costs: Mapping[str, float | None], since_s: float, until_s: float) -> dict[str, Any]:
    """One set of allocations by ``namespace/pod`` from `since_s` to `until_s`, with these total costs."""
    start, end = (f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%dT%H:%M:%SZ}" for at_s in (since_s, until_s))
    return {"code": 200, "data": [{name: _allocation(name, cost, start, end) for name, cost in costs.items()}]}


def _allocation(name: str, cost: float | None, start: str, end: str) -> dict[str, Any]:
    namespace, _, pod = name.rpartition("/")
    properties = {"cluster": "default-cluster", "node": "node-0", "namespace": namespace, "pod": pod}
    cpu = None if cost is None else 0.75 * cost
    return {
        "name": name, "properties": properties, "window": {"start": start, "end": end}, "start": start, "end": end,
        "minutes": 59.0, "cpuCores": 0.5, "cpuCoreRequestAverage": 0.5, "cpuCoreUsageAverage": 0.2, "cpuCoreHours": 0.5,
        "cpuCost": cpu, "cpuCostAdjustment": 0, "cpuEfficiency": 0.4, "gpuCount": 0, "gpuHours": 0, "gpuCost": 0,
        "networkCost": 0, "loadBalancerCost": 0, "pvCost": 0, "pvs": None, "ramByteHours": 2.0**29,
        "ramCost": None if cost is None or cpu is None else cost - cpu, "externalCost": 0, "sharedCost": 0,
        "totalCost": cost, "totalEfficiency": 0.4, "lbAllocations": None,
    }  # fmt: skip
