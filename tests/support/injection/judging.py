"""Was a finding right? Judged by how the runs would have fared without the fault, or with the named bottleneck fixed.

Each test has counterfactuals with the same seed: one without the fault, and one per finding in which that bottleneck is
fixed. The effect of the fault, and the gain of a fix, is the difference in lost runs, their mean duration, pods, and
response time of submissions; nothing that a detector computes is used. A fault that changed nothing does not bind (a
cap that is never reached, a wave of evictions between two short steps): then the right answer is to name nothing. A
platform may have a bottleneck of its own beside the injected one: naming it first is right if fixing it would help as
much.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

import numpy as np

from harness.analysis.timeline import Timeline, floats
from harness.detectors import diagnose
from harness.model.phases import SUCCEEDED
from tests.support.injection.case import Case, profile_of, simulated
from tests.support.injection.fixing import FIXED

# These harm no run, only the users who look at runs.
HARMLESS = frozenset({"clock-skew", "db-slow-listing"})
# Doubts about a short or small test, which are expected; all other findings name a bottleneck.
_OF_THE_TEST = frozenset({"censoring", "too-few-samples", "failures"})
# A fault that makes fewer runs fail and slows them less than this does not bind.
LOST, SLOWED = 0.01, 0.1
WAITED_S = 0.5  # longer response time of a submission
_HELPS = 0.5  # of that, for a fix to count as helping
_AS_MUCH = 0.8  # of the injected fault's effect


@dataclass(frozen=True)
class Outcomes:
    """The outcome of a test's runs, as the load generator knows it."""

    lost: float  # share that failed, was rejected, or is still in flight
    mean_s: float  # from due to the reported end; to now for runs in flight
    answered_s: float  # from due to the response, on average
    pods: int  # more than in the counterfactual means repeated work

    def harm(self, counterfactual: "Outcomes") -> float:
        """How much worse this is than the counterfactual; from 1 on, the difference counts."""
        again = self.pods / max(counterfactual.pods, 1) - 1
        slowed = self.mean_s / max(counterfactual.mean_s, 1e-9) - 1
        waited = self.answered_s - counterfactual.answered_s
        return max(again / LOST, waited / WAITED_S, (self.lost - counterfactual.lost) / LOST, slowed / SLOWED)


class Answer(StrEnum):
    """The verdict on the first finding of a test, with a binding fault or without."""

    RIGHT = "right"  # it is the injected fault
    LARGER = "larger"  # it is another bottleneck, and fixing it helps as much
    LESSER = "lesser"  # it is another bottleneck, fixing it helps less; the injected fault follows
    UNJUDGED = "unjudged"  # the injected fault's detector could not judge, and nothing wrong came first
    WRONG = "wrong"
    QUIET = "quiet"  # nothing was named, and nothing injected binds
    OTHER = "other"  # nothing injected binds, and fixing the named bottleneck helps
    FALSE = "false"


@dataclass(frozen=True)
class Named:
    """A finding: its confidence, and whether it is right."""

    name: str
    confidence: float
    right: bool


@dataclass(frozen=True)
class Verdict:
    """One test: the injected faults, those that took effect, the findings in order, and what could not be judged.

    Attributes:
        unjudged: detectors that could not judge.
        larger: the first finding is not the injected fault, and at least as costly.
    """

    injected: tuple[str, ...]
    binding: tuple[str, ...]
    named: tuple[Named, ...]
    unjudged: frozenset[str]
    larger: bool = False

    @property
    def first(self) -> str:
        """The name of the first finding; "" when there is none."""
        return self.named[0].name if self.named else ""

    @property
    def outcome(self) -> "Answer":
        """The verdict on the first finding."""
        true = not self.named or self.named[0].right
        if not self.binding:
            return Answer.QUIET if not self.named else Answer.OTHER if true else Answer.FALSE
        if self.first in self.binding:
            return Answer.RIGHT
        if self.larger:
            return Answer.LARGER
        if true and self.unjudged.intersection(self.binding):
            return Answer.UNJUDGED
        later = {each.name for each in self.named[:3]}
        return Answer.LESSER if true and later.intersection(self.binding) else Answer.WRONG


def outcomes(timeline: Timeline) -> Outcomes:
    """The outcomes of a test's runs."""
    runs = timeline.runs
    good = (runs["state"] == SUCCEEDED).to_numpy(dtype=bool)
    reported = np.fmax(floats(runs, "said_s"), floats(runs, "over_s"))
    reported = np.where(timeline.is_open, timeline.end_s, reported)
    taken = (reported - floats(runs, "due_s"))[np.isfinite(reported)]
    waited = (floats(runs, "answered_s") - floats(runs, "due_s"))[np.isfinite(floats(runs, "answered_s"))]
    return Outcomes(
        lost=float(1 - good.mean()),
        mean_s=float(taken.mean()) if taken.size else float("inf"),
        answered_s=0.0 if timeline.answers_are_results else float(waited.mean()),
        pods=int(timeline.pods["pod"].nunique()),
    )


def judge(case: Case, strength: float, seed: int) -> Verdict:
    """Simulate a case and its counterfactuals, and judge the findings."""
    timeline = simulated(case, strength, seed)
    here = outcomes(timeline if not case.without else simulated(_observed(case), strength, seed))
    harm = {name: here.harm(_without(_observed(case), name, strength, seed)) for name in case.injected}
    binding = tuple(name for name in case.injected if name in HARMLESS or harm[name] >= 1)
    diagnosis = diagnose(timeline)
    named: dict[str, Named] = {}
    for finding in diagnosis.findings:
        if finding.name in _OF_THE_TEST or finding.name in named:
            continue
        # An injected fault exists, whether or not it costs the runs anything.
        right = finding.name in case.injected or _gain(case, finding.name, strength, seed, here) >= _HELPS
        named[finding.name] = Named(finding.name, finding.confidence, right)
    first = next(iter(named), "")
    larger = bool(binding) and bool(first) and first not in binding and (
        _gain(case, first, strength, seed, here) >= _AS_MUCH * max(harm[name] for name in binding)
    )  # fmt: skip
    silent = frozenset(each.name for each in diagnosis.not_judged)
    return Verdict(case.injected, binding, tuple(named.values()), silent, larger)


def _observed(case: Case) -> Case:
    """The case with every source observed: the outcome does not depend on the observation."""
    return replace(case, without=frozenset())


@lru_cache(maxsize=64)
def _without(case: Case, fault: str, strength: float, seed: int) -> Outcomes:
    left = tuple(f for f in case.faults if f.partition("@")[0] != fault)
    return _clean(replace(case, faults=left), strength if left else 1.0, seed)


@lru_cache(maxsize=64)
def _clean(case: Case, strength: float, seed: int) -> Outcomes:
    return outcomes(simulated(case, strength, seed))


def _gain(case: Case, name: str, strength: float, seed: int, here: Outcomes) -> float:
    """How much better the runs would have fared with that bottleneck fixed and the fault of that name removed."""
    if name not in FIXED:
        return 0.0
    case = _observed(case)
    left = replace(case, faults=tuple(f for f in case.faults if f.partition("@")[0] != name))
    return here.harm(_fixed(left, name, strength if left.faults else 1.0, seed))


@lru_cache(maxsize=64)
def _fixed(case: Case, name: str, strength: float, seed: int) -> Outcomes:
    return outcomes(simulated(case, strength, seed, FIXED[name](profile_of(case))))
