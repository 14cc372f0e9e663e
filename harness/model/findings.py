"""The conclusions of the analysis: validity first, then findings, then what could not be judged."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Evidence:
    """One observed fact that supports a finding: a sentence, the number in it, and where to look it up."""

    statement: str
    value: float | None = None
    unit: str = ""
    table: str = ""  # of the run folder: "events", "samples", "spans", …
    filter: str = ""  # selects its rows


@dataclass(frozen=True, slots=True)
class Finding:
    """A bottleneck or a doubt. `name` is also the name of the fault that the simulator injects."""

    name: str
    title: str  # one plain sentence
    confidence: float  # 0..1
    evidence: tuple[Evidence, ...]
    knob: str  # the fix, in words
    commands: tuple[str, ...] = ()  # for the fix, with names from the observed cluster
    severity: float = 0.5  # 0..1, share of the runs or of the time that it costs


@dataclass(frozen=True, slots=True)
class NotJudged:
    """A detector that could not judge, with the reason."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Validity:
    """Whether the test applied the intended load: it did unless there are `reasons`."""

    reasons: tuple[str, ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)

    @property
    def valid(self) -> bool:
        """True if there are no reasons against it."""
        return not self.reasons


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Validity, ranked findings, and what could not be judged."""

    validity: Validity
    findings: tuple[Finding, ...] = ()
    not_judged: tuple[NotJudged, ...] = ()
