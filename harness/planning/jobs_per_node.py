"""How many runs fit one node: what to try, and how a trial is judged from snapshots of the cluster.

The manual procedure is: estimate, start that many runs on an empty pool that may grow, see whether a second node comes,
try more or fewer. Here it is a search (`harness.planning.search`) whose trials are judged from snapshots.
"""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from math import floor, inf

from harness.model.argo.nodes import DRIVER_SUFFIX
from harness.model.cluster import PoolPod
from harness.planning.search import Search, Tally

_LACKS = re.compile(r"Insufficient ([\w/-]+(?:\.[\w/-]+)*)|(Too many pods)")
_GRACE_S = 5.0  # the scheduler may need a moment after a node has become ready or a pod has gone
_EPSILON = 1e-9


@dataclass(frozen=True, slots=True)
class NodeCapacity:
    """What a node has left for runs, allocatable less daemons: cores, bytes, pods."""

    cpu: float
    memory: float
    pods: float


@dataclass(frozen=True, slots=True)
class RunRequests:
    """The most that one run requests at once: cores, bytes, pods."""

    cpu: float
    memory: float
    pods: float


@dataclass(frozen=True, slots=True)
class Blocked:
    """A pod of the trial that finds no node: its task, the scheduler's message, and how long it has been blocked."""

    task: str
    message: str
    for_s: float


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The pool at one instant of a trial.

    Attributes:
        nodes: machines of the pool, ready or starting.
        ready: those that are ready.
        finished: runs of the trial that have ended.
        blocked: pods of the trial that find no node.
    """

    nodes: int
    ready: int
    finished: int
    blocked: tuple[Blocked, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """A trial's result; `stopped_by` is what one node lacked ("cpu", "memory", "pods", "driver pods: cpu", …)."""

    fits: bool
    stopped_by: str = ""


@dataclass(frozen=True, slots=True)
class Trial:
    """A number of runs started at once, and whether they fit one node."""

    jobs: int
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class JobsPerNode:
    """The answer.

    Attributes:
        jobs: the most runs that one node took; 0 when not even one fits.
        estimate: from requests and the node's capacity; none when the pool was empty.
        stopped_by: what `jobs` + 1 lacked; "" when the largest number allowed fits.
        trials: in order.
        contradictions: numbers of runs whose trials contradict the answer.
    """

    jobs: int
    estimate: int | None
    stopped_by: str
    trials: tuple[Trial, ...]
    contradictions: tuple[int, ...]


def estimate(node: NodeCapacity, run: RunRequests) -> int:
    """(Allocatable less daemons) / requests, the scarcest of the three; a resource that is not requested is ignored."""
    pairs = ((node.cpu, run.cpu), (node.memory, run.memory), (node.pods, run.pods))
    fewest = min((has / needs for has, needs in pairs if needs > 0), default=inf)
    return 0 if fewest is inf else max(0, floor(fewest + _EPSILON))


def search(most: int, guess: int | None, repetitions: int) -> Search:
    """The search over 1 … `most` runs, starting at the estimate."""
    return Search(most, repetitions, None if guess is None else min(max(guess, 1), most) - 1)


def is_driver(pod: PoolPod) -> bool:
    """One of KFP's drivers, which tolerate no taint and go to any node that takes them."""
    return pod.task.endswith(DRIVER_SUFFIX)


def by_room(pods: Collection[PoolPod], nodes: Collection[str], *, tainted: bool) -> tuple[list[PoolPod], list[PoolPod]]:
    """The pods that take or want room on the pool's nodes, and drivers that run elsewhere and say nothing about it.

    Args:
        pods: of a trial.
        nodes: the pool's.
        tainted: drivers can't run on them.
    """
    elsewhere = tainted or any(is_driver(pod) and pod.node and pod.node not in nodes for pod in pods)
    here: list[PoolPod] = []
    away: list[PoolPod] = []
    for pod in pods:
        (away if elsewhere and is_driver(pod) and pod.node not in nodes else here).append(pod)
    return here, away


def judge(jobs: int, snapshot: Snapshot) -> Verdict | None:
    """The verdict of a snapshot; none while it is still open.

    A second machine shows that one was not enough, and so does a pod that does not fit the ready node. An empty pool
    shows nothing before its first node is ready.
    """
    stuck = [b for b in snapshot.blocked if b.for_s >= _GRACE_S]
    if snapshot.nodes > 1:
        return Verdict(fits=False, stopped_by=lack(snapshot.blocked) or "a second node came")
    if snapshot.ready and stuck:
        return Verdict(fits=False, stopped_by=lack(stuck) or "unschedulable")
    return Verdict(fits=True) if snapshot.finished >= jobs else None


def lack(blocked: Sequence[Blocked]) -> str:
    """What blocked pods lacked: ``cpu``, ``memory``, ``pods``; ``driver pods: …`` if only drivers did."""
    found: dict[str, bool] = {}
    for pod in blocked:
        for resource, pods in _LACKS.findall(pod.message):
            name = "pods" if pods else resource
            found[name] = found.get(name, True) and pod.task.endswith(DRIVER_SUFFIX)
    return ", ".join(f"driver pods: {name}" if drivers else name for name, drivers in sorted(found.items()))


def find_jobs_per_node(plan: Search, estimated: int | None, trial: Callable[[int], Trial]) -> JobsPerNode:
    """Try numbers of runs until the search has its answer."""
    trials: list[Trial] = []
    while (at := plan.next(_tallies(trials))) is not None:
        trials.append(trial(at + 1))
    tallies = _tallies(trials)
    jobs = plan.boundary(tallies)
    lacked = [each.verdict.stopped_by for each in trials if each.jobs == jobs + 1 and not each.verdict.fits]
    return JobsPerNode(
        jobs,
        estimated,
        max(lacked, key=lacked.count, default=""),
        tuple(trials),
        tuple(at + 1 for at in plan.contradictions(tallies)),
    )


def _tallies(trials: Sequence[Trial]) -> dict[int, Tally]:
    tallies: dict[int, Tally] = {}
    for trial in trials:
        tallies[trial.jobs - 1] = tallies.get(trial.jobs - 1, Tally()).after(passed=trial.verdict.fits)
    return tallies
