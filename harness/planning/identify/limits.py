"""What the runs of a simulated test waited for: each limit by its name."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from harness.analysis.timeline import Floats, active, peak
from harness.model import PodSpans
from harness.model.phases import (
    BACKEND,
    COMPUTING,
    CONTROLLER,
    LOADING,
    PULLING,
    QUEUED,
    RUNNING,
    SENDING,
    STARTING,
    STORING,
    SUBMIT,
    UNSCHEDULABLE,
)
from harness.planning.identify.reproduction import NODES
from harness.simulator.cluster.kueue import WAITS
from harness.simulator.profile import Hetida, Profile

# The names of limits.
API, PARALLELISM, QUOTA, QUEUE, OWN, NODES_LIMIT, PULLS = (
    "API server", "parallelism", "quota", "ClusterQueue", "controller", "nodes", "image pulls"
)  # fmt: skip
WORKERS, ADAPTERS, PREPARING = "runtime workers", "adapters", "backend"
ON_NODE = (PULLING, STARTING, RUNNING, STORING)  # phases of a pod that has a node
_NS = 1e9


def waits_for(
    profile: Profile, phases: Mapping[str, float], pods: Sequence[PodSpans],
    refused: Iterable[tuple[str, str, float]], answered: Mapping[str, float], over: Mapping[str, float],
    tenants: Mapping[str, str],
) -> dict[str, float]:  # fmt: skip
    """The mean seconds that a run waited for each limit.

    Args:
        profile: the simulated platform.
        phases: mean seconds of a run in each phase.
        pods: all of them.
        refused: pods that a quota refused: run, task, and since when, seconds.
        answered: when each run was accepted, seconds.
        over: when each run ended, or the observation.
        tenants: of each run.
    """
    if profile.hetida is not None:
        return _of_service(profile.hetida, phases)
    count = max(len(answered), 1)
    first: dict[str, float] = {}
    for pod in pods:
        begun = (pod.bounds[0] or 0) / _NS
        first[pod.run] = min(first.get(pod.run, begun), begun)
    capped = _capped(profile, answered, first, over, tenants) / count
    by_quota = _refused(pods, refused, over) / count if refused else 0.0
    queued = sum(_queued(pod) for pod in pods) / count if profile.queues else 0.0
    queued = min(queued, phases[NODES])
    capped = min(capped, phases[CONTROLLER])
    by_quota = min(by_quota, phases[CONTROLLER] - capped)
    return {
        API: phases[SUBMIT], PARALLELISM: capped, QUOTA: by_quota, OWN: phases[CONTROLLER] - capped - by_quota,
        QUEUE: queued, NODES_LIMIT: phases[NODES] - queued, PULLS: phases[PULLING],
    }  # fmt: skip


def most_per_node(node: Sequence[str], begun: Floats, ended: Floats) -> int:
    """The most intervals that are open at once on one node; "" is none."""
    names = np.asarray(node, dtype=str)
    return max((peak(begun[names == name], ended[names == name]) for name in np.unique(names) if name), default=0)


def _of_service(hetida: Hetida, phases: Mapping[str, float]) -> dict[str, float]:
    """Of loading and sending, what takes longer than it would alone is a wait for the worker."""
    measured = hetida.measured
    moving = phases[LOADING] + phases[SENDING]
    alone = min(moving, float(np.mean(measured.load) + np.mean(measured.send))) if measured else moving
    adapters = alone if alone > phases[COMPUTING] else 0.0
    return {PREPARING: phases[BACKEND], WORKERS: phases[QUEUED] + moving - alone, ADAPTERS: adapters}


def _capped(
    profile: Profile, answered: Mapping[str, float], first: Mapping[str, float], over: Mapping[str, float],
    tenants: Mapping[str, str],
) -> float:  # fmt: skip
    """Seconds in which runs had no pod yet while as many ran as may, in all or in their namespace."""
    controller = profile.controller
    groups = {"": list(answered)} if controller.parallelism else {}
    if controller.namespace_parallelism:
        groups |= {each: [run for run in answered if tenants[run] == each] for each in set(tenants.values())}
    found = 0.0
    for tenant, runs in groups.items():
        most = controller.namespace_parallelism if tenant or not controller.parallelism else controller.parallelism
        begun = np.array([first.get(run, over[run]) for run in runs])
        since, ended = (np.array([of[run] for run in runs]) for of in (answered, over))
        found += _full_s(since, begun, ended, most)
    return found


def _full_s(since: Floats, begun: Floats, ended: Floats, most: int) -> float:
    """Of the intervals from `since` to `begun`, the seconds in which at least `most` of those to `ended` are open."""
    at = np.unique(np.concatenate((since, begun, ended)))
    full = active(begun, ended, at[:-1]) >= most
    passed = np.concatenate(([0.0], np.cumsum(np.diff(at) * full)))
    return float((passed[np.searchsorted(at, begun)] - passed[np.searchsorted(at, since)]).clip(min=0.0).sum())


def _refused(pods: Sequence[PodSpans], refused: Iterable[tuple[str, str, float]], over: Mapping[str, float]) -> float:
    """Seconds from the refusal of pods to their creation."""
    created: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for pod in pods:
        created[pod.run, pod.task].append((pod.bounds[0] or 0) / _NS)
    return sum(
        max(0.0, min((at for at in created[run, task] if at >= since), default=over.get(run, since)) - since)
        for run, task, since in refused
    )


def _queued(pod: PodSpans) -> float:
    """Seconds in which a pod waited for a ClusterQueue's quota."""
    for k, (phase, begun, ended) in enumerate(zip(pod.phases, pod.bounds, pod.bounds[1:], strict=False)):
        if phase == UNSCHEDULABLE and WAITS in pod.reasons.get(k, "") and begun is not None and ended is not None:
            return (ended - begun) / _NS
    return 0.0
