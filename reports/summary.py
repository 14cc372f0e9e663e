"""The verdict for a terminal."""

from collections.abc import Iterator
from dataclasses import dataclass

from harness.analysis.baseline import Regression
from harness.analysis.result import Result
from harness.analysis.slo import SloResult, State
from harness.model import ExitCode, format_duration
from reports.not_judged import lines
from reports.processes import process_remarks, processes_line
from reports.tables import hosts_text
from reports.tenants import tenants_line

_MOST_EVIDENCE = 3
_MOST_REASONS = 4


def summary(result: Result) -> str:
    """Ten to 22 lines: verdict, SLOs, top finding with its fix, what was not judged, ledger, throughput."""
    parts = (_verdict, _objectives, _baseline, _finding, lines, _figures)
    return "\n".join(line for part in parts for line in part(result))


@dataclass(frozen=True, slots=True)
class Banner:
    """How a test ended, at the top of the report: a word, why, and the tone: good, bad, warn or plain."""

    word: str
    why: str
    tone: str


def banner(result: Result) -> Banner:
    """The outcome against the objectives, which only a valid test has."""
    match result.exit_code:
        case ExitCode.INTERRUPTED:
            return Banner("INTERRUPTED", "what was recorded until then is below", "warn")
        case ExitCode.INVALID:
            return Banner("INVALID", "the test has no verdict on the platform", "warn")
        case ExitCode.SLO_FAILED:
            return Banner("FAILED", "; ".join(_failures(result)), "bad")
        case _ if not result.slos:
            return Banner("NO OBJECTIVE", "nothing was demanded of this test", "plain")
    unproven = sum(slo.state is State.UNPROVEN for slo in result.slos)
    why = "met, not proven: more runs are needed" if unproven == len(result.slos) else ""
    return Banner("PASSED", why, "warn" if unproven else "good")


def _failures(result: Result) -> Iterator[str]:
    for slo in result.slos:
        if not result.passes(slo):
            yield slo.slo.text if slo.met is False else f"{slo.slo.text} ({slo.state.value})"
    if result.regression is not None and result.regression.reasons:
        yield f"significantly slower than the baseline {result.regression.baseline}"


def slo_word(result: Result, slo: SloResult) -> str:
    """An SLO's outcome in a word or two; an invalid test meets and misses none."""
    return slo.state.value if result.valid else "no verdict"


def measured_text(slo: SloResult) -> str:
    """The measured value in the SLO's unit with its 95 % interval, or why there is none."""
    if slo.value is None or slo.met is None:
        return slo.why
    text = _in_unit(slo, slo.value) + _interval(slo)
    if slo.state is not State.UNPROVEN or slo.runs_needed is None:
        return text
    return f"{text}; about {slo.runs_needed:,} such runs would prove it"


def _interval(slo: SloResult) -> str:
    """Nothing where there is none, and where it is narrower than the precision shown."""
    low, high = ("" if end is None else _in_unit(slo, end) for end in (slo.low, slo.high))
    if low == high:
        return ""
    return ", 95% interval " + (f"{low} to {high}" if low and high else f"from {low}" if low else f"up to {high}")


def _in_unit(slo: SloResult, value: float) -> str:
    match slo.slo.unit:
        case "s":
            return format_duration(value)
        case "/s":
            return f"{value * 3600:,.0f}/h"
        case _:
            return f"{value:.2%}"


def ledger_line(result: Result) -> str:
    """The identity of the ledger in one line."""
    counts = result.ledger
    parts = [("succeeded", counts.succeeded), ("failed", counts.failed), ("canceled", counts.canceled),
             ("from the cache", counts.skipped), ("in flight", counts.in_flight), ("rejected", counts.rejected),
             ("missed", counts.missed), ("unaccounted for", counts.unaccounted)]  # fmt: skip
    always = {"succeeded", "failed"}
    shown = " + ".join(f"{count:,} {name}" for name, count in parts if count or name in always)
    return f"{counts.intended:,} {'observed' if result.observed else 'intended'} = {shown}"


def baseline_word(found: Regression) -> str:
    """The comparison with the baseline in a word or two."""
    if found.reasons:
        return "WORSE"
    return "not judged" if found.comparison is None else "no regression"


def _verdict(result: Result) -> list[str]:
    reasons = result.diagnosis.validity.reasons
    lines = [f"{result.verdict}: {result.headline}"]
    lines += [f"  - {reason}" for reason in reasons[:_MOST_REASONS]]
    if len(reasons) > _MOST_REASONS:
        lines.append(f"  - and {len(reasons) - _MOST_REASONS} more")
    return [*lines, *(f"Recovered: {text}" for text in result.recovered)]


def _objectives(result: Result) -> list[str]:
    rows = [(slo_word(result, slo), slo.slo.text, measured_text(slo)) for slo in result.slos]
    return [f"SLO {word}: {text}" + (f" ({measured})" if measured else "") for word, text, measured in rows]


def _baseline(result: Result) -> list[str]:
    regression = result.regression
    if regression is None:
        return []
    lines = [f"Baseline {regression.baseline}: {baseline_word(regression)}", f"  - {regression.sentence}"]
    return [*lines, *(f"  - the tests differ in {difference}" for difference in regression.differences)]


def effect_text(result: Result, finding: str) -> str:
    """What the fix of a finding is expected to bring, in a line; "" where nothing is predicted."""
    predicted = result.effects.fixes.get(finding) if result.effects is not None else None
    if predicted is None:
        return ""
    p95, failed = predicted.figures["p95_s"], predicted.failed
    lost = f", lost runs {failed.now:.0%} → {failed.value:.0%}" if round(failed.now - failed.value, 2) else ""
    change = f"p95 {format_duration(p95.now)} → {format_duration(p95.value)} ({p95.interval}){lost}"
    return f"{change}, with {predicted.simulated}; then {predicted.binds} would limit the runs"


def ranked_by(result: Result) -> str:
    """What ranks the findings: predictions, where there are any."""
    predicted = result.effects is not None and result.effects.fixes
    return "the expected effects of their fixes" if predicted else "what they cost"


@dataclass(frozen=True, slots=True)
class EffectBar:
    """A row of the expected effects: what is changed, the p95 as text, and its length as a share of the longest."""

    name: str
    simulated: str
    text: str
    share: float


def effect_bars(result: Result) -> list[EffectBar]:
    """Today, each fix, and all of them; none where nothing is predicted."""
    effects = result.effects
    if effects is None or not effects.fixes:
        return []
    several = [*effects.fixes.values(), *([effects.together] if effects.together is not None else [])]
    figures = [prediction.figures["p95_s"] for prediction in several]
    longest = max([figures[0].now, *(each.value for each in figures)])
    rows = [EffectBar("today", "", format_duration(figures[0].now), figures[0].now / longest)]
    for each, figure in zip(several, figures, strict=True):
        text = f"{format_duration(figure.value)} ({figure.interval})"
        rows.append(EffectBar(each.name, each.simulated, text, figure.value / longest))
    return rows


def _finding(result: Result) -> list[str]:
    if not result.diagnosis.findings:
        return []
    top, *others = result.diagnosis.findings
    lines = [f"Finding: {top.name} ({top.sure})"]
    lines += [f"  - {evidence.statement}" for evidence in top.evidence[:_MOST_EVIDENCE]]
    lines.append(f"  Fix: {top.fix.split('. ')[0].rstrip('.')}")
    if effect := effect_text(result, top.name):
        lines.append(f"  Expected effect: {effect}")
    lines += [f"    {command}" for command in top.looks]
    if top.changes:
        lines += ["  To change it:", *(f"    {command}" for command in top.changes)]
    if names := dict.fromkeys(other.name for other in others if other.name != top.name):
        lines.append(f"  Also found, ranked by {ranked_by(result)}: {', '.join(names)}")
    return lines


def _figures(result: Result) -> list[str]:
    flow, p95 = result.throughput, result.latencies.duration.at(0.95).value
    return [
        f"Runs: {ledger_line(result)}",
        f"Throughput: {flow.per_hour:,.0f} runs/h over {format_duration(flow.makespan_s)}, {hosts_text(result)}",
        f"Run duration p95: {'unknown' if p95 is None else format_duration(p95)}",
        *([f"Processes: {processes_line(result)}"] if result.processes else []),
        *(f"  - {remark}" for remark in process_remarks(result)),
        *([f"Tenants: {tenants_line(result)}"] if result.tenants else []),
    ]
