"""What the nodes lacked while pods waited for one, node by node and resource by resource, by requests.

The scheduler places a pod by requests alone. So a node that lacks a resource may hardly use it: then smaller requests
make room. Where it lacks GPUs or places for pods, they don't.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from harness.analysis.cost.requested import requests_by
from harness.analysis.timeline import Bools, Floats, Timeline, floats, remembered
from harness.model.phases import (
    NODE_CPU_CORES,
    NODE_MEMORY_BYTES,
    REQUESTED_CPU_CORES,
    REQUESTED_EPHEMERAL_BYTES,
    REQUESTED_GPUS,
    REQUESTED_MEMORY_BYTES,
    SCHEDULING,
    UNSCHEDULABLE,
)
from harness.model.units import format_bytes

_INSTANTS = 40
# Column of the nodes → the metric of requests; each pod takes one place besides.
EPHEMERAL = "ephemeral"
REQUESTS = {
    "cpu": REQUESTED_CPU_CORES, "memory": REQUESTED_MEMORY_BYTES, "gpu": REQUESTED_GPUS,
    EPHEMERAL: REQUESTED_EPHEMERAL_BYTES,
}  # fmt: skip
_USED = {"cpu": NODE_CPU_CORES, "memory": NODE_MEMORY_BYTES}
PLACES = "pods"
_FIXED = {"gpu", PLACES}
_NOUNS = {"cpu": "cores", "gpu": "GPUs", PLACES: "pods"}


@dataclass(frozen=True, slots=True)
class Lacking:
    """Means over the nodes that could take the waiting pods, and over instants at which pods waited.

    Attributes:
        shares: by resource ("cpu", "memory", "gpu", "ephemeral", "pods"): how often a node lacked it.
        fixed: how often a node lacked GPUs or places, which smaller requests don't bring.
        held: by resource: requested, as a share of what the nodes can allocate.
        used: "cpu" and "memory": used, as a share of the same; a resource whose use was not observed is missing.
        task: whose pods waited longest.
        too_large: resources of which it requests more than any node has, with both amounts.
    """

    shares: Mapping[str, float]
    fixed: float
    held: Mapping[str, float]
    used: Mapping[str, float]
    task: str
    too_large: Mapping[str, tuple[float, float]]

    @property
    def scarcest(self) -> str:
        """The resource that most nodes lacked; "" if they lacked none."""
        name = max(self.shares, key=lambda share: self.shares[share])
        return name if self.shares[name] > 0 else ""


@remembered
def lacking(timeline: Timeline) -> Lacking | None:
    """None where no pod waited, or the requests of pods were not observed."""
    waiting = timeline.stretches(UNSCHEDULABLE)
    if not len(waiting) or not _recorded(timeline)["cpu"][0]:
        return None
    begun = floats(waiting, "start_s")
    length = np.maximum(np.nan_to_num(floats(waiting, "end_s"), nan=timeline.end_s) - begun, 0.0)
    code = waiting["task"].cat.codes.to_numpy()
    task = str(waiting["task"].cat.categories[int(np.argmax(np.bincount(code, length)))])
    of_task = code == waiting["task"].cat.categories.get_loc(task)
    asked = {name: sizes[of_task] for name, sizes in _sizes(timeline, waiting).items()}
    nodes = _homes(timeline, task)
    at = _instants(begun[of_task], length[of_task])
    if not at.size or not len(nodes):
        return None
    ready, gone = floats(nodes, "ready_s")[:, None], np.nan_to_num(floats(nodes, "gone_s"), nan=np.inf)[:, None]
    there = (ready <= at) & (at < gone)
    need = {name: _longest(sizes, length[of_task]) for name, sizes in asked.items()} | {PLACES: 1.0}
    held = _held(timeline, nodes, at)
    room = {name: floats(nodes, name)[:, None] for name in held}
    counts = [name for name in held if need[name] > 0 and (name != EPHEMERAL or room[name].all())]
    lacks = {name: there & (room[name] - held[name] < need[name]) for name in counts}
    return Lacking(
        shares={name: _mean(each, there) for name, each in lacks.items()},
        fixed=_mean(np.logical_or.reduce([each for name, each in lacks.items() if name in _FIXED]), there),
        held={name: _share(held[name], room[name], there) for name in lacks},
        used={name: share for name in _USED if (share := _used(timeline, name, nodes, at)) is not None},
        task=task,
        too_large={
            name: (need[name], most)
            for name in REQUESTS
            if need[name] > (most := float(floats(timeline.nodes, name).max(initial=0.0))) > 0
        },
    )


def amount_of(resource: str, amount: float) -> str:
    """An amount of a resource in words: ``4 cores``, ``1.5 GiB of memory``, ``2 GPUs``, ``6 pods``."""
    if resource in {"memory", EPHEMERAL}:
        return f"{format_bytes(amount)} of {'memory' if resource == 'memory' else 'ephemeral storage'}"
    return f"{amount:g} {_NOUNS[resource]}"


def _homes(timeline: Timeline, task: str) -> pd.DataFrame:
    """The nodes of the pools on which pods of the task ran; of all runs' pods where none did."""
    pods, nodes = timeline.pods, timeline.nodes
    hosts = set(pods["node"][(pods["task"] == task).to_numpy(dtype=bool)]) - {""}
    pools = set(nodes["pool"][nodes["name"].isin(hosts)])
    return nodes[nodes["pool"].isin(pools)] if pools else timeline.run_nodes


def _instants(begun: Floats, length: Floats) -> Floats:
    """Evenly spread over the pods' waiting time: where more pods wait, more instants."""
    total = np.cumsum(length)
    if not total.size or total[-1] <= 0:
        return np.zeros(0)
    wanted = (np.arange(_INSTANTS) + 0.5) / _INSTANTS * total[-1]
    pod = np.searchsorted(total, wanted)
    return np.asarray(begun[pod] + wanted - (total[pod] - length[pod]), dtype=np.float64)


def _held(timeline: Timeline, nodes: pd.DataFrame, at: Floats) -> dict[str, Floats]:
    """By resource: requested on each node at each instant, shape (nodes, instants); others' pods count, too."""
    held = {name: np.zeros((len(nodes), at.size)) for name in (*REQUESTS, PLACES)}
    placed = ~timeline.of_runs(UNSCHEDULABLE, SCHEDULING)
    for pods in (timeline.pods[placed], timeline.others_pods):
        node = pd.Index(nodes["name"]).get_indexer(pd.Index(pods["node"].astype("str")))
        kept = node >= 0
        home, sizes = node[kept], _sizes(timeline, pods[kept])
        start, end = floats(pods, "start_s")[kept], np.nan_to_num(floats(pods, "end_s"), nan=timeline.end_s)[kept]
        for k, instant in enumerate(at.tolist()):
            now = (start <= instant) & (instant < end)
            for name, size in sizes.items():
                held[name][:, k] += np.bincount(home[now], size[now], len(nodes))
            held[PLACES][:, k] += np.bincount(home[now], minlength=len(nodes))
    return held


@remembered
def _recorded(timeline: Timeline) -> dict[str, tuple[dict[str, float], dict[str, float]]]:
    """By resource: the requests of tasks, and of the pods that differ."""
    return {
        name: (dict(requests_by(timeline, metric, "task")), dict(requests_by(timeline, metric, "pod")))
        for name, metric in REQUESTS.items()
    }


def _sizes(timeline: Timeline, pods: pd.DataFrame) -> dict[str, Floats]:
    """By resource: what the pod of each row requests, by its own record or by that of its task."""
    tasks, number = pods["task"].cat, pods["pod"].to_numpy()
    found = {}
    for name, (by_task, by_pod) in _recorded(timeline).items():
        sizes = np.array([*(by_task.get(str(task), 0.0) for task in tasks.categories), 0.0])[tasks.codes.to_numpy()]
        known = timeline.numbers_of(by_pod)
        if known.size:
            amounts = np.array([by_pod[str(pod)] for pod in timeline.names.take(known)])
            place = np.minimum(np.searchsorted(known, number), known.size - 1)
            sizes = np.where(known[place] == number, amounts[place], sizes)
        found[name] = sizes
    return found


def _longest(sizes: Floats, length: Floats) -> float:
    """The request for which pods waited longest."""
    amounts, place = np.unique(sizes, return_inverse=True)
    return float(amounts[int(np.argmax(np.bincount(place, length)))])


def _mean(values: Bools, there: Bools) -> float:
    return float((values & there).sum() / max(there.sum(), 1))


def _share(held: Floats, room: Floats, there: Bools) -> float:
    whole = float((room * there).sum())
    return float((held * there).sum()) / whole if whole > 0 else 0.0


def _used(timeline: Timeline, name: str, nodes: pd.DataFrame, at: Floats) -> float | None:
    """Use of a resource between the first and the last of these instants."""
    samples = timeline.labelled(_USED[name], "node")
    samples = samples[(samples["at_s"] >= at.min()) & (samples["at_s"] <= at.max())]
    room = nodes.set_index("name")[name].reindex(samples["node"]).to_numpy(dtype=np.float64, na_value=np.nan)
    share = floats(samples, "value") / room
    share = share[np.isfinite(share)]
    return float(share.mean()) if share.size else None
