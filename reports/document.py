"""``report.json``: the report for machines. Its schema ships beside this file as ``report.schema.json``."""

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import orjson

from harness.analysis.baseline import Regression, batches
from harness.analysis.services.own_requests import own_requests
from harness.analysis.slo import SloResult
from harness.analysis.stats.quantiles import Summary
from harness.model.findings import Finding
from harness.model.phases import RUN_PHASES
from reports.report import Report

SCHEMA_VERSION = "1.0"
_DIGITS = 6


def render(report: Report) -> bytes:
    """The document as JSON: keys sorted, figures with six significant digits, so that it is the same everywhere."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS
    return orjson.dumps(document(report), option=options) + b"\n"


def document(report: Report) -> dict[str, Any]:
    """The report as plain values."""
    whole: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "name": report.name,
        "headline": report.headline,
        "exit_code": int(report.exit_code),
        "exit_meaning": report.exit_code.meaning,
        "started_at": report.timeline.start_at,
        "validity": _validity(report),
        "slos": [_slo(result) for result in report.slos],
        "findings": [_finding(finding) for finding in report.diagnosis.findings],
        "not_judged": [{"name": silent.name, "reason": silent.reason} for silent in report.not_judged],
        "ledger": _ledger(report),
        "throughput": _throughput(report),
        "phases": _phases(report),
        "latencies": _latencies(report),
        "scaling": _scaling(report),
        "charges": _charges(report),
        "pending": _pending(report),
        "degradation": asdict(report.degradation) if report.degradation else None,
        "bounds": [asdict(bound) for bound in report.bounds],
        "knee": asdict(report.knee) if report.knee else None,
        "batches_s": batches(report.timeline).tolist(),
        "baseline": _baseline(report.regression),
        "observer": _observer(report),
        "scale_advice": asdict(report.scale_advice) if report.scale_advice else None,
        "rework": asdict(report.wasted_work) | {"amplification": report.wasted_work.amplification}
        if report.wasted_work
        else None,
        "goodput": [
            asdict(kind) | {"per_node_hour": kind.per_node_hour, "per_money": kind.per_money} for kind in report.goodput
        ],
        "workers": asdict(report.workers) if report.workers else None,
        "errors": [
            {"message": g.message, "count": g.count, "first_s": g.first_s, "last_s": g.last_s, "example": g.example}
            for g in report.errors
        ],
    }
    rounded: dict[str, Any] = tidy(whole)
    # What was given, to the last digit: a later test is held against it.
    rounded["plan"] = _plan(report)
    return rounded


def tidy(value: Any) -> Any:
    """Figures with six significant digits, NaN and infinity as null: sums may differ in the last bits of a machine."""
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: tidy(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [tidy(item) for item in value]
    return value


def _plan(report: Report) -> dict[str, Any]:
    plan = report.timeline.plan
    return {
        "target": plan.target,
        "host": plan.host,
        "simulated": plan.simulated,
        "schedule": dict(plan.schedule),
        "intended": plan.intended,
        "seed": plan.seed,
        "workers": plan.workers,
        "command": list(plan.command),
        "digests": dict(plan.digests),
        "versions": dict(plan.versions),
    }


def _validity(report: Report) -> dict[str, Any]:
    validity = report.diagnosis.validity
    return {"verdict": report.verdict, "reasons": list(validity.reasons), "figures": dict(validity.figures)}


def _latencies(report: Report) -> dict[str, Any]:
    found = report.latencies
    return {
        "lag_s": _summary(found.lag),
        "latency_s": _summary(found.latency),
        "service_s": _summary(found.service),
        "duration_s": _summary(found.duration),
    }


def _slo(result: SloResult) -> dict[str, Any]:
    return {
        "text": result.slo.text,
        "met": result.met,
        "value": result.value,
        "limit": result.slo.limit,
        "unit": result.slo.unit,
        "interval": [result.low, result.high],
        "why": result.why,
    }


def _baseline(found: Regression | None) -> dict[str, Any] | None:
    if found is None:
        return None
    change = found.comparison
    return {
        "name": found.baseline,
        "worse": list(found.reasons),
        "duration_change": change.change if change else None,
        "interval": [change.low, change.high] if change else [None, None],
        "said": found.sentence,
        "failed_ratio": list(found.failed),
        "differences": list(found.differences),
    }


def _observer(report: Report) -> dict[str, Any] | None:
    own = own_requests(report.timeline)
    if own is None:
        return None
    counts = [{"endpoint": name, "count": count} for name, count in sorted(own.by_endpoint.items())]
    return {"requests": counts, "platform_requests": own.platform, "platform_share": own.share}


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "name": finding.name,
        "title": finding.title,
        "confidence": finding.confidence,
        "severity": finding.severity,
        "evidence": [
            {"statement": e.statement, "value": e.value, "unit": e.unit, "table": e.table, "filter": e.filter}
            for e in finding.evidence
        ],
        "knob": finding.fix,
        "commands": list(finding.commands),
    }


def _ledger(report: Report) -> dict[str, Any]:
    counts = report.ledger
    names = ("intended", "succeeded", "failed", "canceled", "skipped", "in_flight", "rejected", "missed", "foreign")
    return {name: getattr(counts, name) for name in (*names, "terminal", "accepted", "unaccounted")}


def _throughput(report: Report) -> dict[str, Any]:
    flow = report.throughput
    columns = ("due", "succeeded", "failed", "nodes", "in_flight", "running", "pending")
    windows: dict[str, Any] = {name: getattr(flow, name).tolist() for name in columns}
    return {
        "succeeded_per_hour": flow.per_hour,
        "over_per_hour": flow.over_per_hour,
        "makespan_s": flow.makespan_s,
        "peak_nodes": report.peak_nodes,
        "windows": {"width_s": flow.width_s, "starts_s": flow.edges_s[:-1].tolist(), **windows},
    }


def _phases(report: Report) -> dict[str, Any]:
    split = report.waits
    count = int(split.row.size)
    shares = split.shares()
    return {
        "runs": count,
        "mean_total_s": float(split.total.mean()) if count else None,
        "reversed_spans": split.reversed,
        "phases": [
            {
                "name": name,
                "mean_s": float(split.of(name).mean()) if count else None,
                "share": shares[name],
                "least_s": float(split.of(name).min()) if count else None,
                "most_s": float(split.of(name).max()) if count else None,
            }
            for name in RUN_PHASES
        ],
    }


def _scaling(report: Report) -> dict[str, Any] | None:
    """Throughput against nodes within this run; null when it ran on too few different numbers of nodes to say."""
    found, measured = report.scaling, report.progress
    if found is None or measured is None:
        return None
    curve = found.curve
    return {
        "law": curve.law,
        "gamma": curve.gamma,
        "sigma": curve.sigma,
        "kappa": curve.kappa,
        "fitted_on": list(found.fitted_on),
        "enough_nodes": asdict(found.enough),
        "peak_nodes": asdict(found.peak),
        "limit_per_hour": curve.limit,
        "measured": {"nodes": measured.nodes.tolist(), "per_hour": measured.per_hour.tolist()},
    }


def _charges(report: Report) -> dict[str, Any] | None:
    paid = report.cost
    return None if paid is None else asdict(paid) | {"overhead": paid.overhead, "wasted": paid.wasted}


def _wasted_work(report: Report) -> dict[str, Any] | None:
    lost = report.wasted_work
    return None if lost is None else asdict(lost) | {"amplification": lost.amplification}


def _pending(report: Report) -> dict[str, Any] | None:
    found = report.pending
    if found is None:
        return None
    return {
        "waited_s": _summary(found.waited),
        "within": {f"{bound:g}s": share for bound, share in found.within.items()},
    }


def _summary(summary: Summary) -> dict[str, Any]:
    return {
        "count": summary.count,
        "censored": summary.censored,
        "mean": summary.mean,
        "min": summary.least,
        "max": summary.most,
        "quantiles": {
            f"p{q.level * 100:g}": {"value": q.value, "low": q.low, "high": q.high, "at_least": q.at_least}
            for q in summary.quantiles
        },
    }
