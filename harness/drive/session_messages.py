"""A session's inputs (`Event`) and outputs (`Command`)."""

from dataclasses import dataclass

from harness.model.abort import AbortRule
from harness.model.errors import ExitCode
from harness.model.live.state import Counts
from harness.model.schedules import Concurrency

# Why an arrival was missed, unless a more specific reason is known.
STOPPED = "the test was stopped before it was due"
INTERRUPTED = "Interrupted"  # reason of a cut by Ctrl-C or SIGTERM
WORKERS_LOST = "WorkersLost"  # reason of a cut because no worker is left
NO_WORKER = "the last worker went missing"

# An arrival of a closed schedule: its seq, and when it is due in seconds after t0.
Due = tuple[int, float]


@dataclass(frozen=True, slots=True)
class Terms:
    """The part of a test's configuration that decides its course. `intended` is 0 where it is not known in advance."""

    intended: int
    drain_s: float
    clean_up: bool = False
    abort_on: tuple[AbortRule, ...] = ()
    concurrency: Concurrency | None = None  # the closed schedule, if it is one
    max_runs: int | None = None
    answer_s: float = 60.0  # a request without a response fails after this time


# --- events -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Prepared:
    """Everything was checked and the platform set up; nothing has been written yet."""

    terms: Terms


@dataclass(frozen=True, slots=True)
class Opened:
    """Run folder, observer and load generator are ready; the first arrival may be due at `t0_at` (UTC ns)."""

    t0_at: int


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed: `now_s` on a monotonic clock, `elapsed_s` since t0; `ends_age_s` as in `LiveLoad`.

    `blocked` runs wait for what will not come unless someone intervenes.
    """

    now_s: float
    elapsed_s: float
    counts: Counts
    generator_finished: bool = False
    ends_age_s: float | None = None
    blocked: int = 0


@dataclass(frozen=True, slots=True)
class Stop:
    """Send nothing more, but wait for open runs. `why` is recorded for each arrival that is missed."""

    reason: str = "Stopped"
    why: str = STOPPED


@dataclass(frozen=True, slots=True)
class Cut:
    """Stop without waiting: open runs are censored."""

    reason: str
    why: str = STOPPED


@dataclass(frozen=True, slots=True)
class WorkerLost:
    """A worker died; `arrivals` of a closed schedule were lost with it."""

    index: int
    client: str
    arrivals: int


@dataclass(frozen=True, slots=True)
class LateRows:
    """Rows of `arrivals` came from a worker that had been given up; it was not dead."""

    index: int
    client: str
    arrivals: int


@dataclass(frozen=True, slots=True)
class WriteFailed:
    """A record could not be written to the run folder."""

    verdict: str


@dataclass(frozen=True, slots=True)
class Failed:
    """A command or the load generator failed."""

    exit_code: ExitCode
    verdict: str


@dataclass(frozen=True, slots=True)
class Closed:
    """The observer has ended, the platform is cleaned up, the run folder is complete."""


@dataclass(frozen=True, slots=True)
class Reported:
    """The run was sealed and reported."""

    exit_code: ExitCode
    verdict: str


Event = Prepared | Opened | Tick | Stop | Cut | WorkerLost | LateRows | WriteFailed | Failed | Closed | Reported

# --- commands -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Open:
    """Make the run folder, start the observer, get a load generator: answered by Opened or Failed."""


@dataclass(frozen=True, slots=True)
class Note:
    """Record an event of the test, at `at` (UTC ns) or now."""

    reason: str
    message: str
    at: int | None = None


@dataclass(frozen=True, slots=True)
class StartGenerator:
    """Send the arrivals of the schedule."""

    t0_at: int


@dataclass(frozen=True, slots=True)
class SendMore:
    """Send these arrivals of a closed schedule, too; after the `last` ones there are none."""

    dues: tuple[Due, ...]
    last: bool


@dataclass(frozen=True, slots=True)
class StopGenerator:
    """Send nothing more; what was not sent is missed because of `why`.

    With `at_once` open requests are no longer waited for: they are recorded as unanswered.
    """

    why: str
    at_once: bool = False


@dataclass(frozen=True, slots=True)
class SettleClosed:
    """A closed schedule has ended: book the `missed` runs that never became due, and write its due times."""

    missed: int
    why: str


@dataclass(frozen=True, slots=True)
class Close:
    """End the observer, clean up the platform if asked to, close the run folder: answered by Closed."""

    clean_up: bool


@dataclass(frozen=True, slots=True)
class WriteReport:
    """Seal the run and write its reports: answered by Reported."""


@dataclass(frozen=True, slots=True)
class Finish:
    """The test is over, and so is its preparation if that is still going on."""

    exit_code: ExitCode
    verdict: str


Command = (
    Open | Note | StartGenerator | SendMore | StopGenerator | SettleClosed | Close
    | WriteReport | Finish
)  # fmt: skip
