"""The nodes of a recorded test as pools, and the autoscaler that added to them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from harness.analysis.capacity.autoscaling import (
    NOT_TRIGGERED_SCALE_UP,
    TRIGGERED_SCALE_UP,
    provisioning_times,
    scale_ups,
)
from harness.analysis.timeline import Floats, Timeline, floats
from harness.model.phases import UNSCHEDULABLE
from harness.planning.identify.recorded import on_nodes
from harness.planning.identify.setting import Setting, measured_amount
from harness.simulator.cluster import Shape
from harness.simulator.profile import Autoscaler, Pool, Profile, Taint

_SAME_S = 1.0  # decisions no further apart may be one: events have whole seconds
_SURE = 3.0  # standard errors
_HERE_S = 1.0  # nodes that were created before then were there at the start


def with_nodes_of(
    profile: Profile, timeline: Timeline, shapes: Mapping[str, Shape]
) -> tuple[Profile, Sequence[Setting]]:
    """The profile with the pools that the runs' pods were on, as large as they were.

    Args:
        profile: what is not seen is that of its pool of the same name, or else of its first one.
        timeline: of the recorded test.
        shapes: what each task requests and selects.
    """
    machines = timeline.machines
    if not len(machines):
        return profile, ()
    homes = timeline.pods[["task", "node"]].astype(str).drop_duplicates()
    pool_of = dict(zip(machines["name"].astype(str), machines["pool"].astype(str), strict=True))
    tasks: dict[str, set[str]] = {}
    for task, node in zip(homes["task"], homes["node"], strict=True):
        if node in pool_of:
            tasks.setdefault(pool_of[node], set()).add(task)
    known = {pool.name: pool for pool in profile.pools}
    names = [name for name in dict.fromkeys(pool_of.values()) if name in tasks] or list(dict.fromkeys(pool_of.values()))
    pools, settings = [], []
    grown = bool(scale_ups(timeline)) or bool((floats(machines, "created_s") > _HERE_S).any())
    for name in names:
        mine = machines[(machines["pool"].astype(str) == name).to_numpy()]
        usual = known.get(name, replace(profile.pools[0], price=None, taints=(), labels={}, spot=False))
        asked = [shapes[task] for task in tasks.get(name, ()) if task in shapes]
        pool, most_from = _pool(name, mine, timeline, usual, asked, grown=grown)
        pools.append(pool)
        settings.append(Setting(f"pool.{name}.nodes", f"{pool.initial}", "nodes observed"))
        if grown:
            settings.append(Setting(f"pool.{name}.max", f"{pool.max}", most_from))
    scaler = None
    if grown:
        scaler, scans = _with_scans(profile.autoscaler or Autoscaler(), timeline)
        settings += scans
        times = provisioning_times(timeline)
        if times.size:
            amount = measured_amount(times)
            scaler = replace(scaler, provisioning=amount, failing=0.0)
            settings.append(Setting("autoscaler.provisioning", amount, "scale-ups and the nodes that came", times.size))
    packing = _packing(timeline, shapes, {pool.name: 1000 * pool.cpu for pool in pools})
    if packing is not None:
        profile = replace(profile, scheduler=replace(profile.scheduler, packing=packing))
        settings.append(Setting("scheduler.packing", str(packing).lower(), "nodes that pods were put on"))
    return replace(profile, pools=tuple(pools), autoscaler=scaler), settings


def _with_scans(scaler: Autoscaler, timeline: Timeline) -> tuple[Autoscaler, Sequence[Setting]]:
    """It decides in scans: so one was at its first decision, and they are no further apart than two decisions were."""
    at = np.unique([decision.at_s for decision in scale_ups(timeline)])
    if not at.size:
        return scaler, ()
    apart = np.diff(at)
    scan_s = float(min(scaler.scan_s, apart[apart > _SAME_S].min(initial=np.inf)))
    events = timeline.events
    stamped = (events["source"][events["reason"] == TRIGGERED_SCALE_UP] == "kubernetes").all()
    first = float(at[0]) + (_SAME_S / 2 if stamped else 0.0)  # somewhere in that second
    found = replace(scaler, scan_s=scan_s, first_scan_s=first % scan_s)
    return found, [Setting("autoscaler.scan_s", f"at most {scan_s:.3g} s", "the autoscaler's decisions", at.size)]


def _packing(timeline: Timeline, shapes: Mapping[str, Shape], room: Mapping[str, float]) -> bool | None:
    """Whether pods went to a pool's fuller nodes, not to emptier ones with room; none where that is not clear."""
    placed = on_nodes(timeline)
    home = placed["node"].to_numpy()
    asked = np.array([shapes[task].cpu if task in shapes else 0.0 for task in placed["task"].astype(str)])
    begun, ended = floats(placed, "start_s"), floats(placed, "end_s")
    signs = np.zeros(0)
    for pool, machines in timeline.machines.groupby(timeline.machines["pool"].astype(str)):
        names = machines["name"].astype(str).to_numpy()
        mine = np.isin(home, names)
        at, more = begun[mine], asked[mine]
        used = np.array([_used(at, begun[home == name], ended[home == name], asked[home == name]) for name in names])
        here = (floats(machines, "ready_s")[:, None] <= at) & (used + more <= room.get(str(pool), 0.0))
        own = (used * (names[:, None] == home[mine])).sum(axis=0)
        signs = np.append(signs, np.sign(own - (used * here).sum(axis=0) / np.maximum(here.sum(axis=0), 1)))
    apart = float(signs.sum())
    return apart > 0 if abs(apart) > _SURE * np.sqrt(np.count_nonzero(signs)) else None


def _used(at: Floats, begun: Floats, ended: Floats, asked: Floats) -> Floats:
    """What a node's pods request just before each instant."""
    by_begin, by_end = np.argsort(begun), np.argsort(ended)
    came, left = (np.append(0.0, np.cumsum(asked[order])) for order in (by_begin, by_end))
    return np.asarray(came[np.searchsorted(begun[by_begin], at)] - left[np.searchsorted(ended[by_end], at)])


def _pool(
    name: str, mine: pd.DataFrame, timeline: Timeline, usual: Pool, asked: Sequence[Shape], *, grown: bool
) -> tuple[Pool, str]:
    created = floats(mine, "created_s")
    here = int(np.count_nonzero(~(created > _HERE_S)))
    most, most_from = _most(name, timeline, created, usual, grown=grown)
    first = mine.iloc[0]
    price = floats(mine, "price")
    labels = {key: value for shape in asked for key, value in shape.selector}
    tolerated = [t for shape in asked for t in shape.tolerations if t.effect in {"NoSchedule", "NoExecute"}]
    # A taint that some pods tolerate, on nodes where only such pods were.
    apart = bool(asked) and all(shape.tolerations for shape in asked)
    taints = (Taint(tolerated[0].key, tolerated[0].value, tolerated[0].effect),) if apart and tolerated else ()
    return replace(
        usual, name=name, cpu=float(first["cpu"]), memory=float(first["memory"]), reserved_cpu=0.0, reserved_memory=0.0,
        gpu=int(first["gpu"]), pods=max(1, int(first["pods"])), initial=here, min=here, max=max(here, most),
        spot=bool(first["spot"]), evictions_per_hour=0.0,
        price=float(price[0]) if np.isfinite(price).all() else usual.price,
        labels={**usual.labels, **labels}, taints=usual.taints or taints,
        instance_type=str(first["machine"]) or usual.instance_type,
    ), most_from  # fmt: skip


def _most(name: str, timeline: Timeline, created: Floats, usual: Pool, *, grown: bool) -> tuple[int, str]:
    """How many nodes the pool may have, and where that was read."""
    limits = [scale_up.limit for scale_up in scale_ups(timeline) if scale_up.group == name]
    if limits:
        return limits[-1], "the autoscaler's decisions"
    if not grown:
        return created.size, "nodes observed"
    lacked = timeline.of_runs(UNSCHEDULABLE).any()
    refused = (timeline.events["reason"] == NOT_TRIGGERED_SCALE_UP).any()
    if lacked and refused:
        return created.size, "the autoscaler added no more"
    return max(created.size, usual.max), "not reached"
