"""What the analysis concludes: validity first, then findings, then what could not be judged."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

# Commands that only read, alone or through filters.
_LOOKS = re.compile(
    r"kubectl (?:-n \S+ )?(?:get|describe|logs|top|explain|events|auth can-i)\b[^|;&>`]*"
    r"(?:\| *(?:grep|wc|head|tail|sort)\b[^|;&>`]*)*(?:#.*)?"
)


@dataclass(frozen=True, slots=True)
class Evidence:
    """One observed fact that supports a finding: a sentence, the number in it, and where it can be looked up."""

    statement: str
    value: float | None = None
    unit: str = ""
    table: str = ""  # of the run folder: "events", "samples", "spans", …
    filter: str = ""  # what to look for in that table


# Of a finding: seen right on real parts or in recorded situations; on drawn ones only; it is about the test itself.
STABLE, PREVIEW, DOUBT = "stable", "preview", "doubt"


@dataclass(frozen=True, slots=True)
class Finding:
    """A bottleneck, or a doubt about the test; the simulator's fault that injects it has the same `name`."""

    name: str
    title: str  # one sentence a manager understands
    confidence: float  # 0..1
    evidence: tuple[Evidence, ...]
    fix: str  # how to fix it, in words
    commands: tuple[str, ...] = ()  # to fix it, with names from the observed cluster
    severity: float = 0.5  # 0..1, share of the runs or of the time that it cost
    status: str = STABLE

    @property
    def sure(self) -> str:
        """Its confidence, and that it is a preview."""
        return f"confidence {self.confidence:.0%}" + (
            ", preview: not yet seen on a real platform" * (self.status == PREVIEW)
        )

    @property
    def looks(self) -> tuple[str, ...]:
        """The commands that only show something."""
        return tuple(command for command in self.commands if _LOOKS.fullmatch(command))

    @property
    def changes(self) -> tuple[str, ...]:
        """The commands that change or restart something, or that may."""
        return tuple(command for command in self.commands if not _LOOKS.fullmatch(command))


@dataclass(frozen=True, slots=True)
class Lack:
    """A kind of observation that was missing, what would show it, and what the verdict lacks without it."""

    observation: str  # "node cpu"
    sources: str  # "metrics-server or Prometheus"
    loses: str = ""  # nothing is said where there is no verdict without it


@dataclass(frozen=True, slots=True)
class NotJudged:
    """A detector that could not judge, why, and which of the observations that it uses were missing."""

    name: str
    reason: str
    lacked: tuple[Lack, ...] = ()


@dataclass(frozen=True, slots=True)
class JudgedWithLess:
    """A detector that judged without some of the observations that it uses."""

    name: str
    lacked: tuple[Lack, ...]


_OR = " or "


def by_sources(judgements: Iterable[NotJudged | JudgedWithLess]) -> dict[str, list[str]]:
    """The names of detectors by the sources of what they lacked; under "" those that lacked nothing."""
    found: dict[str, list[str]] = {}
    for judgement in judgements:
        found.setdefault(_all_of(dict.fromkeys(lack.sources for lack in judgement.lacked)), []).append(judgement.name)
    return found


def _all_of(sources: Iterable[str]) -> str:
    """What shows everything, where each of `sources` is one way or several: "A, and B or C"."""
    ways = {source: frozenset(source.split(_OR)) for source in sources}
    # "A or B" goes without saying where A is needed anyway.
    needed = [way for way in ways if not any(other < ways[way] for other in ways.values())]
    return (", and " if any(_OR in each for each in needed) else " and ").join(needed)


@dataclass(frozen=True, slots=True)
class Validity:
    """Did the test really apply the load it promised? Without `reasons` it did.

    `ambiguous` is the reason, if there is one, why records can't be attributed to runs: then findings are doubtful.
    """

    reasons: tuple[str, ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)
    ambiguous: str = ""

    @property
    def valid(self) -> bool:
        """True when nothing contradicts it."""
        return not self.reasons


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Validity first, then findings ranked, then what could not be judged or not fully, and why."""

    validity: Validity
    findings: tuple[Finding, ...] = ()
    not_judged: tuple[NotJudged, ...] = ()
    judged_with_less: tuple[JudgedWithLess, ...] = ()
