"""Whether a simulation reproduces a recorded test: phase by phase, and in what users see of it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from harness.model.phases import (
    BACKEND,
    COMPUTING,
    CONTROLLER,
    DISPATCH,
    LOADING,
    NETWORK,
    PROVISIONING,
    PUBLISHING,
    PULLING,
    QUEUED,
    RUNNING,
    SCHEDULING,
    SENDING,
    SERVING,
    STARTING,
    STORING,
    SUBMIT,
    UNKNOWN,
    UNSCHEDULABLE,
)

OFF = 0.15  # of a phase, or of makespan, mean and p95: beyond it a prediction would be worth little
# A phase below this share of a run's time may be off by that much: its error hardly moves a run's duration.
_SLIGHT = 0.03
LOST_OFF = 0.05  # share of the runs
NOISE = 0.05  # equal tests of a real platform differ by at least this much (standard deviation of the logarithm)
# Phases that are compared together: which of two a moment belongs to depends on what the observer read (a log, or the
# autoscaler's events).
NODES, WORK = "waiting for a node", "running"
_TOGETHER: Mapping[str, tuple[str, ...]] = {
    NODES: (UNSCHEDULABLE, PROVISIONING, SCHEDULING), WORK: (RUNNING, STORING, SERVING),
    "unknown": (UNKNOWN, DISPATCH, NETWORK),
}  # fmt: skip
CHECKED: Mapping[str, tuple[str, ...]] = {name: _TOGETHER.get(name, (name,)) for name in (
    SUBMIT, CONTROLLER, NODES, PULLING, STARTING, WORK, PUBLISHING, BACKEND, QUEUED, LOADING, COMPUTING, SENDING,
    "unknown",
)}  # fmt: skip

_AT_WORKERS = (QUEUED, LOADING, SENDING)


@dataclass(frozen=True, slots=True)
class Measures:
    """What is known of a test's runs, recorded or simulated.

    Attributes:
        runs: accepted ones.
        lost: share of the arrivals that were rejected, failed, or had not ended.
        mean_s: from due to the end, of accepted runs; up to the end of the observation where they had not ended.
        p50_s: of the same.
        p95_s: of the same.
        makespan_s: from the first arrival to the last end.
        phases: mean seconds of a run in each phase of `CHECKED`.
        pods: of a run.
        reported_s: mean time from a run's end until the platform reported it.
        node_hours: of the nodes of the pools that runs use, until the last end.
        cost: of those; none where a price is unknown.
        tasks: by task, mean seconds of its pods in their main container and in storing outputs.
        uploads: by task, mean seconds of uploads that logs show.
        before_s: of the controller's phase, the mean time before a run's first pod.
        waits: by limit, the mean seconds that a run waited for it; only of simulations, which know it.
        most_per_node: most pods that were on one node at once; 0 where runs have none.
        tenants: by tenant.
        fairness: Jain's index of the tenants' speeds; none where fewer than two can be compared.
    """

    runs: int
    lost: float
    mean_s: float
    p50_s: float
    p95_s: float
    makespan_s: float
    phases: Mapping[str, float]
    pods: float
    reported_s: float
    node_hours: float
    cost: float | None = None
    tasks: Mapping[str, float] = field(default_factory=dict)
    uploads: Mapping[str, float] = field(default_factory=dict)
    before_s: float = 0.0
    waits: Mapping[str, float] = field(default_factory=dict)
    most_per_node: int = 0
    tenants: Mapping[str, "OfTenant"] = field(default_factory=dict)
    fairness: float | None = None

    @property
    def seen_s(self) -> float:
        """Mean seconds until users see that a run has ended."""
        return self.mean_s + self.reported_s


@dataclass(frozen=True, slots=True)
class OfTenant:
    """How long a tenant's accepted runs took, from due to the end."""

    mean_s: float
    p95_s: float


@dataclass(frozen=True, slots=True)
class Compared:
    """One quantity, recorded and simulated; `off` is whether they differ too much."""

    name: str
    recorded: float
    simulated: float
    off: bool

    @property
    def error(self) -> float:
        """Share of the recorded value; infinite where that is 0."""
        if self.recorded:
            return self.simulated / self.recorded - 1
        return float("inf") if self.simulated else 0.0


@dataclass(frozen=True, slots=True)
class Reproduction:
    """How well a simulation reproduces a recorded test.

    Attributes:
        totals: makespan, mean, p95, all in seconds.
        phases: mean seconds of a run in each phase.
        lost: share of the runs that were lost.
        nodes: their mean number over time, until the last end. Where it is off, runs may be predicted, but not nodes.
    """

    totals: tuple[Compared, ...]
    phases: tuple[Compared, ...]
    lost: Compared
    nodes: Compared

    @property
    def within(self) -> float:
        """The largest error of makespan, mean and p95, as a share."""
        return max(abs(total.error) for total in self.totals)

    @property
    def misfits(self) -> tuple[Compared, ...]:
        """What is off; a model with any predicts nothing."""
        return tuple(compared for compared in (*self.phases, *self.totals, self.lost) if compared.off)

    def __str__(self) -> str:
        if not self.misfits:
            shown = f"; nodes over time {self.nodes.error:+.0%}: their hours and cost are not predicted"
            return f"the model reproduces the test within {self.within:.0%}{shown * self.nodes.off}"
        named = "; ".join(_misfit(misfit) for misfit in self.misfits)
        return f"the model does not reproduce the test: {named}"


def _misfit(of: Compared) -> str:
    if of.name == "lost runs":
        return f"{of.name} {of.recorded:.0%}, simulated {of.simulated:.0%}"
    return f"{of.name} {of.recorded:.1f} s, simulated {of.simulated:.1f} s"


def _together(phases: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    """Whether a wait for a worker shows as its queue, or as longer loading or sending, depends on which one took it."""
    yield from ((name, seconds) for name, seconds in phases.items() if name not in _AT_WORKERS)
    yield "queue, load and send data", sum(phases[name] for name in _AT_WORKERS)


def compare(recorded: Measures, simulated: Measures) -> Reproduction:
    """Compare a recorded test with its simulation."""
    slight = _SLIGHT * recorded.mean_s
    totals = [(name, getattr(recorded, f"{name}_s"), getattr(simulated, f"{name}_s")) for name in
              ("makespan", "mean", "p95")]  # fmt: skip
    were, are = (dict(_together(measures.phases)) for measures in (recorded, simulated))
    phases = [(name, were[name], are[name]) for name in were]
    nodes = (3600 * each.node_hours / (each.makespan_s or 1.0) for each in (recorded, simulated))
    return Reproduction(
        tuple(_compared(*total) for total in totals),
        tuple(Compared(name, was, now, abs(now - was) > max(OFF * abs(was), slight)) for name, was, now in phases),
        Compared("lost runs", recorded.lost, simulated.lost, abs(simulated.lost - recorded.lost) > LOST_OFF),
        _compared("nodes", *nodes),
    )


def _compared(name: str, was: float, now: float) -> Compared:
    return Compared(name, was, now, abs(now - was) > OFF * was)
