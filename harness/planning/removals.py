"""Platforms with one bottleneck removed: what a finding's fix would bring at most, and whether a finding is right.

The one table of removals: the benchmark judges findings by it, and `pipeswarm what-if` predicts the effect of fixes.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from harness.model.argo.nodes import DRIVER_SUFFIX
from harness.simulator.engine.distributions import fixed
from harness.simulator.profile import Hetida, Pool, Profile, Quota, Step

Fix = Callable[[Profile], Profile]
_PLENTY = 1e9
_QUICK_S = 0.01


def _values(name: str, value: object) -> Any:
    return {name: value}


def _with(profile: Profile, section: str, **settings: Any) -> Profile:
    return replace(profile, **_values(section, replace(getattr(profile, section), **settings)))


def of_service(change: Callable[[Hetida], Hetida]) -> Fix:
    """Change the service that executes the runs."""

    def fix(profile: Profile) -> Profile:
        assert profile.hetida is not None
        return replace(profile, hetida=change(profile.hetida))

    return fix


def _store_full(profile: Profile) -> Profile:
    return replace(profile, store=replace(profile.store, capacity=100 * profile.store.capacity))


def _controller(profile: Profile) -> Profile:
    """As quick as its settings can make it: Argo's own pause after an update stays."""
    own = profile.controller
    quick = replace(own, qps=1e4, burst=10_000, operation_s=min(own.operation_s, 0.02), workers=256, requeue_s=1.0)
    return replace(profile, controller=quick)


def _each(section: str, change: Callable[[Any], Any]) -> Fix:
    """Change each pool, or each step."""
    return lambda profile: replace(profile, **_values(section, tuple(map(change, getattr(profile, section)))))


def _more(pool: Pool) -> Pool:
    most = 4 * max(pool.initial, pool.max)
    return replace(pool, initial=most, min=most, max=most)


def _warm(pool: Pool) -> Pool:
    most = max(pool.initial, pool.max)
    return replace(pool, initial=most, min=most)


def _fitting(step: Step) -> Step:
    """It requests what it uses; this helps where the requests are the profile's, not the pipeline's."""
    cpu = min(step.requests_cpu, step.cpu.distribution.mean)
    return replace(
        step, requests_cpu=cpu, requests_memory=min(step.requests_memory, 1.1 * step.memory.distribution.mean)
    )


def _willing(profile: Profile) -> Profile:
    scaler = profile.autoscaler
    return profile if scaler is None else replace(profile, autoscaler=replace(scaler, failing=0.0))


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
    def each_alone(of: Hetida) -> Hetida:
        replicas = of.runtime.replicas * of.runtime.workers
        return replace(of, runtime=replace(of.runtime, balancing="least-connections", replicas=replicas, workers=1))

    return _without_fault(of_service(each_alone)(profile), "lb-imbalance")


def _without_fault(profile: Profile, name: str) -> Profile:
    return replace(profile, faults=tuple(fault for fault in profile.faults if fault.name != name))


def _roomy(of: Hetida) -> Hetida:
    """Four times the workers, on four times the nodes."""
    return replace(of, runtime=replace(of.runtime, nodes=4 * of.runtime.nodes, replicas=4 * of.runtime.replicas))


def _adapters(of: Hetida) -> Hetida:
    """Adapters that answer at once, any number of requests."""
    quick = (replace(execution, load=fixed(1e-3), send=fixed(1e-3)) for execution in of.executions)
    measured = of.measured
    if measured is not None:
        at_once = (1e-3,) * len(measured.load)
        measured = replace(measured, load=at_once, send=at_once)
    adapters = tuple(replace(adapter, capacity=0) for adapter in of.adapters)
    return replace(of, executions=tuple(quick), measured=measured, adapters=adapters)


def _sound(of: Hetida) -> Hetida:
    """Adapters without errors."""
    return replace(of, adapters=tuple(replace(adapter, error_rate=0.0) for adapter in of.adapters))


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
    "nodes-exhausted": ("four times the nodes, from the start", _each("pools", _more)),
    "stranded-capacity": ("requests as large as the use", _each("steps", _fitting)),
    "autoscaler-at-max": (
        "four times the autoscaler's maximum",
        _each("pools", lambda pool: replace(pool, max=4 * pool.max)),
    ),
    "autoscaler-slow": ("the most nodes from the start", _each("pools", _warm)),
    "autoscaler-failing": ("a cloud that refuses no node", _willing),
    "image-pull": (
        "images that are on the nodes",
        partial(_with, section="kubelet", pull_bytes_per_s=100 * _PLENTY, pull_overhead_s=1e-3),
    ),
    "cpu-starved": ("cores for all steps", _each("steps", lambda step: replace(step, cpu=fixed(0.05)))),
    "spot-evictions": ("no evictions", _each("pools", lambda pool: replace(pool, evictions_per_hour=0.0))),
    "driver-overhead": ("drivers that take no time", _drivers),
    "quota": ("no quota", _unrestricted),
    "adapter-slow": ("adapters that answer at once", of_service(_adapters)),
    "adapter-errors": ("adapters without errors", of_service(_sound)),
    "lb-imbalance": ("replicas of one worker, each execution to the least busy one", _balanced),
    "runtime-saturated": ("four times the replicas, on four times the nodes", of_service(_roomy)),
    "slow-worker": ("a replica as quick as the others", partial(_without_fault, name="slow-worker")),
}
