"""What was recorded of spot nodes: losses, attempts, lost work, and the time and money that they cost."""

from dataclasses import dataclass
from math import isfinite

import numpy as np
import pandas as pd

from harness.analysis.capacity.autoscaling import TAKEN_BACK
from harness.analysis.cost.cost import node_hours
from harness.analysis.spot.attempts import attempts
from harness.analysis.stats.quantiles import Summary, summarize
from harness.analysis.timeline import Bools, Floats, Timeline, floats, remembered
from harness.analysis.waits.wasted_work import lost_pods, lost_with_node
from harness.model.phases import SUCCEEDED

ON_DEMAND = "on_demand"  # column of nodes: a machine's price per hour on demand; missing where no price was given
ENOUGH_LOSSES, ENOUGH_HOURS = 3, 20
_CONFIDENCE = 0.95
_DRAWS, _SEED = 2000, 17
_BURST_S, _ENOUGH = 300.0, 6  # of machines taken back


@dataclass(frozen=True, slots=True)
class Rate:
    """Losses of one machine per hour, with the 95 % interval of a Poisson count (Garwood, Biometrika 28, 1936)."""

    losses: int
    hours: float
    low: float
    high: float

    @property
    def value(self) -> float:
        """The estimate."""
        return self.losses / self.hours if self.hours else 0.0

    @property
    def is_known(self) -> bool:
        """Whether it is known well enough to advise on retries; otherwise its upper end is far above the estimate."""
        return self.losses >= ENOUGH_LOSSES or self.hours >= ENOUGH_HOURS


@dataclass(frozen=True, slots=True)
class TaskAttempts:
    """The pods of one task, on whatever nodes.

    Attributes:
        task: the step's name.
        pods: attempts that got a pod.
        lost: of these, those that were evicted, deleted or lost with their node.
        worked_s: seconds that they ran.
        lost_s: the part of it of lost pods.
    """

    task: str
    pods: int
    lost: int
    worked_s: float
    lost_s: float

    @property
    def attempts(self) -> float | None:
        """Pods for each one that was not lost; none if all were."""
        return self.pods / (self.pods - self.lost) if self.pods > self.lost else None


@dataclass(frozen=True, slots=True)
class Comparison:
    """What the spot nodes cost, against on-demand machines that do the same work and lose none of it.

    The share of lost work is that of these runs; the interval resamples them (bootstrap percentiles, 95 %).

    Attributes:
        spot: cost of the spot nodes.
        price_ratio: their price, as a share of that on demand.
        on_demand: cost of the node-hours without the share of lost work, at the price on demand.
        low, high: interval of `on_demand`.
    """

    spot: float
    price_ratio: float
    on_demand: float
    low: float
    high: float

    @property
    def saving(self) -> float:
        """What spot saved, as a share of the cost on demand."""
        return 1 - self.spot / self.on_demand if self.on_demand else 0.0

    @property
    def saving_interval(self) -> tuple[float, float]:
        """The interval of the saving."""
        low, high = (1 - self.spot / each if each else 0.0 for each in (self.low, self.high))
        return low, high


@dataclass(frozen=True, slots=True)
class Losses:
    """What evictions did to a test.

    Attributes:
        rate: of the spot machines; none without such machines.
        hit: runs that lost a pod.
        survived: of these, those that succeeded.
        abandoned: lost pods that no further attempt followed, of runs that are over.
        tasks: those with the most lost pods first, then by name.
        lost_node_hours: of the spot nodes' hours, the share of their pods' work that was lost.
        lost_money: the same of their cost; none when a price is unknown.
        added: seconds, of the runs that were hit and went on: from the start of lost attempts to that of the next ones.
        clustered: machines were taken back in bursts rather than one by one.
        comparison: none when a price is unknown.
    """

    rate: Rate | None
    hit: int
    survived: int
    abandoned: int
    tasks: tuple[TaskAttempts, ...]
    lost_node_hours: float
    lost_money: float | None
    added: Summary
    clustered: bool
    comparison: Comparison | None


@remembered
def losses(timeline: Timeline) -> Losses | None:
    """Sum up what was lost; none when no pod was and no spot machine was used."""
    nodes = timeline.run_nodes
    spot = nodes["spot"].to_numpy(dtype=bool)
    if not (spot.any() or lost_pods(timeline)[1].size) or not len(timeline.pods):
        return None
    pods = attempts(timeline)
    lost = pods["lost"].to_numpy(dtype=bool)
    hours = float(node_hours(timeline)[spot].sum())
    cost = float((node_hours(timeline) * floats(nodes, "price"))[spot].sum())
    on_spot = pods["spot"].to_numpy(dtype=bool)
    worked, gone = floats(pods, "worked_s"), floats(pods, "worked_s") * lost
    share = float(gone[on_spot].sum() / (worked[on_spot].sum() or 1.0))
    rows = np.unique(pods["row"].to_numpy()[lost])
    states = timeline.runs["state"].to_numpy()[rows]
    taken = _taken_at(timeline)
    return Losses(
        _rate(taken.size, hours) if spot.any() else None,
        rows.size,
        int(np.count_nonzero(states == SUCCEEDED)),
        _abandoned(timeline, pods),
        _by_task(pods),
        hours * share,
        cost * share if isfinite(cost) else None,
        summarize(_added(pods)),
        _is_clustered(taken),
        _comparison(timeline, pods[on_spot], cost),
    )


def _rate(count: int, hours: float) -> Rate:
    from scipy.special import gammaincinv

    tail = (1 - _CONFIDENCE) / 2
    low = float(gammaincinv(count, tail)) if count else 0.0
    high = float(gammaincinv(count + 1, 1 - tail))
    return Rate(count, hours, *((low / hours, high / hours) if hours else (0.0, np.inf)))


def _taken_at(timeline: Timeline) -> Floats:
    """When spot machines were taken back, ascending: as announced, or when they went under running pods."""
    nodes = timeline.run_nodes[timeline.run_nodes["spot"].to_numpy(dtype=bool)]
    events = timeline.events[timeline.events["reason"].isin(TAKEN_BACK)]
    announced = dict(zip(events["object"], floats(events, "at_s"), strict=True))
    under_pods = set(timeline.pods["node"].take(lost_with_node(timeline)))
    gone = dict(zip(nodes["name"], floats(nodes, "gone_s"), strict=True))
    found = [announced.get(name, gone[name]) for name in gone if name in announced or name in under_pods]
    return np.sort(np.array(found, dtype=np.float64))


def _is_clustered(taken: Floats) -> bool:
    """More machines follow each other within five minutes than in a Poisson process of this rate (one-sided, 5 %)."""
    from scipy.special import bdtrc

    if taken.size < _ENOUGH:
        return False
    gaps = np.diff(taken)
    expected = -float(np.expm1(-_BURST_S * gaps.size / max(float(gaps.sum()), 1e-9)))
    return bool(bdtrc(int((gaps < _BURST_S).sum()) - 1, gaps.size, expected) < 0.05)


def _by_task(pods: pd.DataFrame) -> tuple[TaskAttempts, ...]:
    found = [
        TaskAttempts(
            str(task), len(rows), int(rows["lost"].sum()), float(rows["worked_s"].sum()),
            float(rows["worked_s"][rows["lost"]].sum()),
        )
        for task, rows in pods.groupby("task", sort=True)
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda each: -each.lost))


def _added(pods: pd.DataFrame) -> Floats:
    """By run: the time in which a lost attempt or the wait for the next one went on, overlaps counted once."""
    went_on = pods[pods["lost"] & pods["next_s"].notna()]
    begun = went_on["started_s"].fillna(went_on["created_s"])
    lasted: dict[object, list[tuple[float, float]]] = {}
    for row, start, end in zip(went_on["row"].tolist(), begun.tolist(), went_on["next_s"].tolist(), strict=True):
        lasted.setdefault(row, []).append((start, end))
    return np.array([_union(sorted(stretches)) for stretches in lasted.values()], dtype=np.float64)


def _abandoned(timeline: Timeline, pods: pd.DataFrame) -> int:
    """Lost pods of runs that are over, after which their task got no other pod."""
    gone = pods[pods["lost"] & ~pods["followed"]]
    return int(np.count_nonzero(timeline.is_over[gone["row"].to_numpy()]))


def _union(stretches: list[tuple[float, float]]) -> float:
    total, until = 0.0, -np.inf
    for start, end in stretches:
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


def _comparison(timeline: Timeline, pods: pd.DataFrame, cost: float) -> Comparison | None:
    price = _on_demand(timeline)
    if not len(pods) or not isfinite(cost) or not np.isfinite(price).all():
        return None
    nodes = timeline.run_nodes
    spot = nodes["spot"].to_numpy(dtype=bool)
    whole = float((node_hours(timeline)[spot] * price).sum())
    by_run = pods.assign(lost_s=pods["worked_s"].where(pods["lost"], 0.0)).groupby("row")[["lost_s", "worked_s"]].sum()
    gone, worked = by_run["lost_s"].to_numpy(), by_run["worked_s"].to_numpy()
    drawn = np.random.default_rng(_SEED).integers(0, gone.size, (_DRAWS, gone.size))
    shares = gone[drawn].sum(axis=1) / np.maximum(worked[drawn].sum(axis=1), 1e-9)
    low, high = np.quantile(whole * (1 - shares), ((1 - _CONFIDENCE) / 2, (1 + _CONFIDENCE) / 2))
    ratio = cost / whole if whole else 1.0
    return Comparison(cost, ratio, whole * (1 - float(gone.sum() / max(worked.sum(), 1e-9))), float(low), float(high))


def _on_demand(timeline: Timeline) -> Floats:
    """By spot machine: its price on demand as given, else that of other machines of its size; NaN if unknown."""
    nodes = timeline.run_nodes
    spot: Bools = nodes["spot"].to_numpy(dtype=bool)
    given = floats(nodes, ON_DEMAND)[spot] if ON_DEMAND in nodes else np.full(int(spot.sum()), np.nan)
    others = timeline.machines[~timeline.machines["spot"].to_numpy(dtype=bool)]
    size = {
        (cpu, memory, gpu): price
        for cpu, memory, gpu, price in zip(*(floats(others, n) for n in ("cpu", "memory", "gpu", "price")), strict=True)
    }
    wanted = zip(*(floats(nodes, name)[spot] for name in ("cpu", "memory", "gpu")), strict=True)
    same = [size.get(key, np.nan) for key in wanted]
    return np.where(np.isfinite(given), given, np.array(same, dtype=np.float64))
