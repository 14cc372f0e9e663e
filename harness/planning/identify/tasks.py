"""What happens to the pods of each task, as it was measured: pulls, starts, work, ends."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import pandas as pd

from harness.analysis.cost.requested import requests_by
from harness.analysis.timeline import Timeline, floats
from harness.model.argo.nodes import DRIVER_SUFFIX
from harness.model.phases import (
    POD_CPU_CORES,
    POD_PHASES,
    POD_PRIORITY,
    PULLING,
    REQUESTED_CPU_CORES,
    REQUESTED_MEMORY_BYTES,
    RUNNING,
    SCHEDULING,
    STARTING,
    STORING,
    UNSCHEDULABLE,
    UPLOAD_SECONDS,
)
from harness.planning.identify.setting import Setting, measured_amount
from harness.simulator.engine.distributions import fixed
from harness.simulator.profile import Measured, Profile, Step

_FEW = 5  # pods whose logs were read: fewer don't represent a task
# Of a pod's time in its main container: where an upload takes more, only pods whose logs were read show the work.
_MIN_SHARE_OF_STORING = 0.2
_FAILED = ("Error", "OOMKilled")  # reasons of ends after which a step has failed
_REQUESTS = {"requests_cpu": REQUESTED_CPU_CORES, "requests_memory": REQUESTED_MEMORY_BYTES}
_QUEUE_S = 0.1  # mean time to schedule a pod: the model's own queue explains less
_BUSY = 0.95  # quantile of the cores in use: what a pod uses where nothing limits it


def with_tasks_of(
    profile: Profile, timeline: Timeline, images: Mapping[str, Sequence[str]], reads: Mapping[str, Sequence[str]]
) -> tuple[Profile, Sequence[Setting]]:
    """The profile with the durations of the recorded pods, and the pulls of the recorded nodes.

    Args:
        profile: what is not seen is its own.
        timeline: of the recorded test.
        images: of each task's pods.
        reads: by task, the tasks whose outputs it reads.
    """
    pods, cores = _pods(timeline), _cores(timeline)
    requested = {name: dict(requests_by(timeline, metric, "task")) for name, metric in _REQUESTS.items()}
    logged = pods.groupby("task")["uploaded"]
    stored = {str(task): float(mean) for task, mean in logged.mean()[logged.count() >= _FEW].items()}
    typical = float(pods["uploaded"][pods["task"].isin(stored)].mean())
    settings: list[Setting] = []
    measured, steps = {}, []
    for task, mine in pods.groupby("task", sort=True):
        name = str(task)
        usual = next((step for step in profile.steps if fnmatchcase(name, step.match)), Step())
        late, starts, ran, stores, own = (
            mine[each].to_numpy() for each in (SCHEDULING, STARTING, RUNNING, STORING, "uploaded")
        )
        known = np.isfinite(own)
        # An upload is part of running where no log shows it, and of storing otherwise; inputs are always read in it.
        uploads = np.where(known, own, stored[name]) if name in stored else np.zeros(ran.size)
        if stored.get(name, 0.0) > _MIN_SHARE_OF_STORING * ran.mean():
            ran, uploads = (np.resize(each[known], ran.size) for each in (ran, uploads))
        else:
            ran = np.where(known, ran, ran - uploads)
        ran = np.maximum(ran - sum(stored.get(each, 0.0) for each in reads.get(name, ())), 0.0)
        ends = stores - np.nan_to_num(own) - profile.store.request_s
        # Of pods that no node had room for, it is part of that wait.
        late = np.where(mine[UNSCHEDULABLE].to_numpy() > 0, 0.0, late)
        late = late if late.mean() >= _QUEUE_S else np.zeros(late.size)
        # A typical upload is as large as usual: the store's bandwidth is fitted to that.
        sizes = uploads * usual.output.distribution.mean / typical if typical > 0 else uploads
        measured[name] = Measured(*(tuple(np.maximum(each, 0.0).tolist()) for each in (late, starts, ran, ends, sizes)))
        settings.append(Setting(f"step.{name}.duration", measured_amount(ran), "running pods", ran.size))
        if not name.endswith(DRIVER_SUFFIX):
            fails = float(mine["failed"].mean())
            cpu = fixed(cores[name]) if name in cores else usual.cpu
            asked: dict[str, Any] = {key: found[name] for key, found in requested.items() if name in found}
            steps.append(replace(usual, match=name, failing=fails, cpu=cpu, **asked))
            if fails:
                settings.append(Setting(f"step.{name}.failing", f"{fails:.0%}", "ends of pods", ran.size))
    pulled, pulls = _with_pulls(profile, timeline, images)
    model, ranks = _with_priorities(replace(pulled, measured=measured, steps=(*steps, *profile.steps)), timeline)
    return model, (*settings, *pulls, *ranks)


def _with_priorities(profile: Profile, timeline: Timeline) -> tuple[Profile, Sequence[Setting]]:
    """Priorities of the tenants' pods; of the steps' where a tenant has several, or there are no tenants."""
    by_task, by_pod = (dict(requests_by(timeline, POD_PRIORITY, label)) for label in ("task", "pod"))
    if not any((*by_task.values(), *by_pod.values())):
        return profile, ()
    pods = timeline.pods.drop_duplicates("pod")
    pods = pods[pods["row"] >= 0]
    names = pd.Series(timeline.names.take(pods["pod"].to_numpy()).to_numpy(dtype=object), pods.index)
    value = names.map(by_pod).fillna(pods["task"].astype(str).map(by_task)).fillna(0.0)
    of_tenant = value.groupby(timeline.runs["tenant"].to_numpy()[pods["row"]])
    if profile.tenants and (of_tenant.nunique() == 1).all():
        found = {str(tenant): int(each.iloc[0]) for tenant, each in of_tenant}
        tenants = tuple(replace(t, priority=found.get(t.namespace, t.priority)) for t in profile.tenants)
        model, kind = replace(profile, tenants=tenants), "tenant"
    else:
        found = {str(task): int(each.mode()[0]) for task, each in value.groupby(pods["task"].astype(str))}
        classes = {f"recorded-{each}": each for each in found.values()}
        steps = (
            replace(s, priority_class=f"recorded-{found[s.match]}") if s.match in found else s for s in profile.steps
        )
        known = {**profile.priority_classes, **classes}
        model, kind = replace(profile, steps=tuple(steps), priority_classes=known), "step"
    return model, [Setting(f"{kind}.{name}.priority", each, "pods' specifications") for name, each in found.items()]


def _pods(timeline: Timeline) -> pd.DataFrame:
    """One row per ended pod, in the order of creation: task, seconds in each phase and of uploads, if logged."""
    pods = timeline.pods[["pod", "task", "phase", "start_s", "end_s"]]
    lengths = (pods["end_s"] - pods["start_s"]).groupby([pods["pod"], pods["phase"]]).sum(min_count=1).unstack()
    lengths = lengths.reindex(columns=range(len(POD_PHASES))).set_axis(POD_PHASES, axis=1)
    whole = lengths[lengths[RUNNING].notna()].fillna(0.0)
    about = pods.groupby("pod").agg(task=("task", "first"), begun=("start_s", "min")).loc[whole.index]
    frame = whole.assign(
        task=about["task"].astype(str), begun=about["begun"], uploaded=_uploaded(timeline).reindex(whole.index),
        failed=whole.index.isin(timeline.numbers_of(timeline.events_of("Pod", *_FAILED)["object"])),
    )  # fmt: skip
    return frame[frame["task"] != ""].sort_values("begun", kind="stable")


def _uploaded(timeline: Timeline) -> "pd.Series[float]":
    """By pod, the seconds that its uploads took."""
    took = timeline.labelled(UPLOAD_SECONDS, "pod").groupby("pod")["value"].sum()
    frame = timeline.pods_called(map(str, took.index)).drop_duplicates("step")
    return frame.set_index("pod")["step"].astype(str).map(took).astype(float)


def _cores(timeline: Timeline) -> dict[str, float]:
    """By task, the cores that a pod uses where nothing limits it."""
    samples = timeline.labelled(POD_CPU_CORES, "pod")
    frame = timeline.pods_called(samples["pod"]).drop_duplicates("step")
    task_of = dict(zip(frame["step"].astype(str), frame["task"].astype(str), strict=True))
    by_task = samples["value"].groupby(samples["pod"].map(task_of))
    return {str(task): float(np.quantile(own, _BUSY)) for task, own in by_task if len(own) >= _FEW}


def _with_pulls(
    profile: Profile, timeline: Timeline, images: Mapping[str, Sequence[str]]
) -> tuple[Profile, Sequence[Setting]]:
    """How long each image took: a node pulls one after the other, each for the first pod that needs it.

    So the pulls of a node in the order in which they ended, each since the one before it, are those of single images.
    """
    stretches = timeline.stretches(PULLING)
    stretches = stretches[np.isfinite(floats(stretches, "end_s"))]
    first_on: dict[tuple[str, str], tuple[float, float]] = {}  # by node and task: begin and end of the first pull
    rows = zip(stretches["node"].astype(str), stretches["task"].astype(str), stretches["start_s"], stretches["end_s"],
               strict=True)  # fmt: skip
    for node, task, start, end in rows:
        was = first_on.get((node, task), (np.inf, np.inf))
        first_on[node, task] = min(was[0], start), min(was[1], end)
    took: defaultdict[str, list[float]] = defaultdict(list)
    by_node: defaultdict[str, list[tuple[float, float, str]]] = defaultdict(list)
    for (node, task), (start, end) in first_on.items():
        by_node[node].append((end, start, task))
    for node_pulls in by_node.values():
        here: set[str] = set()
        free = -np.inf
        for end, start, task in sorted(node_pulls):
            new = [image for image in images.get(task, ()) if image not in here]
            here.update(new)
            for image in new:
                took[image].append(max(0.0, end - max(start, free)) / len(new))
            free = end
    kubelet = profile.kubelet
    means = {image: float(np.mean(each)) for image, each in took.items()}
    overhead = min([kubelet.pull_overhead_s, *means.values()])
    sizes = {image: (seconds - overhead) * kubelet.pull_bytes_per_s for image, seconds in means.items()}
    present = _present(timeline, {node for node, _ in first_on})
    model = replace(kubelet, pull_overhead_s=overhead, images={**kubelet.images, **sizes}, present=present)
    images_took = sorted(means.items())
    settings = [
        Setting(f"image.{name}", f"{mean:.3g} s", "pulls of nodes", len(took[name])) for name, mean in images_took
    ]
    settings.append(Setting("kubelet.present", f"{present:.0%}", "nodes of the start that pulled nothing"))
    return replace(profile, kubelet=model), settings


def _present(timeline: Timeline, pulling: set[str]) -> float:
    """The share of the nodes of the start, with pods of runs, that pulled no image."""
    nodes = timeline.machines
    here = set(nodes["name"][(floats(nodes, "created_s") <= 0.0)].astype(str))
    used = here & set(timeline.pods["node"].astype(str).unique())
    return len(used - pulling) / len(used) if used else 0.0
