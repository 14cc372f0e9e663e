"""What a detector is, and the vocabulary that detectors share.

A detector is a module of this package with ``NAME``, ``NEEDS`` and ``detect(timeline)``. It reads nothing that a real
cluster does not show, and imports no other detector. It may also have:

* ``USES``: other observations that it uses, with what its verdict lacks without each;
* ``TARGETS``: the only platforms that can have this bottleneck;
* ``EXPLAINED_BY``: findings that account for this one, with the confidence that then remains (0 drops it);
* ``OVERSTATED_EARLY``: it takes time at the beginning of runs or of a test, or later runs may show another cause: not
  judged while a test goes on and most of its runs are young, or as long as it costs little;
* ``DOUBT``: it doubts the test, and names no cause in the platform;
* ``BY_CATALOGUE``: its findings have the names of stated causes, and yield to the detectors of these names;
* ``LAST_RESORT``: it is reported only where no other finding names a cause;
* ``SEEN``: where it was seen right, as ``real: ROW`` of benchmarks/results/real.md, ``folder: NAME`` of
  tests/data/real_folders or ``situation: NAME`` of tests/data/situations; without it, its findings are previews.

Third parties register their modules under the entry-point group ``pipeswarm.detectors``.
"""

from collections.abc import Sequence
from typing import Protocol

from harness.analysis.timeline import Bools, Floats, Timeline, distinct, floats
from harness.detectors.capability import Capability
from harness.model import Evidence, Finding, counted, format_bytes, format_duration
from harness.model.text.inert import shell_word

__all__ = [  # all that most detectors need
    "DRAIN_OPTIONS", "FEW_RUNS", "MOST_SLOWED", "Bools", "CannotJudgeError", "Capability", "Detector", "Evidence",
    "Finding", "Floats", "Timeline", "broke", "by_chance", "counted", "distinct", "floats", "format_bytes",
    "format_duration", "moment", "quarters", "shell_word", "slowed",
]  # fmt: skip

MOST_SLOWED = 0.5  # severity of what takes all of the runs' time; more severe is only what loses runs
FEW_RUNS = 30  # with fewer, quantiles and means of runs have no useful interval
# kubectl evicts five pods a second: without the selector it would spend minutes on finished ones.
DRAIN_OPTIONS = "--ignore-daemonsets --delete-emptydir-data --pod-selector='workflows.argoproj.io/completed!=true'"


class Detector(Protocol):
    """One bottleneck, or one doubt about the test. `NEEDS` names the `Capability` values it can't do without."""

    NAME: str
    NEEDS: Sequence[str]

    def detect(self, timeline: Timeline) -> list[Finding]:
        """What supports it, strongest first; empty when nothing does.

        Raises:
            CannotJudgeError: what was observed is not enough.
        """
        ...


class CannotJudgeError(Exception):
    """A detector can't decide from what was observed; the message gives the reason."""


def broke(share: float) -> float:
    """The severity of what made this share of the arrivals fail, or be refused: that costs more than a slow run."""
    return min(1.0, 0.5 + 0.5 * share)


def slowed(share: float) -> float:
    """The severity of what took this share of the runs' time."""
    return min(MOST_SLOWED, 0.5 * share)


def quarters(values: Floats) -> tuple[Floats, Floats]:
    """The first and the last quarter of the values; at least one value each."""
    quarter = max(1, values.size // 4)
    return values[:quarter], values[-quarter:]


def by_chance(p: float) -> str:
    """A p value as text."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def moment(at_s: float) -> str:
    """A point in time as text; observations may precede the first arrival."""
    return f"{format_duration(abs(at_s))} {'into' if at_s >= 0 else 'before'} the test"
