"""Handwritten tests with one fault each, as a cluster would show it, by the finding that names it."""

import re
from collections.abc import Callable
from math import isfinite

from harness.model.findings import Evidence
from tests.support.injected.control_plane import (
    api_errors,
    api_throttled,
    backlog,
    cached,
    controller,
    crowded,
    etcd,
    listed,
    piling_up,
    quota,
    waiting,
    webhook,
)
from tests.support.injected.doubtful import (
    censored,
    generator_lag,
    limited,
    miscounted,
    missed,
    observer_gaps,
    slow_accepts,
    unauthorized,
)
from tests.support.injected.loads import (
    capped,
    executed,
    full_volume,
    one_at_a_time,
    slow_store,
    slower_and_slower,
    steady,
    stopped,
)
from tests.support.injected.nodes import (
    autoscaled,
    busy_nodes,
    image_missing,
    overstated,
    shared,
    spot,
    store_unreachable,
)
from tests.support.injected.services import adapter_errors, noisy_tenants
from tests.support.timelines import GIB, Story, burst


def plausible(evidence: Evidence) -> bool:
    """Whether the value is finite and its statement has no negative time or share."""
    value = evidence.value
    possible = value is None or (isfinite(value) and (value >= 0 or "before the test" in evidence.statement))
    return possible and not re.search(r"(?<![\w.:-])-\d|\bnan\b|\binf\b", evidence.statement)


# Findings of a detector that goes by other names.
NAMED = {"stated": "image-missing"}

INJECTED: dict[str, Callable[[], Story]] = {
    "db-full": full_volume,
    "db-connections": lambda: crowded(steady()),
    "noisy-neighbour": noisy_tenants,
    "store-full": lambda: burst(100, store_full_from=0.5),
    "store-slow": slow_store,
    "steps-end-late": lambda: steady(store=8.0),
    "store-unreachable-from-old-nodes": store_unreachable,
    "api-throttled": api_throttled,
    "api-errors": api_errors,
    "controller-backlog": backlog,
    "controller-qps": lambda: controller(token_s=3.0, queued_s=9.0, busy=32.0, updates=20.0),
    "controller-workers": lambda: controller(token_s=0.005, queued_s=9.0, busy=4.0, updates=3.8),
    "controller-down": stopped,
    "controller-requeue": lambda: controller(grows=False),
    "parallelism-cap": capped,
    "workflow-parallelism": one_at_a_time,
    "webhook-slow": webhook,
    "agent-lag": lambda: steady(publish=lambda seq: 2.0 + seq),
    "nodes-exhausted": lambda: burst(100),
    "autoscaler-at-max": lambda: autoscaled("pod triggered scale-up: [{steps 6->7 (max: 7)}]"),
    "autoscaler-slow": lambda: autoscaled("pod triggered scale-up: [{steps 6->7 (max: 20)}]", ready=40.0),
    "autoscaler-failing": lambda: autoscaled("no capacity in zone 2", reason="FailedToScaleUpGroup"),
    "workflows-postponed": lambda: waiting(
        "argo", "Workflow processing has been postponed because too many workflows are already running"
    ),
    "etcd-nearly-full": lambda: etcd(1.8 * GIB),
    "finished-workflows": piling_up,
    "image-pull": lambda: steady(pull=9.0),
    "stated": image_missing,
    "quota": quota,
    "oom": lambda: steady(fails=lambda seq: "OOMKilled: container main" if seq % 3 == 0 else ""),
    "db-slow-listing": lambda: listed(lambda second: 0.1 + second / 20),
    "cpu-starved": busy_nodes,
    "spot-evictions": spot,
    "driver-overhead": lambda: steady(driver=6.0, work=2.0),
    "clock-skew": lambda: steady(skew=7.0),
    "generator-lag": generator_lag,
    "missed-arrivals": missed,
    "slow-accepts": slow_accepts,
    "submissions-limited": limited,
    "credentials-refused": unauthorized,
    "caching": cached,
    "censoring": censored,
    "observer-gaps": observer_gaps,
    "too-few-samples": lambda: steady(10),
    "adapter-slow": lambda: executed(loading=lambda _: 1.5),
    "adapter-errors": adapter_errors,
    "slow-worker": lambda: executed(computing=lambda place: 2.0 if place == 1 else 0.5),
    "lb-imbalance": lambda: executed(
        replica=lambda seq: 0 if seq % 10 < 8 else 1 + seq % 2, queue=lambda place: 3.0 if place == 0 else 0.01
    ),
    "stranded-capacity": overstated,
    "runtime-saturated": lambda: executed(queue=lambda _: 9.0, computing=lambda _: 2.5),
    "unexplained-wait": slower_and_slower,
    "inconsistent-records": miscounted,
    "foreign-load": lambda: shared(cores=1.9),
    "failures": lambda: steady(fails=lambda seq: "exit code 3: no such column" if seq % 4 == 0 else ""),
}
