"""The cloud's side of spot machines: when it takes one back, and when it has one to give."""

from collections.abc import Callable, Sequence
from random import Random

from harness.simulator.cluster.objects import Node
from harness.simulator.engine.events import EventLoop
from harness.simulator.profile import Pool


class SpotMarket:
    """Takes machines back at random, by a script, or when their price exceeds the maximum.

    `nodes` gives the current nodes of a pool; `evict` announces that a machine is taken back.
    """

    def __init__(
        self, loop: EventLoop, random: Random, nodes: Callable[[Pool], list[Node]], evict: Callable[[Node], None]
    ) -> None:
        self._loop = loop
        self._random = random
        self._nodes, self._evict = nodes, evict
        self._sold_out_until: dict[str, float] = {}

    def begin(self, pools: Sequence[Pool]) -> None:
        """Schedule the script and the changes of price."""
        for pool in pools:
            if not pool.spot:
                continue
            for instant in pool.eviction.at:
                self._loop.at(instant, self._take_oldest, pool)
            if pool.eviction.max_price is not None:
                for instant in pool.eviction.prices.starts_s:
                    self._loop.at(max(instant, self._loop.now), self._reprice, pool)

    def follow(self, node: Node) -> None:
        """Draw when a machine that is ready now is taken back."""
        if node.pool.spot and node.pool.evictions_per_hour > 0:
            lifetime_s = self._random.expovariate(node.pool.evictions_per_hour / 3600)
            self._loop.after(lifetime_s, self._end_of_life, node, node.ready)

    def took(self, pool: Pool) -> None:
        """A machine was taken back: the pool is sold out for as long as its capacity takes to come back."""
        if pool.eviction.returns is not None:
            until = self._loop.now + pool.eviction.returns.sample(self._random, {})
            self._sold_out_until[pool.name] = max(until, self._sold_out_until.get(pool.name, 0.0))

    def sold_out_s(self, pool: Pool) -> float | None:
        """Seconds until the cloud has a machine of the pool again; none if it never says."""
        if pool.eviction.returns is None:
            return None
        return max(0.0, self._sold_out_until.get(pool.name, 0.0) - self._loop.now)

    def has_machine(self, pool: Pool) -> bool:
        """Whether the cloud would start a machine of the pool now."""
        return self._loop.now >= self._sold_out_until.get(pool.name, 0.0) and not self._too_dear(pool)

    def price(self, node: Node) -> float | None:
        """The mean price per hour of a node so far."""
        series = node.pool.eviction.prices
        if not node.pool.spot or not series.prices:
            return node.pool.price
        return series.mean(node.created, self._loop.now if node.gone is None else node.gone)

    def _end_of_life(self, node: Node, ready: float | None) -> None:
        if node.ready == ready:  # else it was taken back before, and is there again
            self._evict(node)

    def _too_dear(self, pool: Pool) -> bool:
        eviction = pool.eviction
        if eviction.max_price is None or not eviction.prices.prices:
            return False
        return eviction.prices.at(self._loop.now) > eviction.max_price

    def _take_oldest(self, pool: Pool) -> None:
        nodes = [each for each in self._nodes(pool) if each.schedulable and each.lost is None]
        if nodes:
            self._evict(min(nodes, key=lambda node: node.index))

    def _reprice(self, pool: Pool) -> None:
        if self._too_dear(pool):
            for node in self._nodes(pool):
                self._evict(node)
