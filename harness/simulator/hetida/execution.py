"""One execution: what it asks for, what it draws, when its steps were, how it ends."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum


class Ending(StrEnum):
    """How an execution ends, as its client sees it."""

    OK = "ok"
    RAISED = "raised"  # an operator raised: 200, result failure
    LOAD_FAILED = "load failed"  # a source adapter is down: a plain 500
    SEND_FAILED = "send failed"  # a sink is down: 200, result failure
    RESET = "reset"  # the worker was killed: the connection closes without an answer


@dataclass(frozen=True, slots=True)
class Work:
    """What an execution costs: seconds by input that an adapter provides, seconds of one core, seconds by output."""

    loads: tuple[tuple[str, float], ...] = ()  # (adapter, seconds)
    compute_s: float = 0.0
    sends: tuple[tuple[str, float], ...] = ()
    cores: float = 1.0
    operators: int = 1
    raises: bool = False


@dataclass(slots=True, eq=False)
class Job:
    """An execution on its way; instants are simulated seconds, by the name of the step they begin or end."""

    work: Work
    done: Callable[["Job"], None]
    began: dict[str, float] = field(default_factory=dict)
    ended: dict[str, float] = field(default_factory=dict)
    ending: Ending | None = None
    replica: int = -1
    worker: int = -1

    def end(self, ending: Ending) -> None:
        """Tell who waits for it, once; it then knows nobody any more, and both are freed without a search."""
        self.ending = ending
        told, self.done = self.done, _nobody
        told(self)

    def duration(self, step: str) -> float | None:
        """Seconds of a step that is over."""
        return self.ended[step] - self.began[step] if step in self.ended else None


def _nobody(_: Job) -> None: ...


# Steps, by the names that hetida designer measures them under.
FULL, PREPARING, CALLING = "internal_full", "prepare_execution_input", "run_execution_input"
HANDLING, LOADING, COMPUTING, SENDING = "runtime_service_handling", "load_data", "pure_execution", "send_data"
STEPS = (FULL, PREPARING, CALLING, HANDLING, COMPUTING, LOADING, SENDING)
