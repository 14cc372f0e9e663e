"""Tests with a fixed platform and load: every fault alone, two at once, and none."""

from typing import Any

from harness.simulator.hetida.faults import FAULTS as OF_HETIDA
from tests.support.injection.case import Case


def _case(*faults: str, **load: Any) -> Case:
    return Case(tuple(f if "@" in f else f"{f}@5s" for f in faults), **load)


# A rate that the platform sustains; faults that only show under more load, or with longer steps, get that.
CASES = {case.injected[0]: case for case in (
    _case("store-full@0s", runs=200, over_s=100.0),
    _case("store-slow"),
    _case("store-unreachable-from-old-nodes"),
    _case("api-throttled", runs=100, over_s=5.0),
    _case("api-errors"),
    _case("controller-backlog"),
    _case("parallelism-cap", runs=180),
    _case("agent-lag"),
    _case("nodes-exhausted", runs=120, over_s=40.0),
    _case("autoscaler-slow", runs=120, over_s=40.0),
    _case("autoscaler-at-max", runs=160, over_s=40.0),
    _case("image-pull"),
    _case("image-missing"),
    _case("node-pressure"),
    _case("oom"),
    _case("cpu-starved"),
    _case("spot-evictions@60s", runs=60, over_s=120.0, step_s=45.0),
    _case("db-connections"),
    _case("db-full"),
    _case("db-slow-listing"),
    _case("quota"),
    _case("clock-skew"),
    _case("driver-overhead"),
    *(_case(f"{name}@15s", runs=600, over_s=60.0, profile="hetida-pattern-1") for name in OF_HETIDA),
)}  # fmt: skip
PAIRS = tuple(
    _case(*pair, **load)
    for pair, load in (
        (("store-slow", "image-pull"), {}),
        (("oom", "controller-backlog"), {}),
        (("api-errors", "image-pull"), {}),
        (("api-throttled", "store-slow"), {"runs": 100, "over_s": 5.0}),
        (("driver-overhead", "autoscaler-slow"), {"runs": 120, "over_s": 40.0}),
        (("db-connections", "nodes-exhausted"), {"runs": 120, "over_s": 40.0}),
        (("store-unreachable-from-old-nodes", "driver-overhead"), {}),
        (("quota", "api-errors"), {}),
    )
)
CONTROLS = (
    Case(), Case(runs=150), Case(runs=60, over_s=120.0, step_s=45.0), Case(runs=40, over_s=80.0),
    Case(runs=600, profile="hetida-pattern-1"),
)  # fmt: skip
