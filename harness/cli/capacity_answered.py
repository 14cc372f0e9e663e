"""An answered question of capacity as it is printed: for people, and as one JSON object."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.analysis.capacity.answer import NODES, RUNS, WITHIN, Answer
from harness.cli import printing
from harness.model.units import counted, format_duration
from harness.planning.observations import Source

if TYPE_CHECKING:
    from harness.analysis.capacity.check import Check
    from harness.analysis.capacity.model import CapacityModel

_TITLES = {RUNS: "runs", NODES: "nodes", WITHIN: "time"}


@dataclass(frozen=True, slots=True)
class Answered:
    """Everything that is said of a question.

    Attributes:
        model: what was fitted.
        name: of what answered: the likeliest law, or the simulator.
        first: the answer to the question itself.
        grid: the answers around it; empty when none were asked for.
        source: what was read.
        warnings: doubts beside those of the answers.
        price: of one node, per hour; none when unknown.
        check: how well the model foretells each size from the others; none with one size.
    """

    model: "CapacityModel"
    name: str
    first: Answer
    grid: tuple[Answer, ...]
    source: Source
    warnings: tuple[str, ...]
    price: float | None
    check: "Check | None"

    def document(self) -> str:
        """The JSON object of ``--json``."""
        seen = self.model.fitted_on
        document = self._row(self.first) | {
            "model": self.name,
            "fitted_on": {
                "runs": list(seen.runs),
                "nodes": list(seen.nodes),
                "duration_s": list(seen.duration_s),
                "observations": seen.observations,
            },
            "warnings": [*self.first.warnings, *self.warnings],
        }
        if self.check:
            document["leave_one_out"] = {
                "sizes": self.check.sizes, "in_interval": self.check.coverage, "median_error": self.check.error,
            }  # fmt: skip
        if self.grid:
            document["grid"] = [self._row(cell) | {"warnings": list(cell.warnings)} for cell in self.grid]
        return json.dumps(document, indent=2, ensure_ascii=False)

    def text(self) -> str:
        """For a terminal."""
        first, seen = self.first, self.model.fitted_on
        likely = sorted(self.model.weights.items(), key=lambda item: -item[1])[:3]
        weights = ", ".join(f"{law.name} {weight:.0%}" for law, weight in likely)
        laws = f" (weights: {weights})" if self.name == self.model.law.name else ""
        seen_in = (_span(seen.runs, "run"), _span(seen.nodes, "node"), _times(*seen.duration_s))
        cost = self._cost(first)
        said = [
            ("90% interval", interval(first)),
            ("model", f"{self.name}{laws}"),
            ("fitted on", f"{counted(seen.observations, 'observation')}: {', '.join(seen_in)}"),
            ("leave-one-out", self.check.sentence if self.check else ""),
            ("binding", self._binding(first)),
            ("cost", "" if cost is None else f"{cost:,.2f} (at {self.price:g} a node and hour)"),
            *(("warning", warning) for warning in (*first.warnings, *self.warnings)),
        ]
        lines = [sentence(first)]
        for what, told in said:
            lines += printing.wrapped(told, f"  {what:<15}", 17 * " ")
        return "\n".join([*lines, *(("", *_table(self.grid)) if self.grid else ())])

    def _cost(self, found: Answer) -> float | None:
        if self.price is None or found.nodes is None or found.within_s is None:
            return None
        return found.nodes * found.within_s / 3600 * self.price

    def _binding(self, found: Answer) -> str:
        lacks = self.source.lacks
        return f"nodes ({lacks})" if found.binding == "nodes" and lacks else found.binding

    def _row(self, found: Answer) -> dict[str, Any]:
        row: dict[str, Any] = {
            "runs": _whole(found.runs),
            "nodes": _whole(found.nodes),
            "within_s": found.within_s,
            "asked": found.asked,
            "answer": _whole(found.value),
            "interval": [_whole(found.low), _whole(found.high)],
            "binding": self._binding(found),
        }
        cost = self._cost(found)
        return row if cost is None else row | {"cost": cost}


def sentence(found: Answer) -> str:
    """Question and answer in one sentence."""
    runs, nodes = counted(found.runs or 0, "run"), counted(found.nodes or 0, "node")
    took = format_duration(found.within_s or 0)
    if found.value is None:
        return f"{runs} in {took}: no number of nodes is enough."
    match found.asked:
        case "nodes":
            return f"{runs} in {took}: {nodes}."
        case "runs":
            return f"{nodes} for {took}: {runs}."
        case _:
            return f"{runs} on {nodes}: {took}."


def amount(quantity: str, value: float | None) -> str:
    """A quantity for people; nothing where there is none."""
    if value is None:
        return ""
    return format_duration(value) if quantity == WITHIN else f"{value:,.0f}"


def interval(found: Answer) -> str:
    """The answer's interval for people; nothing where nothing is enough."""
    low, high = (amount(found.asked, end) for end in (found.low, found.high))
    if not high:
        return f"{low} or more" if low else ""
    return low if low == high else f"{low} to {high}"


def _whole(value: float | None) -> float | None:
    """Counts as counts: 40, not 40.0."""
    return int(value) if value is not None and value == int(value) else value


def _span(ends: tuple[float, float], noun: str) -> str:
    low, high = ends
    return counted(high, noun) if low == high else f"{low:,.4g} to {counted(high, noun)}"


def _times(low: float, high: float) -> str:
    return format_duration(low) if low == high else f"{format_duration(low)} to {format_duration(high)}"


def _table(grid: Sequence[Answer]) -> list[str]:
    """A line a cell: what was given, the answer, its interval; a star where a cell is far beyond what was observed."""
    asked = grid[0].asked
    names = [name for name in _TITLES if name != asked]
    rows = [[*(_TITLES[name] for name in names), _TITLES[asked], "90% interval", ""]]
    for cell in grid:
        given = (amount(name, getattr(cell, name)) for name in names)
        far = "*" if any("observed" in warning for warning in cell.warnings) else ""
        rows.append([*given, amount(asked, cell.value) or "none is enough", interval(cell), far])
    lines = printing.table(rows, left=())
    if any(row[-1] for row in rows):
        lines.append("* far beyond what was observed")
    return lines
