"""From which sources each detector works: what it declares, and what it says of its injected case.

`make reference` writes the table of docs/observation.md from it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from harness.detectors import Detector, detectors, diagnose
from harness.detectors.capability import Access, Capability
from harness.detectors.diagnosis import uses
from harness.model import Event, Span
from harness.model.findings import Diagnosis
from harness.model.phases import PAST, SCRAPED
from tests.support.injected.every_fault import INJECTED, NAMED
from tests.support.injection.seen import MISSING_WITH, SOURCES, seen
from tests.support.timelines import T0, Story

LEVELS = tuple(MISSING_WITH)
# What no series shows: after the fact, with the objects gone, there is the platform's API and a Prometheus.
GONE = {Capability.POD_EVENTS: "pod events", Capability.WORKFLOWS: "workflows", Capability.LOGS: "step logs"}
HEADING = (
    "| detector | API only | + kubeconfig | + metrics-server | + Prometheus | after the fact | without … its verdict lacks … |",
    "|---|---|---|---|---|---|---|",
)


def shown(capability: Capability, level: Access) -> bool:
    """Whether it is shown by this level or one before it."""
    return not {*takewhile(lambda each: each != level, LEVELS), level}.isdisjoint(capability.shown_by)


def missing(detector: Detector, level: Access) -> Mapping[Capability, str]:
    """What a detector uses and does not see at this level, with what its verdict lacks."""
    return {each: loses for each, loses in uses(detector).items() if not shown(each, level)}


def changes(detector: Detector) -> tuple[Access, ...]:
    """The levels at which a detector sees more than at the one before; the first one is always among them."""
    counts = [len(missing(detector, level)) for level in LEVELS]
    return tuple(level for k, level in enumerate(LEVELS) if not k or counts[k] != counts[k - 1])


def at_level(records: Iterable[Any], level: Access, *, answers: bool = False) -> Iterator[Any]:
    """The records of this level's sources. KFP's API gives no reason for a failed run; `answers` of a service do."""
    for each in seen(records, without=MISSING_WITH[level], whole=False):
        yield replace(each, message="") if isinstance(each, Event) and each.kind == "Run" and not answers else each


def diagnosed(story: Story, level: Access, place: Path) -> Diagnosis:
    """The diagnosis of a handwritten test from the sources of this level."""
    story.records = list(at_level(story.records, level, answers=story.target == "hetida"))
    return diagnose(story.timeline(place))


def explained(detector: Detector, place: Path) -> str:
    """The outcome after the fact."""
    story = INJECTED[detector.NAME]()
    story.records = list(_past(story.records))
    diagnosis = diagnose(story.timeline(place))
    found = word(detector, diagnosis, missed=not GONE.keys().isdisjoint(uses(detector)))
    return found or ("no" if detector.NAME in {each.name for each in diagnosis.judged_with_less} else "")


def _past(records: Iterable[Any]) -> Iterator[Any]:
    """What is left of a test: pulls are inferred from starts, and of what was stated only states without a message."""
    gone = [SOURCES[name] for name in GONE.values()]
    yield Event(T0, "Observer", PAST, SCRAPED, "pods are known by scrapes")
    for each in seen(records, without=frozenset({"workflows", "step logs"}), whole=True):
        if isinstance(each, Span) and each.reason:
            yield replace(each, reason=each.reason.partition(":")[0] if each.reason.startswith("waiting/") else "")
        elif isinstance(each, Event) and each.kind == "Pod":
            yield replace(each, source=PAST)
        elif not any(of_source(each) for of_source in gone):
            yield each


def word(detector: Detector, diagnosis: Diagnosis, *, missed: bool) -> str:
    """The outcome in a cell of the table; "" where the fault was neither found nor left open.

    `missed` is whether the detector uses what was not there to see.
    """
    if detector.NAME in {each.name for each in diagnosis.not_judged}:
        return "no"
    if NAMED.get(detector.NAME, detector.NAME) not in {each.name for each in diagnosis.findings}:
        return ""
    return "less" if missed else "yes"


def row(detector: Detector, words: Mapping[Access, str], after: str) -> str:
    """The table's line, from the outcomes at the levels where they may change."""
    cells: list[str] = []
    for level in LEVELS:
        cells.append(words[level] if level in words else cells[-1])
    loses = "; ".join(f"{each} ({loses})" for each, loses in uses(detector).items() if loses)
    return f"| `{detector.NAME}` | {' | '.join((*cells, after))} | {loses} |"


def table() -> str:
    """The table of all detectors."""
    with TemporaryDirectory() as place:
        return "\n".join((*HEADING, *(_line(detector, Path(place) / detector.NAME) for detector in detectors())))


def _line(detector: Detector, place: Path) -> str:
    words = {}
    for level in changes(detector):
        diagnosis = diagnosed(INJECTED[detector.NAME](), level, place / level.name)
        words[level] = word(detector, diagnosis, missed=bool(missing(detector, level)))
    return row(detector, words, explained(detector, place / "after"))
