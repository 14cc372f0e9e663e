"""What a worker needs to know of a test, and how that travels in Locust's messages."""

from array import array
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from typing import Any

from harness.drive.dispatch import Arrival
from harness.model.errors import ConfigError
from harness.model.plan import Limits, Plan
from harness.model.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Order:
    """All that a worker needs: the plan, the scenarios, when t0 is, and which stripe of the schedule is its own.

    `offsets` are the due times of the whole schedule on the master, of the worker's stripe in a message; of a closed
    schedule there are none yet. `ahead_ns` is by how much the worker's clock is ahead of the master's.
    """

    run: str
    plan: Plan
    scenarios: list[Scenario]
    offsets: "array[float]"
    t0_at: int
    index: int = 0
    count: int = 1
    ahead_ns: int = 0
    hidden: tuple[str, ...] = ()  # values that must not be recorded

    @property
    def closed(self) -> bool:
        """Whether arrivals become due while the test goes, as runs end."""
        return self.plan.schedule.get("model") == "closed"

    def stripe(self, index: int, count: int, ahead_ns: int = 0) -> "Order":
        """The part of worker `index` of `count`: every `count`-th arrival."""
        return replace(self, offsets=self.offsets[index::count], index=index, count=count, ahead_ns=ahead_ns)

    def arrivals(self) -> Iterator[Arrival]:
        """The arrivals of this stripe."""
        for k, due_s in enumerate(self.offsets):
            yield self.arrival(self.index + k * self.count, due_s)

    def arrival(self, seq: int, due_s: float) -> Arrival:
        """One arrival; the scenarios are taken in turn over the whole schedule.

        In a second round over the scenarios a run's name gets the round's number, so that names stay distinct.
        """
        turn, which = divmod(seq, len(self.scenarios))
        scenario = self.scenarios[which]
        if turn:
            scenario = replace(scenario, name=f"{scenario.name}-{turn + 1}")
        return Arrival(seq, self.t0_at + round(due_s * 1e9), scenario)

    def pack(self) -> dict[str, Any]:
        """Plain values for Locust's messages."""
        return {
            "run": self.run,
            "plan": asdict(self.plan),
            "scenarios": [(s.id, s.name, dict(s.values)) for s in self.scenarios],
            "offsets": self.offsets.tobytes(),
            "t0_at": self.t0_at,
            "index": self.index,
            "count": self.count,
            "ahead_ns": self.ahead_ns,
            "hidden": self.hidden,
            "version": version("pipeswarm"),
        }

    @classmethod
    def unpack(cls, raw: dict[str, Any]) -> "Order":
        """The order of a message.

        Raises:
            ConfigError: it was made by another version of Pipeswarm.
        """
        if raw["version"] != version("pipeswarm"):
            raise ConfigError(
                f"the master is Pipeswarm {raw['version']}, this worker {version('pipeswarm')}",
                "install the same version on both",
            )
        return cls(
            raw["run"],
            Plan(**{**raw["plan"], "limits": Limits(**raw["plan"]["limits"])}),
            [Scenario(id_, name, values, {}) for id_, name, values in raw["scenarios"]],
            array("d", raw["offsets"]),
            raw["t0_at"],
            raw["index"],
            raw["count"],
            raw["ahead_ns"],
            tuple(raw["hidden"]),
        )
