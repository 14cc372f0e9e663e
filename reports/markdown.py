"""``report.md``: the report for pull requests and ``$GITHUB_STEP_SUMMARY``."""

import shlex

from harness.analysis.result import Result
from harness.model.errors import ExitCode
from harness.model.findings import Finding, Lack
from harness.model.schedules import in_words
from harness.model.text.inert import one_line, visible
from reports.not_judged import lacked_text
from reports.processes import process_remarks, processes_line
from reports.spot import spot_lines
from reports.summary import baseline_word, effect_text, ledger_line, measured_text, ranked_by, slo_word
from reports.tables import hosts_text, seconds_text
from reports.tenants import tenant_table, tenants_line

_SIGNS = {"met": "✅", "met, not proven": "⚠️", "inconclusive": "❔", "FAILED": "❌", "no verdict": "⛔"}


def render(result: Result) -> bytes:
    """GitHub-flavoured Markdown as UTF-8."""
    parts = [
        *_head(result),
        *_slos(result),
        *_baseline(result),
        *_findings(result),
        *_figures(result),
        *spot_lines(result),
        *_tenants(result),
        *_phases(result),
        *_rest(result),
    ]
    return ("\n".join(parts) + "\n").encode()


def _head(result: Result) -> list[str]:
    reasons = [f"- {cell(reason)}" for reason in result.diagnosis.validity.reasons]
    sign = "⛔" if not result.valid else "❌" if result.exit_code is ExitCode.SLO_FAILED else "✅"
    verdict = f"{sign} **{result.verdict}**: {result.exit_code.meaning}."
    recovered = [f"- Recovered: {cell(text)}" for text in result.recovered]
    return [f"# {cell(result.headline)}", "", verdict, *reasons, *recovered, ""]


def _slos(result: Result) -> list[str]:
    if not result.slos:
        return []
    words = [slo_word(result, slo) for slo in result.slos]
    rows = [
        f"| `{code(slo.slo.text)}` | {_SIGNS[word]} {word.lower()} | {cell(measured_text(slo))} |"
        for slo, word in zip(result.slos, words, strict=True)
    ]
    return ["| SLO | Result | Measured |", "|---|---|---|", *rows, ""]


def _baseline(result: Result) -> list[str]:
    regression = result.regression
    if regression is None:
        return []
    sign = "❌" if regression.reasons else "❔" if regression.comparison is None else "✅"
    lines = [f"{sign} Baseline `{code(regression.baseline)}`: {baseline_word(regression)}. {cell(regression.sentence)}"]
    return [*lines, *(f"- the tests differ in {cell(difference)}" for difference in regression.differences), ""]


def _findings(result: Result) -> list[str]:
    if not result.diagnosis.findings:
        return []
    top, *others = result.diagnosis.findings
    lines = ["## Findings", "", *_finding(top, effect_text(result, top.name))]
    if others:
        lines += [f"Also found, ranked by {ranked_by(result)}:", ""]
        lines += [*(f"- `{f.name}`: {cell(f.title)}. {cell(f.fix)}" for f in others), ""]
    return lines


def _finding(finding: Finding, effect: str) -> list[str]:
    lines = [f"**{cell(finding.title)}** (`{finding.name}`, {finding.sure})", ""]
    lines += [f"- {cell(evidence.statement)}" for evidence in finding.evidence]
    lines += ["", f"**Fix:** {cell(finding.fix)}", ""]
    if effect:
        lines += [f"**Expected effect:** {cell(effect)}", ""]
    for title, commands in (("", finding.looks), ("To change it:", finding.changes)):
        if commands:
            lines += [*([title, ""] if title else []), "```sh", *map(one_line, commands), "```", ""]
    return lines


def _figures(result: Result) -> list[str]:
    flow = result.throughput
    p50, p95 = result.latencies.duration.at(0.5).value, result.latencies.duration.at(0.95).value
    return [
        "## Key figures", "",
        f"- Runs: {ledger_line(result)}",
        f"- Throughput: {flow.per_hour:,.0f} runs/h over {seconds_text(flow.makespan_s)}, {hosts_text(result)}",
        f"- Run duration: p50 {seconds_text(p50) or 'unknown'}, p95 {seconds_text(p95) or 'unknown'}",
        *([f"- Processes: {processes_line(result)}"] if result.processes else []),
        *(f"  - {cell(remark)}" for remark in process_remarks(result)),
        f"- Load: {cell(in_words(result.plan.schedule))}", "",
    ]  # fmt: skip


def _tenants(result: Result) -> list[str]:
    if result.tenants is None:
        return []
    table = tenant_table(result)
    heads = [f"| {' | '.join(column.name for column in table.columns)} |", f"|---|{'---:|' * (len(table.columns) - 1)}"]
    rows = [f"| {' | '.join(map(cell, row))} |" for row in table.rows]
    return ["## Tenants", "", *heads, *rows, "", f"{cell(tenants_line(result))}.", ""]


def _phases(result: Result) -> list[str]:
    phases = [phase for phase in result.phases.phases if phase.seen]
    rows = [f"| {cell(phase.name)} | {phase.share:.1%} | {seconds_text(phase.mean_s)} |" for phase in phases]
    if not rows:
        return []
    caveat = result.phases.caveat
    note = [f"{caveat[0].upper()}{caveat[1:]}.", ""] if caveat else []
    return ["## Where the time went", "", "| Phase | Share | Mean |", "|---|---:|---:|", *rows, "", *note]


def _rest(result: Result) -> list[str]:
    lines = []
    if result.errors:
        lines = ["## Errors", ""]
        lines += [f"- {group.count:,} × {cell(group.message)}" for group in result.errors[:10]]
        lines.append("")
    if result.not_judged:
        lines += ["<details><summary>Not judged</summary>", ""]
        lines += [f"- `{silent.name}`: {cell(silent.reason)}{_missing(silent.lacked)}" for silent in result.not_judged]
        lines += ["", "</details>", ""]
    if result.diagnosis.judged_with_less:
        lines += ["<details><summary>Judged with less</summary>", ""]
        lines += [
            f"- `{judged_with_less.name}` lacks {lack.loses}{_missing((lack,))}"
            for judged_with_less in result.diagnosis.judged_with_less
            for lack in judged_with_less.lacked
        ]
        lines += ["", "</details>", ""]
    if result.plan.command:
        lines += ["## Repeat this test", "", "```sh", shlex.join(map(one_line, result.plan.command)), "```"]
    return lines


def code(text: str) -> str:
    """Text between backticks, which it can't end."""
    return one_line(text).replace("`", "'").replace("|", "\\|")


def cell(text: str) -> str:
    """Text escaped so that it can't leave a table cell or become markup: it may come from a platform."""
    escaped = visible(" ".join(text.split())).replace("\\", "\\\\").replace("<", "&lt;").replace("|", "\\|")
    return escaped.replace("`", "\\`").replace("*", "\\*").replace("[", "\\[")


def _missing(lacked: tuple[Lack, ...]) -> str:
    return f". Missing: {lacked_text(lacked)}" if lacked else ""
