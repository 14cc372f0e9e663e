"""Evictions at random on a real cluster: which pods or nodes may be evicted, when, and one after the other.

Only what is the test's is evicted: pods of its runs, and nodes that hold nothing else. Anything more has to be named.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from harness.model.cluster import CandidateNode, CandidatePod
from harness.model.units import counted

POD, NODE = "pod", "node"
_SHOWN = 3  # pods named in a refusal


@dataclass(frozen=True, slots=True)
class Victim:
    """What may be evicted: a pod, or a node with `pods` of the test."""

    kind: str
    name: str
    namespace: str = ""
    run: str = ""
    pods: int = 0

    def __str__(self) -> str:
        if self.kind == NODE:
            return f"node {self.name} with {counted(self.pods, 'pod')} of runs"
        return f"pod {self.namespace}/{self.name}" + (f" of run {self.run}" if self.run else "")


@dataclass(frozen=True, slots=True)
class Refused:
    """What was selected and is not evicted, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Choice:
    """What may be evicted now, and what may not."""

    victims: tuple[Victim, ...]
    refused: tuple[Refused, ...]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One eviction: seconds after the start, of what (none: of nothing), and why it failed ("" if it did not)."""

    at_s: float
    victim: Victim | None
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Scope:
    """What is the test's: pods in `namespace` of runs, of these `runs` if given; and what else is `allowed`."""

    namespace: str
    runs: Collection[str] | None = None
    allowed: Collection[str] = ()

    def holds(self, pod: CandidatePod) -> bool:
        """Whether the pod works for one of the test's runs."""
        ours = pod.run != "" and pod.namespace == self.namespace
        return ours and (self.runs is None or pod.run in self.runs)


def choose_pods(pods: Sequence[CandidatePod], scope: Scope) -> Choice:
    """These pods, by whether they may be evicted."""
    victims, refused = [], []
    for pod in sorted(pods, key=lambda each: (each.namespace, each.name)):
        if scope.holds(pod) or pod.name in scope.allowed:
            victims.append(Victim(POD, pod.name, pod.namespace, pod.run))
        else:
            reason = "works for a run that is not this test's" if pod.run else "works for no run"
            refused.append(Refused(f"{pod.namespace}/{pod.name}", reason))
    return Choice(tuple(victims), tuple(refused))


def choose_nodes(nodes: Sequence[CandidateNode], pods: Sequence[CandidatePod], scope: Scope) -> Choice:
    """These nodes, by whether they may be evicted; `pods` are all of the cluster, those of DaemonSets don't count."""
    victims, refused = [], []
    for node in sorted(nodes, key=lambda each: each.name):
        there = [pod for pod in pods if pod.node == node.name and not pod.everywhere]
        others = sorted(f"{pod.namespace}/{pod.name}" for pod in there if not scope.holds(pod))
        if node.name in scope.allowed or not (node.control_plane or others):
            victims.append(Victim(NODE, node.name, pods=len(there) - len(others)))
        elif node.control_plane:
            refused.append(Refused(node.name, "runs the cluster's control plane"))
        else:
            more = f" and {len(others) - _SHOWN:,} more" if len(others) > _SHOWN else ""
            refused.append(Refused(node.name, f"holds {', '.join(others[:_SHOWN])}{more}, not of the test"))
    return Choice(tuple(victims), tuple(refused))


def instants(rate: float, for_s: float, random: Random) -> list[float]:
    """The instants of a Poisson process of this rate per second, within `for_s` seconds."""
    found: list[float] = []
    at_s = random.expovariate(rate)
    while at_s < for_s:
        found.append(at_s)
        at_s += random.expovariate(rate)
    return found


def evict_at(
    due_s: Sequence[float],
    choose: Callable[[], Choice],
    evict: Callable[[Victim], str],
    wait_until: Callable[[float], float],
    random: Random,
) -> Iterator[Attempt]:
    """Evict one of the victims at each instant, chosen at random among those of that moment.

    Args:
        due_s: instants, ascending.
        choose: what may be evicted now.
        evict: evicts, and returns why it could not ("" if it could).
        wait_until: waits until an instant and returns the present one, which may be later.
        random: for the choice.
    """
    for due in due_s:
        now_s = wait_until(due)
        victims = choose().victims
        if not victims:
            yield Attempt(now_s, None, "nothing to evict")
            continue
        victim = random.choice(victims)
        yield Attempt(now_s, victim, evict(victim))
