"""Parts of the platform on simpy: capacity that is shared, and the search for a node."""

from heapq import heappop, heappush
from math import inf

import simpy

from harness.simulator.cluster import Node, Shape
from harness.simulator.cluster.shapes import admits


class Shared:
    """Processor sharing in virtual time, as `harness.simulator.stations.SharedCapacity`, on simpy's events."""

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
