"""What a worker needs to know about a test, and how it travels in Locust's messages."""

import hashlib
import json
from array import array
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from harness.model.errors import ConfigError
from harness.model.plan import Plan
from harness.model.scenario import Arrival, Scenario
from harness.targets.discovery import find


@dataclass(frozen=True, slots=True)
class Assignment:
    """All that a worker needs: the plan, the scenarios, t0, and its own stripe of the schedule.

    Attributes:
        run: path of the run folder on the machine of the master.
        plan: of the test.
        scenarios: of the whole test.
        offsets: due times: of the whole schedule on the master, of the stripe in a message; none if it is closed.
        t0_at: the test's start.
        index: of the worker.
        count: of workers.
        ahead_ns: by how much the worker's clock is ahead of the master's.
        hidden: values that must not be recorded.
        with_credentials: whether the credentials were given for the plan's host.
    """

    run: str
    plan: Plan
    scenarios: list[Scenario]
    offsets: "array[float]"
    t0_at: int
    index: int = 0
    count: int = 1
    ahead_ns: int = 0
    hidden: tuple[str, ...] = ()
    with_credentials: bool = False

    @property
    def closed(self) -> bool:
        """Whether arrivals become due as runs end, instead of on a schedule."""
        return self.plan.schedule.get("model") == "closed"

    def stripe(self, index: int, count: int, ahead_ns: int = 0) -> "Assignment":
        """The part of worker `index` of `count`: every `count`-th arrival."""
        return replace(self, offsets=self.offsets[index::count], index=index, count=count, ahead_ns=ahead_ns)

    def arrivals(self) -> Iterator[Arrival]:
        """The arrivals of this stripe."""
        for k, due_s in enumerate(self.offsets):
            yield self.arrival(self.index + k * self.count, due_s)

    def arrival(self, seq: int, due_s: float) -> Arrival:
        """One arrival; the scenarios are taken in turn over the whole schedule.

        From the second round over the scenarios on, a run's name ends in the number of the round, so that names differ.
        """
        turn, which = divmod(seq, len(self.scenarios))
        scenario = self.scenarios[which]
        if turn:
            scenario = replace(scenario, name=f"{scenario.name}-{turn + 1}")
        return Arrival(seq, self.t0_at + round(due_s * 1e9), scenario)

    def pack(self) -> dict[str, Any]:
        """Plain values for Locust's messages, with digests by which the worker verifies them."""
        packed = {
            "run": self.run,
            "plan": asdict(self.plan),
            "scenarios": [(s.id, s.name, dict(s.values), s.tenant) for s in self.scenarios],
            "offsets": self.offsets.tobytes(),
            "t0_at": self.t0_at,
            "index": self.index,
            "count": self.count,
            "ahead_ns": self.ahead_ns,
            "hidden": self.hidden,
            "with_credentials": self.with_credentials,
            "version": version("pipeswarm"),
        }
        return {**packed, "digest": _digest(packed), "target": _target_digest(self.plan.target)}

    @classmethod
    def unpack(cls, raw: dict[str, Any]) -> "Assignment":
        """The assignment in a message.

        Raises:
            ConfigError: it was made by another version of Pipeswarm or of the target's file, or was altered on the way.
        """
        raw = dict(raw)
        digest, target = raw.pop("digest", ""), raw.pop("target", "")
        if raw["version"] != version("pipeswarm"):
            raise ConfigError(
                f"the master is Pipeswarm {raw['version']}, this worker {version('pipeswarm')}",
                "install the same version on both",
            )
        name = raw["plan"]["target"]
        if target != _target_digest(name):
            raise ConfigError(
                f"the target {name} differs between the master and this worker", "install the same file on both"
            )
        if digest != _digest(raw):
            raise ConfigError("the received plan differs from the one that was sent", "restart master and workers")
        return cls(
            raw["run"],
            Plan.from_mapping(raw["plan"]),
            [Scenario(id_, name, values, {}, tenant) for id_, name, values, tenant in raw["scenarios"]],
            array("d", raw["offsets"]),
            raw["t0_at"],
            raw["index"],
            raw["count"],
            raw["ahead_ns"],
            tuple(raw["hidden"]),
            raw["with_credentials"],
        )


def _digest(packed: dict[str, Any]) -> str:
    """The SHA-256 of a packed assignment."""
    rest = {name: value for name, value in packed.items() if name != "offsets"}
    digest = hashlib.sha256(packed["offsets"])
    digest.update(json.dumps(rest, sort_keys=True, default=str).encode())
    return digest.hexdigest()


def _target_digest(name: str) -> str:
    """The SHA-256 of the target's file: it may be the user's own module, in the locustfile's folder."""
    file = getattr(find(name), "__file__", None)
    return hashlib.sha256(Path(file).read_bytes()).hexdigest() if file else ""
