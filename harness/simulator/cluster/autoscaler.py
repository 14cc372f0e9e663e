"""cluster-autoscaler: scans at intervals, adds nodes for unschedulable pods, removes idle nodes."""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, floor
from random import Random

from harness.simulator.cluster.listener import Change, ClusterListener
from harness.simulator.cluster.objects import Node, Pod
from harness.simulator.cluster.scheduler import Scheduler
from harness.simulator.cluster.shapes import Shape, admits, allocatable, labels_of, taints_of
from harness.simulator.engine.events import EventLoop
from harness.simulator.profile import Autoscaler as Settings
from harness.simulator.profile import Pool

# How long a pool is left alone after a refusal: the initial and the maximal --node-group-backoff-duration.
_REFUSED_S, _MOST_REFUSED_S = 300.0, 1800.0
_ROUNDING = 1e-9  # of a scan's number
REGISTERED = 0.85  # share of the provisioning time after which the node registers, still NotReady


@dataclass(frozen=True, slots=True)
class ScaleUp:
    """One option: `count` more nodes of `pool` make room for `pods`."""

    pool: Pool
    count: int
    pods: tuple[Pod, ...]
    waste: float  # share of the new nodes that would stay unused


class Autoscaler:
    """Scales the pools within their bounds."""

    def __init__(
        self,
        loop: EventLoop,
        settings: Settings,
        pools: tuple[Pool, ...],
        random: Random,
        *,
        scheduler: Scheduler,
        nodes: Callable[[Pool], list[Node]],
        add_node: Callable[[Pool, float], None],
        remove_node: Callable[[Node], None],
        listener: ClusterListener,
        has_machine: Callable[[Pool], bool],
    ) -> None:
        self._loop = loop
        self.settings = settings
        self.pools = pools
        self._random = random
        self._scheduler = scheduler
        self._nodes = nodes  # the current ones of a pool
        self._add_node = add_node  # registers a machine that becomes ready after so many seconds
        self._remove_node = remove_node  # takes a machine away, with the pods on it
        self._listener = listener
        self._has_machine = has_machine  # whether the cloud would start one more
        self._refused: dict[str, tuple[float, float]] = {}  # by pool: until when it is left alone, and for how long
        self._armed = False
        self._last_added = float("-inf")
        self.upcoming: dict[str, int] = {pool.name: 0 for pool in pools}
        self.most: dict[str, int] = {pool.name: pool.max for pool in pools}
        self.slowdown = 1.0  # of provisioning

    def look(self) -> None:
        """Schedule a scan at the next tick of the interval, after a change.

        Without changes there are no scans, so that an idle simulation ends.
        """
        if not self._armed:
            self._armed = True
            first, interval = self.settings.first_scan_s, self.settings.scan_s
            done = floor((self._loop.now - first) / interval + _ROUNDING)
            self._loop.at(first + (done + 1) * interval, self._scan)

    def _scan(self) -> None:
        self._armed = False
        blocked = [(shape, pods) for shape, pods in self._scheduler.blocked()]
        if blocked:
            self._scale_up(blocked)
        leftover = self._scale_down()
        if blocked or leftover or self._scheduler.about_to_try:
            self.look()

    # --- up -----------------------------------------------------------------------------------------------------

    def _scale_up(self, blocked: list[tuple[Shape, list[Pod]]]) -> None:
        unserved = self._without_upcoming(blocked)
        options = [option for pool in self.pools if (option := self._option(pool, unserved)) is not None]
        helped: set[str] = set()
        if options:
            best = self._choose(options)
            self._add(best)
            helped = {pod.name for pod in best.pods}
        for _, pods in unserved:
            for pod in pods:
                if pod.name not in helped and not pod.scale_up:
                    pod.scale_up = "-"
                    self._listener.pod_changed(pod, Change.NO_SCALE_UP, self._why_not(pod.shape))

    def _without_upcoming(self, blocked: list[tuple[Shape, list[Pod]]]) -> list[tuple[Shape, list[Pod]]]:
        """The pods that will not fit on the upcoming nodes."""
        for pool in self.pools:
            unready = sum(not node.equipped for node in self._nodes(pool))
            coming = self.upcoming[pool.name] + unready
            if coming:
                served, _ = _pack(pool, blocked, coming)
                names = {pod.name for pod in served}
                blocked = [(shape, [pod for pod in pods if pod.name not in names]) for shape, pods in blocked]
        return [(shape, pods) for shape, pods in blocked if pods]

    def _size(self, pool: Pool) -> int:
        return len(self._nodes(pool)) + self.upcoming[pool.name]

    def _option(self, pool: Pool, pods: list[tuple[Shape, list[Pod]]]) -> ScaleUp | None:
        room = self.most[pool.name] - self._size(pool)
        if room <= 0 or self._loop.now < self._refused.get(pool.name, (0.0, 0.0))[0]:
            return None
        served, nodes = _pack(pool, pods, room)
        if not served:
            return None
        cpu, memory, _ = allocatable(pool)
        used_cpu = sum(pod.shape.cpu for pod in served) / (nodes * cpu or 1)
        used_memory = sum(pod.shape.memory for pod in served) / (nodes * memory or 1)
        return ScaleUp(pool, nodes, tuple(served), (2 - used_cpu - used_memory) / 2)

    def _choose(self, options: list[ScaleUp]) -> ScaleUp:
        match self.settings.expander:
            case "random":
                return self._random.choice(options)
            case "price":
                return min(options, key=lambda option: (option.pool.price or 0.0) * option.count / len(option.pods))
            case _:
                return min(options, key=lambda option: option.waste)

    def _add(self, scale_up: ScaleUp) -> None:
        pool, before = scale_up.pool, self._size(scale_up.pool)
        self.upcoming[pool.name] += scale_up.count
        self._last_added = self._loop.now
        change = f"{pool.name} {before}->{before + scale_up.count} (max: {self.most[pool.name]})"
        detail = f"pod triggered scale-up: [{{{change}}}]"
        for pod in scale_up.pods:
            pod.scale_up = detail
            self._listener.pod_changed(pod, Change.SCALE_UP, detail)
        for _ in range(scale_up.count):
            takes = self.settings.provisioning.sample(self._random, {}) * self.slowdown
            if self._random.random() < self.settings.failing:
                self._loop.after(takes, self._failed, pool)
            elif not self._has_machine(pool):
                self._loop.after(takes, self._out_of_machines, pool)
            else:
                self._loop.after(takes * REGISTERED, self._arrived, pool, takes * (1 - REGISTERED))

    def _arrived(self, pool: Pool, ready_in_s: float) -> None:
        self._add_node(pool, ready_in_s)
        self.upcoming[pool.name] -= 1
        self._refused.pop(pool.name, None)

    def _out_of_machines(self, pool: Pool) -> None:
        """The cloud had no machine: other pools come first for a while, longer each time."""
        until, wait_s = self._refused.get(pool.name, (0.0, 0.0))
        if self._loop.now >= until:  # several machines requested together are refused together
            wait_s = min(2 * wait_s, _MOST_REFUSED_S) or _REFUSED_S
            self._refused[pool.name] = self._loop.now + wait_s, wait_s
        self._failed(pool)

    def _failed(self, pool: Pool) -> None:
        self.upcoming[pool.name] -= 1
        self.look()

    def _why_not(self, shape: Shape) -> str:
        full = sum(1 for pool in self.pools if _suits(pool, shape) and self._size(pool) >= self.most[pool.name])
        reasons = [f"{full} max node group size reached"] if full else []
        unsuited = sum(1 for pool in self.pools if not _suits(pool, shape))
        if unsuited:
            reasons.append(f"{unsuited} node(s) didn't match Pod's node affinity/selector or taints")
        return "pod didn't trigger scale-up: " + (", ".join(reasons) or "no node group could help")

    # --- down ---------------------------------------------------------------------------------------------------

    def _scale_down(self) -> bool:
        """Remove nodes that have been idle for long; returns whether idle nodes are left."""
        now, settings = self._loop.now, self.settings
        leftover = False
        for pool in self.pools:
            nodes = self._nodes(pool)
            spare = len(nodes) - pool.min
            for node in nodes if spare > 0 else ():
                if node.idle_since is None:
                    continue
                leftover = True
                due = max(node.idle_since + settings.unneeded_s, self._last_added + settings.after_add_s)
                if spare > 0 and now >= due:
                    self._remove_node(node)
                    spare -= 1
        return leftover


def _suits(pool: Pool, shape: Shape) -> bool:
    cpu, memory, gpu = allocatable(pool)
    fits = shape.cpu <= cpu and shape.memory <= memory and shape.gpu <= gpu
    return fits and admits(labels_of(pool), taints_of(pool), shape)


def _pack(pool: Pool, demand: list[tuple[Shape, list[Pod]]], most: int) -> tuple[list[Pod], int]:
    """First fit, largest shapes first, on at most `most` new nodes: the pods served, and how many nodes it takes."""
    nodes: list[list[int]] = []
    served: list[Pod] = []
    empty = [*allocatable(pool), pool.pods]
    for shape, pods in sorted(
        demand, key=lambda each: -max(each[0].cpu / (empty[0] or 1), each[0].memory / (empty[1] or 1))
    ):
        if not _suits(pool, shape):
            continue
        wants = (shape.cpu, shape.memory, shape.gpu, 1)
        left = len(pods)
        for node in nodes:
            left -= _fill(node, wants, left)
        each = _room(empty, wants)
        for _ in range(min(most - len(nodes), ceil(left / each) if each else 0)):
            nodes.append(list(empty))
            left -= _fill(nodes[-1], wants, left)
        served.extend(pods[: len(pods) - left])
    return served, len(nodes)


def _room(free: list[int], wants: tuple[int, ...]) -> int:
    return min(has // want for has, want in zip(free, wants, strict=True) if want)


def _fill(free: list[int], wants: tuple[int, ...], most: int) -> int:
    count = min(most, _room(free, wants))
    for index, want in enumerate(wants):
        free[index] -= want * count
    return count
