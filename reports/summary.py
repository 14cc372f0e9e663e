"""The verdict for a terminal: what a person reads before they open the report."""

from harness.analysis.baseline import Regression
from harness.analysis.slo import SloResult
from harness.model.units import format_duration
from reports.report import Report

_MOST_EVIDENCE = 3
_MOST_REASONS = 4


def summary(report: Report) -> str:
    """Ten to twenty lines of plain text: verdict, objectives, top finding, its commands, ledger."""
    return "\n".join(
        [*_verdict(report), *_objectives(report), *_baseline(report), *_finding(report), *_figures(report)]
    )


def slo_word(report: Report, result: SloResult) -> str:
    """What came of an objective, in a word or two; a test that does not count meets and misses none."""
    if not report.diagnosis.validity.valid:
        return "no verdict"
    return {True: "met", False: "FAILED", None: "not judged"}[result.met]


def measured_text(result: SloResult) -> str:
    """The measured value in the objective's unit with its 95 % interval, or why there is none."""
    if result.value is None or result.met is None:
        return result.why
    text = _in_unit(result, result.value) + _interval(result)
    return text if result.decided else f"{text}, which holds the limit: more runs would decide it"


def _interval(result: SloResult) -> str:
    """Nothing where there is none, and where it is narrower than what is told of it."""
    low, high = ("" if end is None else _in_unit(result, end) for end in (result.low, result.high))
    if low == high:
        return ""
    return ", 95% interval " + (f"{low} to {high}" if low and high else f"from {low}" if low else f"up to {high}")


def _in_unit(result: SloResult, value: float) -> str:
    match result.slo.unit:
        case "s":
            return format_duration(value)
        case "/s":
            return f"{value * 3600:,.0f}/h"
        case _:
            return f"{value:.2%}"


def ledger_line(report: Report) -> str:
    """The identity of the ledger in one line."""
    counts = report.ledger
    parts = [("succeeded", counts.succeeded), ("failed", counts.failed), ("canceled", counts.canceled),
             ("from the cache", counts.skipped), ("in flight", counts.in_flight), ("rejected", counts.rejected),
             ("missed", counts.missed), ("not accounted for", counts.unaccounted)]  # fmt: skip
    always = {"succeeded", "failed"}
    shown = " + ".join(f"{count:,} {name}" for name, count in parts if count or name in always)
    return f"{counts.intended:,} intended = {shown}"


def _verdict(report: Report) -> list[str]:
    reasons = report.diagnosis.validity.reasons
    lines = [f"{report.verdict}: {report.headline}"]
    lines += [f"  because {reason}" for reason in reasons[:_MOST_REASONS]]
    if len(reasons) > _MOST_REASONS:
        lines.append(f"  and {len(reasons) - _MOST_REASONS} reasons more")
    return lines


def _objectives(report: Report) -> list[str]:
    said = [(slo_word(report, result), result.slo.text, measured_text(result)) for result in report.slos]
    return [f"SLO {word}: {text}" + (f" ({measured})" if measured else "") for word, text, measured in said]


def baseline_word(found: Regression) -> str:
    """What the comparison with the baseline came to, in a word or two."""
    if found.reasons:
        return "WORSE"
    return "not judged" if found.comparison is None else "no regression"


def _baseline(report: Report) -> list[str]:
    found = report.regression
    if found is None:
        return []
    lines = [f"Baseline {found.baseline}: {baseline_word(found)}", f"  - {found.sentence}"]
    return [*lines, *(f"  - the tests differ in {difference}" for difference in found.differences)]


def _finding(report: Report) -> list[str]:
    if not report.diagnosis.findings:
        return []
    top, *others = report.diagnosis.findings
    lines = [f"Finding: {top.name} ({top.confidence:.0%} sure)"]
    lines += [f"  - {evidence.statement}" for evidence in top.evidence[:_MOST_EVIDENCE]]
    lines.append(f"  What to turn: {top.fix.split('. ')[0].rstrip('.')}")
    lines += [f"    {command}" for command in top.commands]
    if others:
        lines.append(f"  Also: {', '.join(dict.fromkeys(other.name for other in others))}")
    return lines


def _figures(report: Report) -> list[str]:
    flow, duration = report.throughput, report.latencies.duration.at(0.95)
    nodes = machines(report)
    p95 = "unknown" if duration.value is None else format_duration(duration.value)
    return [
        f"Runs: {ledger_line(report)}",
        f"Throughput: {flow.per_hour:,.0f} runs/h over {format_duration(flow.makespan_s)}, run p95 {p95}, {nodes}",
    ]


def machines(report: Report) -> str:
    """What the runs ran on, in a word or two."""
    if report.workers is not None:
        return f"{len(report.workers.workers)} replicas"
    return "nodes not observed" if report.peak_nodes is None else f"up to {report.peak_nodes} nodes"
