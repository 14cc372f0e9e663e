"""Was a finding right? Judged by how the runs would have fared with that cause removed.

Every test is simulated again with the same seed and some of its possible causes removed: injected faults left out, and
parts of the platform fixed (see `causes`). The gain of a removal is the difference in lost
runs, their mean duration and repeated pods; nothing that a detector computes is used. The best single removal says what
the bottleneck is; several may be as good.

Not every removal is simulated: all of them together gain at least as much as each (to a good approximation), so groups
that can't hold the best one are left out.
"""

import heapq
import json
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import astuple, dataclass, replace
from enum import StrEnum
from math import inf
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

from harness.detectors import diagnose
from harness.model import Event, Outcome, Sample, Span, Submission
from harness.model.findings import Finding
from harness.model.phases import LIST_SECONDS, PULLING, SUCCEEDED
from tests.support.injection.case import Case, profile_of, records, run_in, simulated
from tests.support.injection.causes import GOES_BY, causes, fixes
from tests.support.injection.installations import Installation
from tests.support.injection.live import midway

Gain = Callable[[Iterable[str]], float]  # of removing these causes together

# It harms no run, only the users who look at runs, where a page takes that long.
HARMLESS, _PAGE_S = frozenset({"db-slow-listing"}), 2.0
# Doubts about a test, which may well be there, and waits of which no cause is named; all others name a bottleneck.
OF_THE_TEST = frozenset({
    "caching", "censoring", "clock-skew", "credentials-refused", "failures", "foreign-load", "generator-lag", "inconsistent-records",
    "missed-arrivals", "observer-gaps", "too-few-samples", "unexplained-wait",
})  # fmt: skip
# A cause binds if its removal spares this share of the runs from being lost, of their time, or of the pods.
LOST, SLOWED, REPEATED = 0.01, 0.15, 0.02
_HELPS = 0.5  # of that, for a finding to be true
_AS_GOOD = 0.8  # of the best removal's gain
_PATIENCE = 2.0  # times the longest run, or pull, that ended
_EARLY = (0.3, 0.6)  # shares of the test's time at which the live view is judged

# Findings that name an injected fault more precisely than its name, and are removed with it.
MORE_PRECISE = {
    "controller-qps": "controller-backlog",
    "autoscaler-at-max": "nodes-exhausted",
    "steps-end-late": "store-slow",  # as precise as it can be where the store itself is not observed
}


@dataclass(frozen=True)
class Outcomes:
    """The outcome of a test's runs, as the load generator knows it."""

    lost: float  # share that failed, was rejected, or is in flight for so long, or so stuck, that it may never end
    mean_s: float  # from due to the reported end; to now for runs in flight
    pods: int  # more than with a cause removed means repeated work

    def gain(self, without: "Outcomes") -> float:
        """How much better the runs fare without a cause; from 1 on, it binds."""
        repeated = 1 - without.pods / max(self.pods, 1)
        saved = 1 - without.mean_s / max(self.mean_s, 1e-9)
        # Runs that are lost end early, and have fewer pods; nobody gains by losing them sooner.
        spared, kept = self.lost - without.lost, 1 - self.lost
        return max(
            spared / LOST,
            kept * saved / SLOWED if spared > -LOST else 0.0,
            kept * repeated / REPEATED if spared >= 0 else 0.0,
        )


class Truth(StrEnum):
    """What a test's counterfactuals say."""

    BINDS = "binds"  # removing a single cause helps
    SEVERAL = "several"  # only removing several at once helps
    SLIGHT = "slight"  # it helps a little
    QUIET = "quiet"  # nothing helps


class Answer(StrEnum):
    """The verdict on a test's findings."""

    RIGHT = "right"  # removing what the first finding names gains 80 % of the best removal's
    IN_3 = "in 3"  # that of the second or third does
    UNJUDGED = "can't tell"  # the best removal's detector says so, and no finding is false
    SILENT = "silent"  # a cause binds, and no finding names a bottleneck
    WRONG = "wrong"
    QUIET = "quiet"  # nothing binds, and the first finding is true, or there is none
    FALSE = "false"  # nothing binds, and the first finding is false


@dataclass(frozen=True)
class Named:
    """A finding: its confidence, the gain of removing what it names, and whether it is true."""

    name: str
    confidence: float
    gain: float
    right: bool


@dataclass(frozen=True)
class Early:
    """A finding made while the test went on, and whether the whole test confirms it."""

    name: str
    confirmed: bool


@dataclass(frozen=True)
class Verdict:
    """One test: its injected faults, its truth, the findings in order, and what could not be judged.

    Attributes:
        best: names of the best removal, with its gain.
        unjudged: detectors that could not judge.
        early: findings that the live view showed in the middle of the test.
    """

    injected: tuple[str, ...]
    truth: Truth
    best: tuple[str, float]
    named: tuple[Named, ...]
    unjudged: frozenset[str]
    early: tuple[Early, ...] = ()

    @property
    def first(self) -> str:
        """The name of the first finding; "" when there is none."""
        return self.named[0].name if self.named else ""

    @property
    def answer(self) -> Answer:
        """The verdict on the findings."""
        if self.truth is not Truth.BINDS:
            return Answer.QUIET if not self.named or self.named[0].right else Answer.FALSE
        good = [self._as_good(each) for each in self.named[:3]]
        if any(good):
            return Answer.RIGHT if good[0] else Answer.IN_3
        if self.best[0] in self.unjudged and all(each.right for each in self.named[:1]):
            return Answer.UNJUDGED
        return Answer.WRONG if self.named else Answer.SILENT

    def _as_good(self, found: Named) -> bool:
        name, gain = self.best
        return found.name == name or found.gain >= _AS_GOOD * gain


def outcomes(records: Iterable[object]) -> Outcomes:
    """The outcomes of a test's runs, from its exact and complete records."""
    due: dict[str | None, int] = {}
    ended: dict[str | None, tuple[int, bool]] = {}
    pods: set[str] = set()
    pulling: dict[str, int] = {}  # by run: since when, of pulls that go on
    arrivals = last = longest = 0
    for record in records:
        match record:
            case Submission(outcome=outcome, run=run, due_at=due_at):
                arrivals += 1
                if outcome is Outcome.ACCEPTED:
                    due[run] = due_at
            case Event(kind="Run", object=run, reason=state, at=at):
                ended[run] = (at, state == SUCCEEDED)
                last = max(last, at)
            case Span(run=run, step=step, phase=phase, started_at=since, ended_at=until) if step:
                pods.add(step)
                if phase == PULLING and until is None:
                    pulling[run] = min(pulling.get(run, since), since)
                elif phase == PULLING and until is not None:
                    longest = max(longest, until - since)
            case Sample(at=at):
                last = max(last, at)
    taken = {run: (ended.get(run, (last, False))[0] - due_at) / 1e9 for run, due_at in due.items()}
    # A run that the test gave up is slow rather than lost while others took about as long.
    patience_s = _PATIENCE * max((taken[run] for run in ended if run in taken), default=0.0)
    # One whose pod pulls for longer than any pull took waits for an image that does not exist.
    stuck = {run for run, since in pulling.items() if last - since > _PATIENCE * longest}
    good = sum(well for _, well in ended.values())
    slow = sum(run not in ended and run not in stuck and took_s <= patience_s for run, took_s in taken.items())
    return Outcomes(1 - (good + slow) / max(arrivals, 1), fmean(taken.values()) if taken else inf, len(pods))


def judge(case: Case, strength: float, seed: int) -> Verdict:
    """Simulate a case on its named platform and its counterfactuals, and judge the findings."""
    return judged(Installation(case, profile_of(case), strength, seed))


def judged(test: Installation, place: Path | None = None) -> Verdict:
    """Simulate a test and its counterfactuals, and judge the findings.

    What was simulated stays in `place`, and is not simulated again: that judges changed detectors quickly.
    """
    if place is None:
        with TemporaryDirectory() as passing:
            return judged(test, Path(passing))
    timeline = simulated(test.case, test.strength, test.seed, test.profile, place)
    diagnosis = diagnose(timeline)
    early = _early(place, {finding.name for finding in diagnosis.findings})
    gain = gains(test, place)
    possible = causes(test.profile, test.case.injected)
    found = tuple(_named(diagnosis.findings, test, gain))
    removal, most = largest(possible, gain, [each.name for each in found if each.name in possible])
    # What was injected is the cause, where removing another, too, makes up for it: a slow replica, with four more.
    injected = (name for name in test.case.injected if name in possible and gain([name]) >= most > 0)
    removal = next(injected, removal)
    best = GOES_BY.get(removal, removal), most
    pages = timeline.metric(LIST_SECONDS)["value"]
    harmless = [name for name in test.case.injected if name in HARMLESS and len(pages) and pages.max() >= _PAGE_S]
    truth = _truth(best[1], gain(possible))
    if truth is not Truth.BINDS and harmless:
        truth, best = Truth.BINDS, (harmless[0], 0.0)
    silent = frozenset(each.name for each in diagnosis.not_judged)
    return Verdict(test.case.injected, truth, best, found, silent, early)


def _early(place: Path, final: Container[str]) -> tuple[Early, ...]:
    """The findings of the live view, compared with those of the whole test."""
    found = (bottlenecks(diagnose(midway(run_in(place), at), going_on=True).findings) for at in _EARLY)
    return tuple(Early(name, confirmed=name in final) for names in found for name in names)


def gains(test: Installation, place: Path | None = None) -> Gain:
    """The gains of removing causes from a test, each simulated once; their outcomes stay in `place`."""
    kept = place / "outcomes.json" if place is not None else None
    known: dict[str, Outcomes] = {}
    if kept is not None and kept.exists():
        known = {names: Outcomes(*each) for names, each in json.loads(kept.read_bytes()).items()}

    def when_without(removed: Iterable[str]) -> Outcomes:
        names = " ".join(sorted(set(removed)))
        if names not in known:
            known[names] = _run(without(test, names.split()))
            if kept is not None:
                kept.write_text(json.dumps({name: astuple(each) for name, each in known.items()}), encoding="utf-8")
        return known[names]

    return lambda removed: when_without(()).gain(when_without(removed))


def _run(test: Installation) -> Outcomes:
    # The runs' ends are stamped by the platform's clock.
    right = tuple(fault for fault in test.case.faults if not fault.startswith("clock-skew"))
    case = replace(test.case, faults=right)
    return outcomes(records(case, test.strength, test.seed, test.profile, sample_s=max(60.0, case.over_s / 20)))


def bottlenecks(findings: Iterable[Finding]) -> dict[str, Finding]:
    """The findings that name a bottleneck, each name once, in order."""
    found: dict[str, Finding] = {}
    for each in findings:
        if each.name not in OF_THE_TEST:
            found.setdefault(each.name, each)
    return found


def _named(findings: Iterable[Finding], test: Installation, gain: Gain) -> Iterable[Named]:
    """The findings judged; an injected fault is there, whether or not it costs anything."""
    for name, finding in bottlenecks(findings).items():
        there = name in test.case.injected
        gained = gain([name]) if there or name in fixes(test.profile) else 0.0
        yield Named(name, finding.confidence, gained, there or gained >= _HELPS)


def _truth(best: float, together: float) -> Truth:
    if best >= 1:
        return Truth.BINDS
    if best >= _HELPS:
        return Truth.SLIGHT
    return Truth.SEVERAL if together >= 1 else Truth.QUIET


def without(test: Installation, removed: Iterable[str]) -> Installation:
    """The same test with these causes removed."""
    names, profile = frozenset(removed), test.profile
    for name, fix in fixes(test.profile).items():
        profile = fix(profile) if name in names else profile
    injected = names | {other[name] for other in (GOES_BY, MORE_PRECISE) for name in names if name in other}
    left = tuple(fault for fault in test.case.faults if fault.partition("@")[0] not in injected)
    return replace(test, case=replace(test.case, faults=left), profile=profile)


def largest(possible: Sequence[str], gain: Gain, first: Iterable[str] = ()) -> tuple[str, float]:
    """The single removal with the largest gain; by bisection of groups, the most promising first.

    Args:
        possible: all causes; at least one.
        gain: of removing some of them together, taken as the upper limit of each one's.
        first: those to try first.
    """
    best = max(((gain([name]), name) for name in first), default=(-1.0, possible[0]))
    groups = [(-gain(possible), tuple(possible))]
    while groups and -groups[0][0] > best[0]:
        limit, names = heapq.heappop(groups)
        if len(names) == 1:
            best = max(best, (-limit, names[0]))
            continue
        half = len(names) // 2
        for part in (names[:half], names[half:]):
            heapq.heappush(groups, (-gain(part), part))
    return best[1], best[0]
