"""Parts of the platform on simpy: capacity that is shared, the scheduler, and the search for a node."""

from collections import deque
from collections.abc import Iterator
from heapq import heappop, heappush
from math import inf

import simpy

from harness.simulator.cluster import Node, Pod, Shape
from harness.simulator.cluster.ranking import Ranks
from harness.simulator.cluster.shapes import admits
from harness.simulator.profile import Scheduler as Settings

Process = Iterator[simpy.Event]


class Shared:
    """Processor sharing in virtual time, as `harness.simulator.engine.queues.ProcessorSharing`, on simpy's events."""

    def __init__(self, env: simpy.Environment, capacity: float) -> None:
        self.env, self.capacity, self.demand = env, capacity, 0.0
        self.virtual, self.updated, self.armed = 0.0, 0.0, inf
        self.jobs: list[tuple[float, int, float, simpy.Event]] = []
        self.count = 0

    def add(self, alone_s: float, demand: float) -> simpy.Event:
        self.advance()
        done = self.env.event()
        heappush(self.jobs, (self.virtual + alone_s, self.count, demand, done))
        self.count += 1
        self.demand += demand
        self.arm()
        return done

    def advance(self) -> None:
        self.virtual += (self.env.now - self.updated) * min(1.0, self.capacity / (self.demand or 1.0))
        self.updated = self.env.now

    def arm(self) -> None:
        if self.jobs:
            when = self.env.now + (self.jobs[0][0] - self.virtual) * max(1.0, self.demand / self.capacity)
            if when < self.armed:
                self.armed = when
                self.env.timeout(max(0.0, when - self.env.now)).callbacks.append(self.wake)

    def wake(self, _: simpy.Event) -> None:
        if self.env.now >= self.armed:
            self.armed = inf
        self.advance()
        while self.jobs and self.jobs[0][0] <= self.virtual + 1e-9:
            _, _, demand, done = heappop(self.jobs)
            self.demand = self.demand - demand if self.jobs else 0.0
            done.succeed()
        self.arm()


class Search:
    """The best node for a shape by looking at each: to be held against `Ranks`, which does not."""

    def __init__(self, *, packing: bool) -> None:
        self.nodes: dict[str, Node] = {}
        self.sign = 1 if packing else -1

    def changed(self, node: Node) -> None:
        """Nothing is remembered."""

    def cost(self, shape: Shape, node: Node) -> float | None:
        if not admits(node.labels, node.taints, shape):
            return None
        return shape.cpu / node.cpu + shape.memory / node.memory

    def best(self, shape: Shape) -> Node | None:
        roomy = [node for node in self.nodes.values() if node.fits(shape)]
        ranked = [
            (self.sign * (node.free - cost), node.index, node)
            for node in roomy
            if (cost := self.cost(shape, node)) is not None
        ]
        return min(ranked)[2] if ranked else None


class Scheduler:
    """Places one pod at a time, first come first served; those that fit nowhere are tried again with a back-off."""

    def __init__(self, env: simpy.Environment, settings: Settings, ranks: Ranks | Search) -> None:
        self.env, self.settings, self.ranks = env, settings, ranks
        self.queue = simpy.Store(env)
        self.placing: dict[str, simpy.Event] = {}
        self.blocked: dict[Shape, deque[Pod]] = {}
        env.process(self.schedule())

    def placed(self, pod: Pod) -> simpy.Event:
        """Happens with the pod's node."""
        event = self.placing[pod.name] = self.env.event()
        self.queue.put(pod)
        return event

    def schedule(self) -> Process:
        env, settings = self.env, self.settings
        while True:
            pod = yield self.queue.get()
            yield env.timeout(settings.pod_s)
            node = self.ranks.best(pod.shape)
            if node is None:
                self.blocked.setdefault(pod.shape, deque()).append(pod)
                pod.retry_at = env.now + min(settings.backoff_s * 2**pod.attempts, settings.backoff_max_s)
                pod.attempts += 1
                if pod.unschedulable is None:
                    pod.unschedulable = env.now
            else:
                node.take(pod)
                self.ranks.changed(node)
                pod.node, pod.scheduled = node, env.now
                self.placing.pop(pod.name).succeed(node)

    def room_made(self, node: Node) -> None:
        """The longest-waiting pods that may fit are tried again, when their back-off is over."""
        self.ranks.changed(node)
        hopeful: list[Pod] = []
        for shape, pods in self.blocked.items():
            room = node.room(shape) if self.ranks.cost(shape, node) is not None else 0
            hopeful.extend(pods.popleft() for _ in range(min(room, len(pods))))
        for pod in sorted(hopeful, key=lambda pod: pod.created):
            if pod.retry_at <= self.env.now:
                self.queue.put(pod)
            else:
                self.env.process(self.retry(pod))
        self.blocked = {shape: pods for shape, pods in self.blocked.items() if pods}

    def retry(self, pod: Pod) -> Process:
        yield self.env.timeout(pod.retry_at - self.env.now)
        self.queue.put(pod)
