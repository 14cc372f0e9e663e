"""The nodes' cost by pipeline, tenant and step, of other workloads, and idle; the parts add up to the bill.

A pod holds the share of its node that it requests of its scarcest resource, or uses of its CPU where that is more, from
its scheduling to its end (dominant share: Ghodsi and others 2011; "max of request and usage": the OpenCost
specification). What pods hold together beyond a whole node is scaled down; what is not requested is idle. Where an
OpenCost was asked, its costs of the whole cluster count instead.
"""

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd

from harness.analysis.cost.cost import node_hours
from harness.analysis.cost.requested import dominant_shares, requests_by
from harness.analysis.timeline import Floats, Ints, Timeline, floats, remembered
from harness.model.phases import POD_COST, POD_CPU_CORES, REQUESTED_CPU_CORES, SCHEDULING, UNSCHEDULABLE

IDLE, OTHERS = "idle", "other workloads"
_LAST = {OTHERS: 1, IDLE: 2}
_COLUMNS = ["node", "hours", "pipeline", "tenant", "step"]
_SUFFIX = re.compile(r"-(?:[bcdfghjklmnpqrstvwxz2456789]{5}|\d+)$")  # that Kubernetes generates, or a counter
_OF_KFP = "-system-"  # after the workflow in a pod's name


@dataclass(frozen=True, slots=True)
class Part:
    """Node-hours of one pipeline's step for one tenant ("" where there are none), and their cost; None without prices.

    `pipeline` is `IDLE` or `OTHERS` for what no run holds. OpenCost's costs have no node-hours.
    """

    pipeline: str
    tenant: str
    step: str
    hours: float | None
    cost: float | None

    @property
    def size(self) -> float:
        """Node-hours, or the cost without these."""
        return self.hours if self.hours is not None else self.cost or 0.0


@remembered
def allocated(timeline: Timeline) -> tuple[Part, ...]:
    """The parts, the dearest first, others and idle last; their hours and costs add up to those of `cost`.

    Those of an OpenCost add up to what the whole cluster cost.
    """
    nodes, costs = timeline.run_nodes, timeline.labelled(POD_COST, "pod", "idle")
    if len(costs):
        return _by_opencost(timeline, costs)
    if not len(nodes) or not len(timeline.pods):
        return ()
    hours, price = node_hours(timeline), floats(nodes, "price")
    held = pd.concat([_of_runs(timeline), _of_others(timeline)], ignore_index=True)
    held = held[held["node"] >= 0]
    node, own = held["node"].to_numpy(), held["hours"].to_numpy()
    sums = np.bincount(node, weights=own, minlength=hours.size)
    own = own * np.divide(hours, sums, out=np.ones(sums.size), where=sums > hours)[node]
    known, rest = bool(np.isfinite(price).all()), np.maximum(hours - sums, 0.0)
    groups = held.assign(hours=own, cost=own * price[node]).groupby(["pipeline", "tenant", "step"])
    frame = groups[["hours", "cost"]].sum().reset_index()
    parts = [
        Part(str(pipeline), str(tenant), str(step), float(held_hours), float(paid) if known else None)
        for pipeline, tenant, step, held_hours, paid in frame.to_numpy().tolist()
    ]
    parts.append(Part(IDLE, "", "", float(rest.sum()), float((rest * price).sum()) if known else None))
    return _in_order(parts)


def _by_opencost(timeline: Timeline, costs: pd.DataFrame) -> tuple[Part, ...]:
    names = costs["pod"].reset_index(drop=True)
    pods = timeline.pods_called(names).drop_duplicates("step")
    who = _whose(timeline, pods, pods["row"].to_numpy()).assign(step=pods["task"].astype("str").to_numpy())
    parts = who.set_axis(pods["step"]).reindex(names).reset_index(drop=True).fillna("")
    parts["pipeline"] = np.select([parts["pipeline"] != "", costs["idle"] != ""], [parts["pipeline"], IDLE], OTHERS)
    sums = parts.assign(cost=floats(costs, "value")).groupby(["pipeline", "tenant", "step"])["cost"].sum().reset_index()
    found = [
        Part(str(pipeline), str(tenant), str(step), None, float(cost))
        for pipeline, tenant, step, cost in sums.to_numpy().tolist()
    ]
    return _in_order(found)


def _in_order(parts: list[Part]) -> tuple[Part, ...]:
    return tuple(sorted(parts, key=lambda part: (_LAST.get(part.pipeline, 0), -part.size)))


def _of_runs(timeline: Timeline) -> pd.DataFrame:
    """What the runs' pods of each run, step and node hold of it, in hours."""
    placed = ~timeline.of_runs(UNSCHEDULABLE, SCHEDULING) & ~timeline.reported & ~timeline.on_virtual
    pods = timeline.pods[placed]
    tasks = pods["task"].cat
    share = np.minimum(np.maximum(dominant_shares(timeline), _used(timeline)), 1.0)
    frame = pd.DataFrame({
        "node": _on_nodes(timeline, pods), "row": pods["row"].to_numpy(), "task": tasks.codes.to_numpy(),
        "hours": share[tasks.codes.to_numpy()] * _hours(timeline, pods),
    })  # fmt: skip
    sums = frame.groupby(["row", "task", "node"], as_index=False)["hours"].sum()
    whose = _whose(timeline, pods, sums["row"].to_numpy())
    found = pd.concat([sums, whose], axis=1).assign(step=tasks.categories.astype("str").take(sums["task"]))
    return found[_COLUMNS]


def _whose(timeline: Timeline, pods: pd.DataFrame, row: Ints) -> pd.DataFrame:
    """Pipeline and tenant of these rows of `Timeline.runs`, which have some of these pods."""
    rows, first = np.unique(pods["row"].to_numpy(), return_index=True)
    names = timeline.names.take(pods["pod"].to_numpy()[first])
    runs = timeline.runs["run"].take(rows)
    pipelines = pd.Series([_pipeline(str(name), str(run)) for name, run in zip(names, runs, strict=True)], index=rows)
    tenants = timeline.runs["tenant"].astype("str").take(row).to_numpy()
    return pd.DataFrame({"pipeline": pipelines.reindex(row).to_numpy(), "tenant": tenants})


def _of_others(timeline: Timeline) -> pd.DataFrame:
    """The same of other workloads' pods, by their requests of cores."""
    pods, size = timeline.others_pods, np.append(floats(timeline.run_nodes, "cpu"), np.inf)  # the last is no node
    by_task, node = dict(requests_by(timeline, REQUESTED_CPU_CORES, "task")), _on_nodes(timeline, pods)
    cores = np.array([by_task.get(str(name), 0.0) for name in pods["task"].cat.categories] or [0.0])
    share = np.minimum(cores[pods["task"].cat.codes.to_numpy()] / size[node], 1.0)
    hours = share * _hours(timeline, pods)
    return pd.DataFrame({"node": node, "hours": hours, "pipeline": OTHERS, "tenant": "", "step": ""})[_COLUMNS]


def _on_nodes(timeline: Timeline, pods: pd.DataFrame) -> Ints:
    """By row: the position of its node in `Timeline.run_nodes`; -1 for none."""
    homes = pods["node"].cat
    place = pd.Index(timeline.run_nodes["name"]).get_indexer(homes.categories.astype("str"))
    return np.append(place, -1)[homes.codes.to_numpy()]


def _hours(timeline: Timeline, pods: pd.DataFrame) -> Floats:
    """Of intervals, within the test."""
    start = np.clip(floats(pods, "start_s"), 0.0, timeline.end_s)
    end = np.clip(np.nan_to_num(floats(pods, "end_s"), nan=timeline.end_s), 0.0, timeline.end_s)
    return np.maximum(end - start, 0.0) / 3600


def _used(timeline: Timeline) -> Floats:
    """Per category of the pods' tasks: the mean share of a node's cores that its pods were measured to use."""
    tasks, size = timeline.pods["task"].cat, floats(timeline.run_nodes, "cpu")
    samples = timeline.labelled(POD_CPU_CORES, "pod")
    shares = np.zeros(len(tasks.categories))
    if not len(samples) or not (size > 0).any():
        return shares
    pods = samples["pod"]
    rows = np.flatnonzero(np.isin(timeline.pods["pod"].to_numpy(), timeline.numbers_of(set(pods))))
    names = timeline.names.take(timeline.pods["pod"].to_numpy()[rows])
    codes = pods.map(dict(zip(names, tasks.codes.to_numpy()[rows], strict=True)))
    means = samples["value"].groupby(codes.to_numpy()).mean()
    shares[means.index.to_numpy(dtype=np.int64)] = means.to_numpy() / float(np.median(size[size > 0]))
    return shares


def _pipeline(pod: str, run: str) -> str:
    """The pipeline in a workflow's name: KFP and ``generateName`` add five characters, others a number."""
    workflow, of_kfp, _ = pod.partition(_OF_KFP)
    return _SUFFIX.sub("", workflow if of_kfp else run)
