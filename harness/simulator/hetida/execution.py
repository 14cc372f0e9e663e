"""One execution: its work, the times of its steps, and how it ends."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum


class Ending(StrEnum):
    """How an execution ends, as its client sees it."""

    OK = "ok"
    RAISED = "raised"  # in an operator: 200, result failure
    LOAD_FAILED = "load failed"  # a source adapter is down: a plain 500
    SEND_FAILED = "send failed"  # a sink is down: 200, result failure
    RESET = "reset"  # the worker was killed: the connection closes without an answer


@dataclass(frozen=True, slots=True)
class Work:
    """The work of one execution: seconds for each input and output of an adapter, and seconds of one core."""

    loads: tuple[tuple[str, float], ...] = ()  # (adapter, seconds)
    compute_s: float = 0.0
    sends: tuple[tuple[str, float], ...] = ()
    cores: float = 1.0
    operators: int = 1
    failure: str = ""  # at which step it fails, whatever happens: see `harness.simulator.profile.hetida`
    replica: int = -1  # that executes it; -1 leaves the choice to the balancer


@dataclass(slots=True, eq=False)
class Job:
    """A running execution; instants are simulated seconds, by the name of the step that begins or ends."""

    work: Work
    done: Callable[["Job"], None]
    began: dict[str, float] = field(default_factory=dict)
    ended: dict[str, float] = field(default_factory=dict)
    ending: Ending | None = None
    replica: int = -1
    worker: int = -1

    def end(self, ending: Ending) -> None:
        """Notify the waiting client, once. Dropping the reference lets both be freed without garbage collection."""
        self.ending = ending
        notify, self.done = self.done, _ignore
        notify(self)

    def duration(self, step: str) -> float | None:
        """Duration of a step in seconds; none if it has not ended."""
        return self.ended[step] - self.began[step] if step in self.ended else None


def _ignore(_: Job) -> None: ...


# Steps, by the names that hetida designer measures them under.
FULL, PREPARING, CALLING = "internal_full", "prepare_execution_input", "run_execution_input"
HANDLING, LOADING, COMPUTING, SENDING = "runtime_service_handling", "load_data", "pure_execution", "send_data"
STEPS = (FULL, PREPARING, CALLING, HANDLING, COMPUTING, LOADING, SENDING)
