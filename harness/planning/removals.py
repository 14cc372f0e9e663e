"""Platforms with one bottleneck removed: what a finding's fix would bring at most, and whether a finding is right.

The one table of removals: the benchmark judges findings by it, and `pipeswarm what-if` predicts the effect of fixes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from harness.model.argo.nodes import DRIVER_SUFFIX
from harness.simulator.engine.distributions import fixed
from harness.simulator.profile import Profile, Quota

Fix = Callable[[Profile], Profile]
_PLENTY = 1e9
_QUICK_S = 0.01


def _store_full(profile: Profile) -> Profile:
    return replace(profile, store=replace(profile.store, capacity=100 * profile.store.capacity))


def _store_slow(profile: Profile) -> Profile:
    store = profile.store
    return replace(profile, store=replace(store, bytes_per_s=_PLENTY * 100, stream_bytes_per_s=_PLENTY, request_s=1e-3))


def _api(profile: Profile) -> Profile:
    return replace(profile, api=replace(profile.api, qps=1e4, burst=10_000))


def _controller(profile: Profile) -> Profile:
    """As quick as its settings can make it: Argo's own pause after an update stays."""
    own = profile.controller
    quick = replace(own, qps=1e4, burst=10_000, operation_s=min(own.operation_s, 0.02), workers=256, requeue_s=1.0)
    return replace(profile, controller=quick)


def _agent(profile: Profile) -> Profile:
    return replace(profile, agent=replace(profile.agent, workers=64, report_s=1e-3, lag_s=0.0))


def _nodes(profile: Profile) -> Profile:
    """Four times the machines, from the start."""
    return replace(profile, pools=tuple(replace(p, initial=n, min=n, max=n) for p in profile.pools
                                        for n in (4 * max(p.initial, p.max),)))  # fmt: skip


def _own_machines(profile: Profile) -> Profile:
    """Four times the machines of the pools that no autoscaler adds to."""
    pools = (
        p if p.max > p.initial else replace(p, initial=4 * p.initial, min=4 * p.initial, max=4 * p.initial)
        for p in profile.pools
    )
    return replace(profile, pools=tuple(pools))


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


def _pull(profile: Profile) -> Profile:
    return replace(profile, kubelet=replace(profile.kubelet, pull_bytes_per_s=_PLENTY * 100, pull_overhead_s=1e-3))


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


def _unlimited(profile: Profile) -> Profile:
    return replace(profile, controller=replace(profile.controller, parallelism=0, namespace_parallelism=0))


def _unrestricted(profile: Profile) -> Profile:
    tenants = tuple(replace(each, quota=Quota()) for each in profile.tenants)
    return replace(profile, quota=Quota(), tenants=tenants)


def _balanced(profile: Profile) -> Profile:
    assert profile.hetida is not None
    runtime = profile.hetida.runtime
    runtime = replace(runtime, balancing="least-connections", replicas=runtime.replicas * runtime.workers, workers=1)
    return _without_fault(replace(profile, hetida=replace(profile.hetida, runtime=runtime)), "lb-imbalance")


def _even(profile: Profile) -> Profile:
    return _without_fault(profile, "slow-worker")


def _without_fault(profile: Profile, name: str) -> Profile:
    return replace(profile, faults=tuple(each for each in profile.faults if each.name != name))


def _roomy(profile: Profile) -> Profile:
    """Four times the workers, on four times the nodes."""
    assert profile.hetida is not None
    runtime = profile.hetida.runtime
    runtime = replace(runtime, nodes=4 * runtime.nodes, replicas=4 * runtime.replicas)
    return replace(profile, hetida=replace(profile.hetida, runtime=runtime))


def _adapters(profile: Profile) -> Profile:
    assert profile.hetida is not None
    quick = (replace(each, load=fixed(1e-3), send=fixed(1e-3)) for each in profile.hetida.executions)
    measured = profile.hetida.measured
    if measured is not None:
        at_once = (1e-3,) * len(measured.load)
        measured = replace(measured, load=at_once, send=at_once)
    hetida = replace(profile.hetida, executions=tuple(quick), measured=measured)
    return _serving_all(replace(profile, hetida=hetida))


def _serving_all(profile: Profile) -> Profile:
    """Adapters that serve any number of requests at once, each as quickly as an idle one."""
    assert profile.hetida is not None
    adapters = (replace(each, capacity=0) for each in profile.hetida.adapters)
    return replace(profile, hetida=replace(profile.hetida, adapters=tuple(adapters)))


def _sound(profile: Profile) -> Profile:
    """Adapters without errors."""
    assert profile.hetida is not None
    adapters = (replace(each, error_rate=0.0) for each in profile.hetida.adapters)
    return replace(profile, hetida=replace(profile.hetida, adapters=tuple(adapters)))


_ADAPTER_LIMIT, _NODES_LIMIT = "adapter-limit", "nodes-limit"
_OF_HETIDA: Mapping[str, Fix] = {
    "adapter-slow": _adapters,
    _ADAPTER_LIMIT: _serving_all,
    "lb-imbalance": _balanced,
    "runtime-saturated": _roomy,
}
_OF_KFP: Mapping[str, Fix] = {
    "store-full": _store_full,
    **dict.fromkeys(("store-slow", "steps-end-late"), _store_slow),
    "api-throttled": _api,
    **dict.fromkeys(("controller-backlog", "controller-qps", "controller-requeue", "controller-workers"), _controller),
    "parallelism-cap": _unlimited,
    "agent-lag": _agent,
    "nodes-exhausted": _nodes,
    _NODES_LIMIT: _own_machines,
    "stranded-capacity": _fitting,
    "autoscaler-at-max": _higher,
    "autoscaler-slow": _warm,
    "autoscaler-failing": _willing,
    "image-pull": _pull,
    "cpu-starved": _modest,
    "spot-evictions": _lasting,
    "driver-overhead": _drivers,
    "quota": _unrestricted,
}
# Causes that go by the name of a fault, and are removed with it. How long an idle adapter takes is the data's nature:
# the truth is what the adapters' limits cost. Four times the machines from the start would be two remedies where an
# autoscaler adds them: a higher maximum and a quicker autoscaler. A finding that names adapters or nodes is true if
# quicker adapters, or more machines from the start, help.
GOES_BY: Mapping[str, str] = {_ADAPTER_LIMIT: "adapter-slow", _NODES_LIMIT: "nodes-exhausted"}
# Findings that say the same as another one.
_SAME_AS: Mapping[str, str] = {"workflows-postponed": "parallelism-cap"}
# What is simulated in place of a finding's fix.
SIMULATED: Mapping[str, str] = {
    "store-full": "a hundred times the room in the artifact store",
    "store-slow": "an artifact store without limits",
    "api-throttled": "an API server without a limit on its client",
    **dict.fromkeys(
        ("controller-backlog", "controller-qps", "controller-requeue", "controller-workers"),
        "a controller with a quick client, 256 workers and a requeue time of 1 s",
    ),
    "parallelism-cap": "no limit on running workflows",
    "agent-lag": "an agent that reports at once",
    "nodes-exhausted": "four times the nodes, from the start",
    "stranded-capacity": "requests as large as the use",
    "autoscaler-at-max": "four times the autoscaler's maximum",
    "autoscaler-slow": "the most nodes from the start",
    "autoscaler-failing": "a cloud that refuses no node",
    "image-pull": "images that are on the nodes",
    "cpu-starved": "cores for all steps",
    "spot-evictions": "no evictions",
    "driver-overhead": "drivers that take no time",
    "quota": "no quota",
    "adapter-slow": "adapters that answer at once",
    "adapter-errors": "adapters without errors",
    "lb-imbalance": "replicas of one worker, each execution to the least busy one",
    "runtime-saturated": "four times the replicas, on four times the nodes",
    "slow-worker": "a replica as quick as the others",
}
# Removals of what a test shows, where a platform that is drawn has it only as an injected fault.
_OF_SHOWN: Mapping[str, Fix] = {"slow-worker": _even, "adapter-errors": _sound}
# By name of the finding; a finding that is not here can be right only where it was injected.
FIXED: Mapping[str, Fix] = {name: fix for name, fix in {**_OF_KFP, **_OF_HETIDA}.items() if name not in GOES_BY}


def removal_of(finding: str) -> tuple[str, Fix] | None:
    """What is simulated in place of the fix of a finding; none if nothing can be."""
    name = _SAME_AS.get(finding, finding)
    fix = FIXED.get(name) or _OF_SHOWN.get(name)
    return (SIMULATED[name], fix) if name in SIMULATED and fix is not None else None


def fixes(profile: Profile) -> Mapping[str, Fix]:
    """Those that a platform of this kind can have."""
    return _OF_KFP if profile.hetida is None else _OF_HETIDA


def causes(profile: Profile, injected: Sequence[str]) -> tuple[str, ...]:
    """What may hold up this platform's runs: its faults and its own limits."""
    return tuple(name for name in dict.fromkeys((*injected, *fixes(profile))) if name not in GOES_BY.values())
