"""An answered capacity question as it is printed: for people, and as one JSON object."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from harness.analysis.capacity.answer import NODES, RUNS, WITHIN, Answer, Answered, amount, interval, proposal, sentence
from harness.cli import printing
from harness.model.units import counted, format_count, format_duration

_TITLES = {RUNS: "runs", NODES: "nodes", WITHIN: "time"}


def as_json(answered: Answered) -> str:
    """The JSON object of ``--json``."""
    fitted, check = answered.model.fitted_on, answered.check
    document = _row(answered, answered.first) | {
        "model": answered.name,
        "unit": fitted.unit,
        "caps": [
            {
                "name": cap.name,
                "per_hour": _finite(cap.per_hour),
                "nodes": _finite(cap.nodes),
                "runs": _finite(cap.runs),
                "how": cap.how,
            }
            for cap in answered.model.caps
        ],
        "fitted_on": {
            "runs": list(fitted.runs),
            "nodes": list(fitted.nodes),
            "duration_s": list(fitted.duration_s),
            "observations": fitted.observations,
        },
        "warnings": [*answered.first.warnings, *answered.warnings],
    }
    if check:
        document["leave_one_out"] = {
            "sizes": check.sizes, "in_interval": check.coverage, "median_error": check.error,
        }  # fmt: skip
    if answered.next_test:
        document["next_test"] = asdict(answered.next_test)
    if answered.grid:
        document["grid"] = [_row(answered, cell) | {"warnings": list(cell.warnings)} for cell in answered.grid]
    return json.dumps(document, indent=2, ensure_ascii=False)


def as_text(answered: Answered) -> str:
    """The answer as lines for a terminal, at most 100 columns wide."""
    model, first, fitted = answered.model, answered.first, answered.model.fitted_on
    likely = sorted(model.weights.items(), key=lambda item: -item[1])[:3]
    weights = ", ".join(f"{law.name.replace(', ', ' + ')} {weight:.0%}" for law, weight in likely)
    most = f", the best {len(likely)}" if len(model.weights) > len(likely) else ""
    averaged = len(model.weights) > 1 and answered.name == model.law.name
    laws = f" (an average of {len(model.weights)} models by their fit{most}: {weights})" if averaged else ""
    ranges = (_span(fitted.runs, "run"), _span(fitted.nodes, fitted.unit), _times(*fitted.duration_s))
    cost, workers = answered.cost(first), answered.workers(first)
    rows = [
        ("90% interval", interval(first)),
        ("workers", "" if workers is None else f"{workers:,}, {answered.workers_each} in each replica"),
        ("model", f"{answered.name}{laws}"),
        ("fitted on", f"{counted(fitted.observations, 'observation')}: {', '.join(ranges)}"),
        ("leave-one-out", answered.check.sentence if answered.check else ""),
        ("binding", answered.binding(first)),
        ("cost", "" if cost is None else f"{cost:,.2f} (at {answered.price:g} per node and hour)"),
        ("next test", proposal(answered.next_test, fitted.unit) if answered.next_test else ""),
        *(("warning", warning) for warning in (*first.warnings, *answered.warnings)),
    ]
    lines = [sentence(first)]
    for name, value in rows:
        lines += printing.wrapped(value, f"  {name:<15}", 17 * " ")
    return "\n".join([*lines, *(("", *_table(answered.grid)) if answered.grid else ())])


def _row(answered: Answered, found: Answer) -> dict[str, Any]:
    row: dict[str, Any] = {
        "runs": _whole(found.runs),
        "nodes": _whole(found.nodes),
        "within_s": found.within_s,
        "asked": found.asked,
        "answer": _whole(found.value),
        "interval": [_whole(found.low), _whole(found.high)],
        "binding": answered.binding(found),
    }
    more = {"cost": answered.cost(found), "workers": answered.workers(found)}
    return row | {name: value for name, value in more.items() if value is not None}


def _finite(value: float) -> float | None:
    return value if value < float("inf") else None


def _whole(value: float | None) -> float | None:
    """Counts as counts: 40, not 40.0."""
    return int(value) if value is not None and value == int(value) else value


def _span(ends: tuple[float, float], noun: str) -> str:
    low, high = ends
    return counted(high, noun) if low == high else f"{format_count(low)} to {counted(high, noun)}"


def _times(low: float, high: float) -> str:
    return format_duration(low) if low == high else f"{format_duration(low)} to {format_duration(high)}"


def _table(grid: Sequence[Answer]) -> list[str]:
    """A line per cell: the sizes given, the answer, its interval; a star where it is far extrapolated."""
    asked = grid[0].asked
    names = [name for name in _TITLES if name != asked]
    titles = _TITLES | {NODES: f"{grid[0].unit}s"}
    rows = [[*(titles[name] for name in names), titles[asked], "90% interval", ""]]
    for cell in grid:
        given = (amount(name, getattr(cell, name)) for name in names)
        far = "*" if any("observed" in warning for warning in cell.warnings) else ""
        rows.append([*given, amount(asked, cell.value) or "none is enough", interval(cell), far])
    lines = printing.table(rows, left=())
    if any(row[-1] for row in rows):
        lines.append("* far beyond the observed sizes")
    return lines
