"""Platforms with one bottleneck removed: what a finding's fix would bring at most, and whether a finding is right.

The one table of removals: the benchmark judges findings by it, and `pipeswarm what-if` predicts the effect of fixes.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from harness.model.argo.nodes import DRIVER_SUFFIX
from harness.simulator.engine.distributions import fixed
from harness.simulator.profile import Profile, Quota

Fix = Callable[[Profile], Profile]
_PLENTY = 1e9
_QUICK_S = 0.01


def _with(profile: Profile, section: str, **settings: Any) -> Profile:
    changed: Any = {section: replace(getattr(profile, section), **settings)}
    return replace(profile, **changed)


def _store_full(profile: Profile) -> Profile:
    return replace(profile, store=replace(profile.store, capacity=100 * profile.store.capacity))


def _controller(profile: Profile) -> Profile:
    """As quick as its settings can make it: Argo's own pause after an update stays."""
    own = profile.controller
    quick = replace(own, qps=1e4, burst=10_000, operation_s=min(own.operation_s, 0.02), workers=256, requeue_s=1.0)
    return replace(profile, controller=quick)


def _nodes(profile: Profile) -> Profile:
    """Four times the machines, from the start."""
    return replace(profile, pools=tuple(replace(p, initial=n, min=n, max=n) for p in profile.pools
                                        for n in (4 * max(p.initial, p.max),)))  # fmt: skip


def _higher(profile: Profile) -> Profile:
    """Four times the autoscaler's maximum."""
    return replace(profile, pools=tuple(replace(p, max=4 * p.max) for p in profile.pools))


def _fitting(profile: Profile) -> Profile:
    """Steps request what they use; this helps where the requests are the profile's, not the pipeline's."""
    steps = (
        replace(
            step,
            requests_cpu=min(step.requests_cpu, step.cpu.distribution.mean),
            requests_memory=min(step.requests_memory, 1.1 * step.memory.distribution.mean),
        )
        for step in profile.steps
    )
    return replace(profile, steps=tuple(steps))


def _warm(profile: Profile) -> Profile:
    """The maximum number of machines, from the start."""
    pools = (replace(p, initial=max(p.initial, p.max), min=max(p.initial, p.max)) for p in profile.pools)
    return replace(profile, pools=tuple(pools))


def _willing(profile: Profile) -> Profile:
    scaler = profile.autoscaler
    return profile if scaler is None else replace(profile, autoscaler=replace(scaler, failing=0.0))


def _modest(profile: Profile) -> Profile:
    steps = (replace(step, cpu=fixed(0.05)) for step in profile.steps)
    return replace(profile, steps=tuple(steps))


def _lasting(profile: Profile) -> Profile:
    return replace(profile, pools=tuple(replace(p, evictions_per_hour=0.0) for p in profile.pools))


def _drivers(profile: Profile) -> Profile:
    measured = {
        task: replace(each, work=(_QUICK_S,) * len(each.work)) if task.endswith(DRIVER_SUFFIX) else each
        for task, each in profile.measured.items()
    }
    return replace(profile, measured=measured, controller=replace(profile.controller, driver=fixed(_QUICK_S)))


def _unrestricted(profile: Profile) -> Profile:
    tenants = tuple(replace(tenant, quota=Quota()) for tenant in profile.tenants)
    return replace(profile, quota=Quota(), tenants=tenants)


def _balanced(profile: Profile) -> Profile:
    assert profile.hetida is not None
    runtime = profile.hetida.runtime
    runtime = replace(runtime, balancing="least-connections", replicas=runtime.replicas * runtime.workers, workers=1)
    return _without_fault(replace(profile, hetida=replace(profile.hetida, runtime=runtime)), "lb-imbalance")


def _without_fault(profile: Profile, name: str) -> Profile:
    return replace(profile, faults=tuple(fault for fault in profile.faults if fault.name != name))


def _roomy(profile: Profile) -> Profile:
    """Four times the workers, on four times the nodes."""
    assert profile.hetida is not None
    runtime = profile.hetida.runtime
    runtime = replace(runtime, nodes=4 * runtime.nodes, replicas=4 * runtime.replicas)
    return replace(profile, hetida=replace(profile.hetida, runtime=runtime))


def _adapters(profile: Profile) -> Profile:
    """Adapters that answer at once, any number of requests."""
    assert profile.hetida is not None
    of = profile.hetida
    quick = (replace(execution, load=fixed(1e-3), send=fixed(1e-3)) for execution in of.executions)
    measured = of.measured
    if measured is not None:
        at_once = (1e-3,) * len(measured.load)
        measured = replace(measured, load=at_once, send=at_once)
    adapters = tuple(replace(adapter, capacity=0) for adapter in of.adapters)
    return replace(profile, hetida=replace(of, executions=tuple(quick), measured=measured, adapters=adapters))


def _sound(profile: Profile) -> Profile:
    """Adapters without errors."""
    assert profile.hetida is not None
    adapters = (replace(adapter, error_rate=0.0) for adapter in profile.hetida.adapters)
    return replace(profile, hetida=replace(profile.hetida, adapters=tuple(adapters)))


_UNLIMITED = (
    "no limit on running workflows",
    partial(_with, section="controller", parallelism=0, namespace_parallelism=0),
)
_QUICK_CONTROLLER = "a controller with a quick client, 256 workers and a requeue time of 1 s", _controller
# By finding: what is simulated in place of its fix, in words and on a profile.
REMOVALS: Mapping[str, tuple[str, Fix]] = {
    "store-full": ("a hundred times the room in the artifact store", _store_full),
    "store-slow": (
        "an artifact store without limits",
        partial(_with, section="store", bytes_per_s=100 * _PLENTY, stream_bytes_per_s=_PLENTY, request_s=1e-3),
    ),
    "api-throttled": (
        "an API server without a limit on its client",
        partial(_with, section="api", qps=1e4, burst=10_000),
    ),
    "controller-backlog": _QUICK_CONTROLLER,
    "controller-qps": _QUICK_CONTROLLER,
    "controller-requeue": _QUICK_CONTROLLER,
    "controller-workers": _QUICK_CONTROLLER,
    "parallelism-cap": _UNLIMITED,
    "workflows-postponed": _UNLIMITED,
    "agent-lag": (
        "an agent that reports at once",
        partial(_with, section="agent", workers=64, report_s=1e-3, lag_s=0.0),
    ),
    "nodes-exhausted": ("four times the nodes, from the start", _nodes),
    "stranded-capacity": ("requests as large as the use", _fitting),
    "autoscaler-at-max": ("four times the autoscaler's maximum", _higher),
    "autoscaler-slow": ("the most nodes from the start", _warm),
    "autoscaler-failing": ("a cloud that refuses no node", _willing),
    "image-pull": (
        "images that are on the nodes",
        partial(_with, section="kubelet", pull_bytes_per_s=100 * _PLENTY, pull_overhead_s=1e-3),
    ),
    "cpu-starved": ("cores for all steps", _modest),
    "spot-evictions": ("no evictions", _lasting),
    "driver-overhead": ("drivers that take no time", _drivers),
    "quota": ("no quota", _unrestricted),
    "adapter-slow": ("adapters that answer at once", _adapters),
    "adapter-errors": ("adapters without errors", _sound),
    "lb-imbalance": ("replicas of one worker, each execution to the least busy one", _balanced),
    "runtime-saturated": ("four times the replicas, on four times the nodes", _roomy),
    "slow-worker": ("a replica as quick as the others", partial(_without_fault, name="slow-worker")),
}
