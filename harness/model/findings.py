"""What the analysis concludes: validity first, then findings, then what could not be judged."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Evidence:
    """One observed fact that speaks for a finding: a sentence, the number in it, and where it can be looked up."""

    statement: str
    value: float | None = None
    unit: str = ""
    table: str = ""  # of the run folder: "events", "samples", "spans", …
    filter: str = ""  # what to look for in that table


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


@dataclass(frozen=True, slots=True)
class NotJudged:
    """A detector that could not judge, and why."""

    name: str
    reason: str


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
        """True when nothing speaks against it."""
        return not self.reasons


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Validity first, then findings ranked, then what could not be judged and why."""

    validity: Validity
    findings: tuple[Finding, ...] = ()
    not_judged: tuple[NotJudged, ...] = ()
