"""How the findings of all detectors become a diagnosis."""

import importlib
import pkgutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import entry_points
from typing import cast

from harness.analysis.timeline import remembered
from harness.analysis.validity import validity
from harness.detectors.detector import CannotJudgeError, Capability, Detector, Evidence, Timeline, counted, slowed
from harness.detectors.ranking import ranked, unexplained
from harness.model.findings import DOUBT, PREVIEW, Diagnosis, Finding, JudgedWithLess, Lack, NotJudged
from harness.model.phases import GAP
from harness.reasons import builtin

_OF_KUBERNETES = frozenset({Capability.PODS, Capability.NODES, Capability.POD_EVENTS})
_OF_PODS = frozenset(Capability) - {Capability.SUBMISSIONS, Capability.RUNS}
# What a platform's runs never show: a detector that needs it has nothing to judge there.
_NEVER_SHOWN: Mapping[str, frozenset[str]] = {
    "kfp": frozenset({Capability.EXECUTIONS}),
    "argo": frozenset({Capability.EXECUTIONS, Capability.LOGS}),
    "hetida": frozenset({Capability.WORKFLOWS, Capability.LOGS}),
    "command": _OF_PODS,
    "dask_tenants": _OF_PODS,
}
_ENDED = 10  # runs, for the shares of a run's first phases
# Executions of which the quickest do not decide, or this share of all.
_ANSWERED, _MOST = 1000, 0.9
_LASTS = slowed(0.15)  # severity of what still counts at the end, although it weighs most at the beginning
# How a detector that raised is reported.
DEFECT = "internal error in this detector"


def detectors() -> list[Detector]:
    """All detectors by name: every module of these rooms with a `detect`, and those of third parties."""
    return [*_detectors_on(tuple(sys.path))]


@cache  # a test is diagnosed every few seconds while it goes on
def _detectors_on(_: tuple[str, ...]) -> list[Detector]:
    package = importlib.import_module(__package__)
    names = (module.name for module in pkgutil.walk_packages(package.__path__, f"{__package__}."))
    modules = [importlib.import_module(name) for name in names]
    found = [cast("Detector", module) for module in modules if hasattr(module, "detect")]
    found += [cast("Detector", entry.load()) for entry in entry_points(group="pipeswarm.detectors")]
    return sorted(found, key=lambda detector: detector.NAME)


def diagnose(timeline: Timeline, *, going_on: bool = False) -> Diagnosis:
    """Run every detector that applies to the target; findings come ranked, the costliest and surest first.

    Args:
        timeline: what was observed.
        going_on: the test goes on: what early runs exaggerate is not judged while most runs are young,
            or as long as it costs little.
    """
    asked = [detector for detector in detectors() if _applies(detector, timeline.plan.target)]
    findings: list[Finding] = []
    by_catalogue: list[Finding] = []  # a detector of its own goes before
    not_judged: list[NotJudged] = []
    with_less: list[JudgedWithLess] = []
    for detector in asked:
        lacked, early = _lacked(detector, timeline), going_on and getattr(detector, "OVERSTATED_EARLY", False)
        try:
            if early:
                _require_ended_runs(timeline)
            found = _judge(detector, timeline)
            kept = _lasting(found) if early else found
            (by_catalogue if getattr(detector, "BY_CATALOGUE", False) else findings).extend(kept)
            if lacked:
                with_less.append(JudgedWithLess(detector.NAME, lacked))
        except CannotJudgeError as reason:
            not_judged.append(NotJudged(detector.NAME, str(reason), lacked))
        except Exception as error:  # noqa: BLE001  # one detector's defect must not cost the user the whole report
            not_judged.append(NotJudged(detector.NAME, f"{DEFECT}: {type(error).__name__}: {error}"))
    found_apart = {finding.name for finding in findings}
    told = {finding.name for finding in by_catalogue}  # in words, whatever else was not observed
    findings += [finding for finding in by_catalogue if finding.name not in found_apart]
    explained_by = {row.name: dict.fromkeys(row.yields_to, 0.0) for row in timeline.catalogue.rows}
    explained_by |= {detector.NAME: getattr(detector, "EXPLAINED_BY", {}) for detector in asked}
    kept = _without_last_resorts([*unexplained(findings, explained_by)], asked)
    placed = ranked(_with_status(finding, asked, timeline) for finding in kept)
    left = tuple(judged for judged in not_judged if judged.name not in told)
    return Diagnosis(validity(timeline), placed, left, tuple(with_less))


def _with_status(finding: Finding, asked: Sequence[Detector], timeline: Timeline) -> Finding:
    """Built-in findings are previews until they were seen right; a user's rows and detectors are the user's own."""
    of_row = timeline.catalogue.named(finding.name)
    mine = next((detector for detector in asked if finding.name == detector.NAME), None)
    if mine is not None and not getattr(mine, "BY_CATALOGUE", False):
        if getattr(mine, "DOUBT", False):
            return replace(finding, status=DOUBT)
        seen = getattr(mine, "SEEN", ()) or not str(getattr(mine, "__name__", "")).startswith(f"{__package__}.")
    else:
        seen = of_row is None or of_row.seen or builtin().named(finding.name) is not of_row
    return finding if seen else replace(finding, status=PREVIEW)


def _without_last_resorts(findings: Sequence[Finding], asked: Sequence[Detector]) -> tuple[Finding, ...]:
    """The findings; those of last resort only where nothing else names a cause."""
    last, doubts = (
        {detector.NAME for detector in asked if getattr(detector, kind, False)} for kind in ("LAST_RESORT", "DOUBT")
    )
    named = any(finding.name not in last | doubts for finding in findings)
    return tuple(finding for finding in findings if not named or finding.name not in last)


def uses(detector: Detector) -> Mapping[Capability, str]:
    """Everything that a detector uses, with what its verdict lacks without it; "" where there is none without it."""
    needs = dict.fromkeys(map(Capability, detector.NEEDS), "")
    return needs | {Capability(name): loses for name, loses in getattr(detector, "USES", {}).items()}


def _lacked(detector: Detector, timeline: Timeline) -> tuple[Lack, ...]:
    never = _NEVER_SHOWN.get(timeline.plan.target, frozenset())
    return tuple(
        Lack(each, each.sources(timeline), loses)
        for each, loses in uses(detector).items()
        if each not in never and not each.observed(timeline)
    )


def _judge(detector: Detector, timeline: Timeline) -> list[Finding]:
    needs = [Capability(name) for name in detector.NEEDS]
    if missing := [need.reason(timeline) for need in needs if not need.observed(timeline)]:
        raise CannotJudgeError("; ".join(missing))
    unseen = _gaps(timeline) if set(needs) & _OF_KUBERNETES else ()
    return [replace(finding, evidence=(*finding.evidence, *unseen)) for finding in detector.detect(timeline)]


def _require_ended_runs(timeline: Timeline) -> None:
    """Raise `CannotJudgeError` while most of the runs that began have not ended.

    A service answers when an execution ends: what still waits there is not known, and the first answers waited least.
    """
    over, still = int(timeline.is_over.sum()), int(timeline.is_open.sum())
    if timeline.executed and over < min(_ANSWERED, _MOST * timeline.plan.intended):
        raise CannotJudgeError(f"only {counted(over, 'run')} of {timeline.plan.intended:,} ended so far")
    if over < max(_ENDED, still):
        raise CannotJudgeError(f"{counted(over, 'run')} ended so far, and {counted(still, 'run')} just began")


def _lasting(findings: Sequence[Finding]) -> Sequence[Finding]:
    """The findings that are likely to last; raise `CannotJudgeError` where there are only others."""
    kept = [finding for finding in findings if finding.severity >= _LASTS]
    if findings and not kept:
        raise CannotJudgeError("there are signs of it, which cost too little so far to show whether they last")
    return kept


def _applies(detector: Detector, target: str) -> bool:
    """Whether the platform can have this bottleneck and can show it."""
    targets = getattr(detector, "TARGETS", (target,))
    return target in targets and _NEVER_SHOWN.get(target, frozenset()).isdisjoint(detector.NEEDS)


@remembered
def _gaps(timeline: Timeline) -> tuple[Evidence, ...]:
    """One statement for findings that rest on pods, nodes or their events; empty where the observation is whole."""
    missed = timeline.events_of("Observer", GAP)
    missed = missed[missed["object"].str.startswith("kubernetes").to_numpy(dtype=bool)]
    if not len(missed):
        return ()
    name, message = str(missed["object"].iat[0]), str(missed["message"].iat[0])
    text = f"not seen: what happened in {counted(len(missed), 'gap')} of the observation ({name}: {message})"
    return (Evidence(text, float(len(missed)), "", "events", "kind = Observer"),)
