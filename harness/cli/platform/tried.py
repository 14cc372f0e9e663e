"""How the documents of a corpus fared, and the table of them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from harness.cli import printing

RAN, FAILED, WAITS, REFUSED, BUG = "ran", "failed", "waits", "refused", "bug"


@dataclass(frozen=True, slots=True)
class Tried:
    """How a document fared. `run` is ran, failed (as it may), waits (for what the platform lacks), refused or bug."""

    file: str
    kind: str  # argo or kfp
    run: str
    pods: int = 0
    seconds: float = 0.0
    note: str = ""


def table(tried: Sequence[Tried]) -> str:
    """All documents, and how many of each kind come to an end."""
    rows = [("file", "run", "pods", "seconds", "note")]
    rows += [(each.file, each.run, str(each.pods), f"{each.seconds:g}", _short(each.note)) for each in tried]
    lines = printing.table(rows, left=(0, 1, 4))
    for kind in sorted({each.kind for each in tried}):
        counts = Counter(each.run for each in tried if each.kind == kind)
        whole = sum(counts.values())
        ended = counts[RAN] + counts[FAILED]
        shown = ", ".join(f"{counts[each]} {each}" for each in (RAN, FAILED, WAITS, REFUSED, BUG) if counts[each])
        lines.append(f"{kind}: {ended} of {whole} come to an end ({ended / whole:.0%}): {shown}")
    return "\n".join(lines)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 120 else f"{line[:119]}…"
