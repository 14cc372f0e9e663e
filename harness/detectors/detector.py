"""What a detector is, where detectors are found, and how their findings become a diagnosis.

A detector is a module with ``NAME``, ``NEEDS`` and ``detect(timeline)``, and with ``TARGETS`` where only these
platforms have what it looks for. It reads nothing that a real cluster would
not show. Every file of this package that has a ``detect`` is one; third parties register theirs under the entry-point
group ``pipeswarm.detectors``.
"""

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from typing import Protocol, cast

import numpy as np

from harness.analysis.timeline import Floats, Timeline, floats
from harness.analysis.validity import validity
from harness.model.findings import Diagnosis, Finding, NotJudged
from harness.model.phases import LIST_SECONDS, NODE_CPU_CORES, STORE_AVAILABLE_BYTES
from harness.model.units import format_duration

# What a detector may need, and what to say when it is missing.
SUBMISSIONS, RUNS, PODS, NODES, POD_EVENTS, STORE, NODE_CPU, SERVICE, LISTING = (
    "submissions", "runs", "pods", "nodes", "pod events", "store", "node cpu", "service", "listing",
)  # fmt: skip

_SOURCES: Mapping[str, tuple[Callable[[Timeline], bool], str]] = {
    SUBMISSIONS: (lambda t: len(t.runs) > 0, "no submission was recorded"),
    RUNS: (
        lambda t: bool(t.is_over.any() or np.isfinite(floats(t.runs, "created_s")).any()),
        "no run was observed on the platform",
    ),
    PODS: (lambda t: len(t.pods) > 0, "no pods were observed: no access to Kubernetes, or not to their namespace"),
    NODES: (lambda t: len(t.nodes) > 0, "no nodes were observed: no access to Kubernetes, or no right to list nodes"),
    POD_EVENTS: (
        lambda t: bool((t.events["kind"] == "Pod").any()),
        "no events of pods were observed: no access to Kubernetes, or no right to list events",
    ),
    STORE: (
        lambda t: len(t.metric(STORE_AVAILABLE_BYTES)) > 0,
        "the free space of the artifact store's volume was not observed (kubelet statistics or the store's metrics)",
    ),
    NODE_CPU: (
        lambda t: len(t.metric(NODE_CPU_CORES)) > 0,
        "the nodes' CPU use was not observed (metrics-server or Prometheus)",
    ),
    LISTING: (lambda t: len(t.metric(LIST_SECONDS)) > 0, "nobody measured how long listing the runs takes"),
    SERVICE: (
        lambda t: t.executed,
        "no execution told its phases: the target's runs are not executions of a service that answers with the result",
    ),
}
# What a platform's runs never show: there, nothing could have been judged by it.
_NEVER: Mapping[str, frozenset[str]] = {"kfp": frozenset({SERVICE})}


class Detector(Protocol):
    """One bottleneck or doubt. `NAME` is the name under which the simulator plants the same fault."""

    NAME: str
    NEEDS: tuple[str, ...]

    def detect(self, timeline: Timeline) -> list[Finding]:
        """What speaks for it, strongest first; empty when nothing does.

        Raises:
            CannotJudgeError: what was observed does not suffice.
        """
        ...


class CannotJudgeError(Exception):
    """A detector can't tell from what was observed; the message says why."""


# How a detector that raised is reported; no test of ours may see it.
DEFECT = "a defect of this detector"


def detectors() -> list[Detector]:
    """All detectors, by name."""
    package = importlib.import_module(__package__)
    modules = [importlib.import_module(f"{__package__}.{m.name}") for m in pkgutil.iter_modules(package.__path__)]
    found = [cast("Detector", module) for module in modules if hasattr(module, "detect")]
    found += [cast("Detector", entry.load()) for entry in entry_points(group="pipeswarm.detectors")]
    return sorted(found, key=lambda detector: detector.NAME)


def diagnose(timeline: Timeline) -> Diagnosis:
    """Ask every detector; the findings come ranked, what costs most with most certainty first."""
    findings: list[Finding] = []
    silent: list[NotJudged] = []
    for detector in detectors():
        if not _concerns(detector, timeline.plan.target):
            continue  # nothing that could have been judged
        lacking = [why for need in detector.NEEDS for there, why in [_SOURCES[need]] if not there(timeline)]
        if lacking:
            silent.append(NotJudged(detector.NAME, "; ".join(lacking)))
            continue
        try:
            findings += detector.detect(timeline)
        except CannotJudgeError as why:
            silent.append(NotJudged(detector.NAME, str(why)))
        except Exception as defect:  # noqa: BLE001  # one detector's defect must not cost the user the whole report
            silent.append(NotJudged(detector.NAME, f"{DEFECT}: {type(defect).__name__}: {defect}"))
    ranked = sorted(findings, key=lambda f: (-f.confidence * f.severity, f.name))
    return Diagnosis(validity(timeline), tuple(ranked), tuple(silent))


def _concerns(detector: Detector, target: str) -> bool:
    """Whether the platform has what the detector looks for; else there is nothing that it could not judge."""
    return target in getattr(detector, "TARGETS", (target,)) and _NEVER.get(target, frozenset()).isdisjoint(
        detector.NEEDS
    )


def broke(share: float) -> float:
    """The severity of what made this share of the runs fail: a run that fails costs more than one that waits."""
    return min(1.0, 0.5 + 0.5 * share)


def slowed(share: float) -> float:
    """The severity of what took this share of the runs' time."""
    return min(0.5, 0.5 * share)


def quarters(values: Floats) -> tuple[Floats, Floats]:
    """The first quarter of the values and the last; at least one value each."""
    quarter = max(1, values.size // 4)
    return values[:quarter], values[-quarter:]


def by_chance(p: float) -> str:
    """A p value, for people."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def moment(at_s: float) -> str:
    """When it was, for people; what is observed may be older than the first arrival."""
    return f"{format_duration(abs(at_s))} {'into' if at_s >= 0 else 'before'} the test"
