"""Was a finding right? By what the runs would have done without the fault, or with the accused part mended.

Each test has twins with the same seed: one without the fault, and one for each accused part in which that part is no
bottleneck any more. What the fault did, and what mending would bring, is the difference of the two, in runs lost, in
their mean time, in pods and in how long submissions waited for their answer; nothing that a detector computes is used.
A fault that changed nothing does not bind (a cap that is never reached, a wave of evictions between two short steps);
then the right answer is to name nothing. And a platform may have a bottleneck of its own beside the one that was
planted: who names it first is right if mending it would help as much.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

import numpy as np

from benchmarks.injected.case import Case, profile_of, simulated
from benchmarks.injected.fixing import FIXED
from harness.analysis.timeline import Timeline, floats
from harness.detectors import diagnose
from harness.model.phases import SUCCEEDED

# What harms no run, only those who look at them.
HARMLESS = frozenset({"clock-skew", "db-slow-listing"})
# Doubts about a test that is cut or small, which it says itself; all others are accusations.
_OF_THE_TEST = frozenset({"censoring", "too-few-samples", "failures"})
# A fault that makes fewer runs fail and slows them less than this does not bind.
LOST, SLOWED = 0.01, 0.1
WAITED_S = 0.5  # longer for the answer to a submission
_HELPS = 0.5  # of that, to say that mending a part helps
_AS_MUCH = 0.8  # of what the planted fault costs


@dataclass(frozen=True)
class Outcomes:
    """What the runs of a test came to, as their sender knows it."""

    lost: float  # share that failed, was refused, or is not over
    mean_s: float  # from due to when the platform said that it is over; so far, of those that go on
    answered_s: float  # from due to the answer, on average
    pods: int  # that it took: more than in the twin are work done again

    def harm(self, twin: "Outcomes") -> float:
        """How much worse this is than the twin: 1 and more is a difference that counts."""
        again = self.pods / max(twin.pods, 1) - 1
        slowed = self.mean_s / max(twin.mean_s, 1e-9) - 1
        waited = self.answered_s - twin.answered_s
        return max(again / LOST, waited / WAITED_S, (self.lost - twin.lost) / LOST, slowed / SLOWED)


class Answer(StrEnum):
    """What the first finding of a test is worth: of one with a fault that binds, and of one without."""

    RIGHT = "right"  # it is the planted fault
    LARGER = "larger"  # it is another one, and mending that helps as much
    LESSER = "lesser"  # it is another one, mending that helps, if less; the planted fault follows
    UNJUDGED = "unjudged"  # the planted fault's detector said that it can't tell, and nothing wrong came first
    WRONG = "wrong"
    QUIET = "quiet"  # nothing was named, and nothing planted binds
    OTHER = "other"  # nothing planted binds, and mending what was named helps
    FALSE = "false"


@dataclass(frozen=True)
class Named:
    """A finding: how sure it is of itself, and whether it is right."""

    name: str
    confidence: float
    right: bool


@dataclass(frozen=True)
class Verdict:
    """One test: what was planted, what of it took effect, what was named in which order, and what could not be judged.

    Attributes:
        unjudged: detectors that said that they can't tell.
        larger: the first finding is another than the planted one, and at least as costly.
    """

    planted: tuple[str, ...]
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
        """What the answer is worth."""
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
    """Fold the runs."""
    runs = timeline.runs
    good = (runs["state"] == SUCCEEDED).to_numpy(dtype=bool)
    said = np.fmax(floats(runs, "said_s"), floats(runs, "over_s"))
    said = np.where(timeline.is_open, timeline.end_s, said)
    taken = (said - floats(runs, "due_s"))[np.isfinite(said)]
    waited = (floats(runs, "answered_s") - floats(runs, "due_s"))[np.isfinite(floats(runs, "answered_s"))]
    return Outcomes(
        lost=float(1 - good.mean()),
        mean_s=float(taken.mean()) if taken.size else float("inf"),
        answered_s=0.0 if timeline.answers_are_results else float(waited.mean()),
        pods=int(timeline.pods["pod"].nunique()),
    )


def judge(case: Case, strength: float, seed: int) -> Verdict:
    """Test a case, and its twins."""
    timeline = simulated(case, strength, seed)
    here = outcomes(timeline if not case.without else simulated(_observed(case), strength, seed))
    harm = {name: here.harm(_without(_observed(case), name, strength, seed)) for name in case.planted}
    binding = tuple(name for name in case.planted if name in HARMLESS or harm[name] >= 1)
    diagnosis = diagnose(timeline)
    named: dict[str, Named] = {}
    for finding in diagnosis.findings:
        if finding.name in _OF_THE_TEST or finding.name in named:
            continue
        # What was planted is there, whether or not it costs the runs anything.
        right = finding.name in case.planted or _gain(case, finding.name, strength, seed, here) >= _HELPS
        named[finding.name] = Named(finding.name, finding.confidence, right)
    first = next(iter(named), "")
    larger = bool(binding) and bool(first) and first not in binding and (
        _gain(case, first, strength, seed, here) >= _AS_MUCH * max(harm[name] for name in binding)
    )  # fmt: skip
    silent = frozenset(each.name for each in diagnosis.not_judged)
    return Verdict(case.planted, binding, tuple(named.values()), silent, larger)


def _observed(case: Case) -> Case:
    """The case with every source: what happened does not depend on who looked."""
    return replace(case, without=frozenset())


@lru_cache(maxsize=64)
def _without(case: Case, fault: str, strength: float, seed: int) -> Outcomes:
    left = tuple(f for f in case.faults if f.partition("@")[0] != fault)
    return _clean(replace(case, faults=left), strength if left else 1.0, seed)


@lru_cache(maxsize=64)
def _clean(case: Case, strength: float, seed: int) -> Outcomes:
    return outcomes(simulated(case, strength, seed))


def _gain(case: Case, name: str, strength: float, seed: int, here: Outcomes) -> float:
    """How much better the runs would have done with that part mended, the planted fault of that name taken away."""
    if name not in FIXED:
        return 0.0
    case = _observed(case)
    left = replace(case, faults=tuple(f for f in case.faults if f.partition("@")[0] != name))
    return here.harm(_fixed(left, name, strength if left.faults else 1.0, seed))


@lru_cache(maxsize=64)
def _fixed(case: Case, name: str, strength: float, seed: int) -> Outcomes:
    return outcomes(simulated(case, strength, seed, FIXED[name](profile_of(case))))
