"""``report.md``: the report for pull requests and ``$GITHUB_STEP_SUMMARY``."""

import shlex

from harness.model.findings import Finding
from harness.model.phases import RUN_PHASES
from harness.model.schedules import in_words
from reports.report import Report
from reports.summary import baseline_word, ledger_line, machines, measured_text, slo_word
from reports.tables import seconds_text

_SIGNS = {"met": "✅", "FAILED": "❌", "not judged": "❔", "no verdict": "⛔"}


def render(report: Report) -> bytes:
    """GitHub-flavoured Markdown as UTF-8."""
    parts = [
        *_head(report),
        *_slos(report),
        *_baseline(report),
        *_findings(report),
        *_figures(report),
        *_phases(report),
        *_rest(report),
    ]
    return ("\n".join(parts) + "\n").encode()


def _head(report: Report) -> list[str]:
    reasons = [f"- {cell(reason)}" for reason in report.diagnosis.validity.reasons]
    sign = "✅" if report.diagnosis.validity.valid else "⛔"
    return [f"# {cell(report.headline)}", "", f"{sign} **{report.verdict}**: {report.exit_code.meaning}.", *reasons, ""]


def _slos(report: Report) -> list[str]:
    if not report.slos:
        return []
    words = [slo_word(report, result) for result in report.slos]
    rows = [
        f"| `{result.slo.text}` | {_SIGNS[word]} {word.lower()} | {cell(measured_text(result))} |"
        for result, word in zip(report.slos, words, strict=True)
    ]
    return ["| Objective | | Measured |", "|---|---|---|", *rows, ""]


def _baseline(report: Report) -> list[str]:
    found = report.regression
    if found is None:
        return []
    sign = "❌" if found.reasons else "❔" if found.comparison is None else "✅"
    lines = [f"{sign} Against the baseline `{found.baseline}`, {baseline_word(found)}: {cell(found.sentence)}"]
    return [*lines, *(f"- the tests differ in {cell(difference)}" for difference in found.differences), ""]


def _findings(report: Report) -> list[str]:
    if not report.diagnosis.findings:
        return []
    top, *others = report.diagnosis.findings
    lines = ["## What held it back", "", *_finding(top)]
    if others:
        lines += ["Also found:", "", *(f"- `{f.name}`: {cell(f.title)}. {cell(f.knob)}" for f in others), ""]
    return lines


def _finding(finding: Finding) -> list[str]:
    lines = [f"**{cell(finding.title)}** (`{finding.name}`, {finding.confidence:.0%} sure)", ""]
    lines += [f"- {cell(evidence.statement)}" for evidence in finding.evidence]
    lines += ["", cell(finding.knob), ""]
    if finding.commands:
        lines += ["```sh", *finding.commands, "```", ""]
    return lines


def _figures(report: Report) -> list[str]:
    flow = report.throughput
    p50, p95 = report.latencies.duration.at(0.5).value, report.latencies.duration.at(0.95).value
    return [
        "## In figures", "",
        f"- Runs: {ledger_line(report)}",
        f"- Throughput: {flow.per_hour:,.0f} runs/h succeeded over {seconds_text(flow.makespan_s)}",
        f"- Run duration: p50 {seconds_text(p50) or 'unknown'}, p95 {seconds_text(p95) or 'unknown'}",
        f"- Ran on: {machines(report)}",
        f"- Load: {in_words(report.timeline.plan.schedule)}", "",
    ]  # fmt: skip


def _phases(report: Report) -> list[str]:
    split, shares = report.waits, report.waits.shares()
    rows = [
        f"| {name} | {shares[name]:.1%} | {seconds_text(float(split.of(name).mean()))} |"
        for name in RUN_PHASES
        if split.row.size and split.of(name).any()
    ]
    return ["## Where the time went", "", "| Phase | Share | Mean |", "|---|---:|---:|", *rows, ""] if rows else []


def _rest(report: Report) -> list[str]:
    lines = []
    if report.errors:
        lines = ["## What failed", ""]
        lines += [f"- {group.count:,} times: {cell(group.message)}" for group in report.errors[:10]]
        lines.append("")
    if report.not_judged:
        lines += ["<details><summary>What could not be judged</summary>", ""]
        lines += [f"- `{silent.name}`: {cell(silent.reason)}" for silent in report.not_judged]
        lines += ["", "</details>", ""]
    if report.timeline.plan.command:
        lines += ["## Repeat this test", "", "```sh", shlex.join(report.timeline.plan.command), "```"]
    return lines


def cell(text: str) -> str:
    """Text that can't break out of a table cell or become markup: it may come from a platform."""
    escaped = " ".join(text.split()).replace("\\", "\\\\").replace("<", "&lt;").replace("|", "\\|")
    return escaped.replace("`", "\\`").replace("*", "\\*").replace("[", "\\[")
