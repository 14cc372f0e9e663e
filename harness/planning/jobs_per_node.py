"""How many runs fit one node: what to try, and what a look at the cluster says about a trial.

The manual procedure is: estimate, start that many runs on an empty pool that may grow, see whether a second node comes,
try more or fewer. Here it is a search (`harness.planning.search`) whose trials are judged from snapshots.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, inf

from harness.planning.search import Search, Tally

_LACKS = re.compile(r"Insufficient ([\w/-]+(?:\.[\w/-]+)*)|(Too many pods)")
_DRIVER = "-driver"
_GRACE_S = 5.0  # the scheduler may need a moment after a node has become ready, or a pod has gone
_EPSILON = 1e-9


@dataclass(frozen=True, slots=True)
class Room:
    """What a node has for runs (allocatable less daemons), or what one run asks for at once: cores, bytes, pods."""

    cpu: float
    memory: float
    pods: float


@dataclass(frozen=True, slots=True)
class Blocked:
    """A pod of ours that finds no node: its task, what the scheduler says, and for how long it has said so."""

    task: str
    message: str
    for_s: float


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The pool at one instant of a trial.

    Attributes:
        nodes: machines of the pool, ready or coming.
        ready: those that are ready.
        over: runs of the trial that are over.
        blocked: pods of the trial that find no node.
    """

    nodes: int
    ready: int
    over: int
    blocked: tuple[Blocked, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """A trial's result; `stopped_by` says what one node lacked ("cpu", "memory", "pods", "driver pods: cpu", …)."""

    fits: bool
    stopped_by: str = ""


@dataclass(frozen=True, slots=True)
class Trial:
    """So many runs at once, and what came of it."""

    jobs: int
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class JobsPerNode:
    """The answer.

    Attributes:
        jobs: the most runs that one node took; 0 when not even one fits.
        estimate: what requests and room would allow.
        stopped_by: what `jobs` + 1 lacked; "" when the most that was allowed to be tried fits.
        contradictions: numbers of runs whose trials speak against the answer.
    """

    jobs: int
    estimate: int | None
    stopped_by: str
    trials: tuple[Trial, ...]
    contradictions: tuple[int, ...]


def estimate(room: Room, run: Room) -> int:
    """(Allocatable less daemons) / requests, the scarcest of the three; what is not requested does not count."""
    pairs = ((room.cpu, run.cpu), (room.memory, run.memory), (room.pods, run.pods))
    fewest = min((has / needs for has, needs in pairs if needs > 0), default=inf)
    return 0 if fewest is inf else max(0, floor(fewest + _EPSILON))


def search(most: int, guess: int | None, repetitions: int) -> Search:
    """The search over 1 … `most` runs, beginning at the estimate."""
    return Search(most, repetitions, None if guess is None else min(max(guess, 1), most) - 1)


def judge(jobs: int, snapshot: Snapshot) -> Verdict | None:
    """What a snapshot says; none while it may still turn out either way.

    A second machine says that one was not enough, and so does a pod that finds no room on the node that is ready. An
    empty pool says nothing before its first node is ready.
    """
    stuck = [b for b in snapshot.blocked if b.for_s >= _GRACE_S]
    if snapshot.nodes > 1:
        return Verdict(fits=False, stopped_by=lack(snapshot.blocked) or "a second node came")
    if snapshot.ready and stuck:
        return Verdict(fits=False, stopped_by=lack(stuck) or "unschedulable")
    return Verdict(fits=True) if snapshot.over >= jobs else None


def lack(blocked: Sequence[Blocked]) -> str:
    """What the scheduler missed, of all blocked pods: ``cpu``, ``memory``, ``pods``; drivers are named as such."""
    found: dict[str, bool] = {}
    for pod in blocked:
        for resource, pods in _LACKS.findall(pod.message):
            name = "pods" if pods else resource
            found[name] = found.get(name, True) and pod.task.endswith(_DRIVER)
    return ", ".join(f"driver pods: {name}" if drivers else name for name, drivers in sorted(found.items()))


def conclude(plan: Search, trials: Sequence[Trial], estimated: int | None) -> JobsPerNode:
    """The answer of trials that are complete (`Search.next` says none)."""
    tallies: dict[int, Tally] = {}
    for trial in trials:
        tallies[trial.jobs - 1] = tallies.get(trial.jobs - 1, Tally()).after(passed=trial.verdict.fits)
    jobs = plan.boundary(tallies)
    lacked = [trial.verdict.stopped_by for trial in trials if trial.jobs == jobs + 1 and not trial.verdict.fits]
    return JobsPerNode(
        jobs,
        estimated,
        max(lacked, key=lacked.count, default=""),
        tuple(trials),
        tuple(at + 1 for at in plan.contradictions(tallies)),
    )
