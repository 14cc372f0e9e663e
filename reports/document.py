"""``report.json``: the report for machines. Its schema ships beside this file as ``report.schema.json``."""

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import orjson

from harness.analysis.result import Regression, Result, SloResult, Summary
from harness.model.effects import Effects, Prediction
from harness.model.findings import Finding, Lack
from reports.spot import spot_document

SCHEMA_VERSION = "1.0"
_DIGITS = 6


def render(result: Result) -> bytes:
    """JSON with sorted keys and six significant digits: the same bytes on every machine."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS
    return orjson.dumps(document(result), option=options) + b"\n"


def document(result: Result) -> dict[str, Any]:
    """The report as plain values."""
    whole: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "name": result.name,
        "headline": result.headline,
        "exit_code": int(result.exit_code),
        "exit_meaning": result.exit_code.meaning,
        "started_at": result.started_at,
        "validity": _validity(result),
        "slos": [_slo(slo) for slo in result.slos],
        "findings": [_finding(finding) for finding in result.diagnosis.findings],
        "effects": _effects(result.effects),
        "not_judged": [
            {"name": each.name, "reason": each.reason, "lacked": [_lack(lack) for lack in each.lacked]}
            for each in result.not_judged
        ],
        "judged_with_less": [
            {"name": each.name, "lacked": [asdict(lack) for lack in each.lacked]}
            for each in result.diagnosis.judged_with_less
        ],
        "ledger": _ledger(result),
        "throughput": _throughput(result),
        "phases": _phases(result),
        "latencies": _latencies(result),
        "scaling": _scaling(result),
        "charges": _charges(result),
        "allocated": [asdict(part) for part in result.allocated],
        "virtual": asdict(result.virtual) if result.virtual else None,
        "pending": _pending(result),
        "image_pulls": asdict(result.image_pulls) if result.image_pulls else None,
        "gpu_drivers": asdict(result.gpu_drivers) if result.gpu_drivers else None,
        "degradation": asdict(result.degradation) if result.degradation else None,
        "bounds": [asdict(bound) for bound in result.bounds],
        "knee": asdict(result.knee) if result.knee else None,
        "batches_s": result.batches_s.tolist(),
        "baseline": _baseline(result.regression),
        "observer": _observer(result),
        "scale_advice": asdict(result.scale_advice) if result.scale_advice else None,
        "rework": _wasted_work(result),
        "goodput": [
            asdict(kind) | {"per_node_hour": kind.per_node_hour, "per_money": kind.per_money} for kind in result.goodput
        ],
        "spot": spot_document(result),
        "workers": asdict(result.workers) if result.workers else None,
        "processes": asdict(result.processes) if result.processes else None,
        "tenants": _tenants(result),
        "recovered": list(result.recovered),
        "errors": [
            {"message": g.message, "count": g.count, "first_s": g.first_s, "last_s": g.last_s, "example": g.example}
            for g in result.errors
        ],
    }
    rounded: dict[str, Any] = tidy(whole)
    # Not rounded: a later test compares its plan with this one.
    rounded["plan"] = _plan(result)
    return rounded


def _effects(effects: Effects | None) -> dict[str, Any] | None:
    if effects is None:
        return None
    together = effects.together
    return {
        "model": effects.model,
        "fixes": [prediction_document(each) for each in effects.fixes.values()],
        "together": None if together is None else prediction_document(together),
    }


def prediction_document(of: Prediction) -> dict[str, Any]:
    """A prediction as plain values."""
    figures = {
        name: {"now": each.now, "value": each.value, "interval": [each.low, each.high]}
        for name, each in of.figures.items()
    }
    failed, now = of.failed
    return {
        "name": of.name, "simulated": of.simulated, "figures": figures, "failed": failed, "failed_now": now,
        "binds": of.binds,
    }  # fmt: skip


def tidy(value: Any) -> Any:
    """Floats with six significant digits, NaN and infinity as null: the last bits of a sum differ between machines."""
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: tidy(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [tidy(item) for item in value]
    return value


def _lack(lack: Lack) -> dict[str, str]:
    return {"observation": lack.observation, "sources": lack.sources}


def _plan(result: Result) -> dict[str, Any]:
    plan = result.plan
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


def _validity(result: Result) -> dict[str, Any]:
    validity = result.diagnosis.validity
    return {"verdict": result.verdict, "reasons": list(validity.reasons), "figures": dict(validity.figures)}


def _latencies(result: Result) -> dict[str, Any]:
    found = result.latencies
    return {
        "lag_s": _summary(found.lag),
        "latency_s": _summary(found.latency),
        "service_s": _summary(found.service),
        "duration_s": _summary(found.duration),
    }


def _slo(slo: SloResult) -> dict[str, Any]:
    return {
        "text": slo.slo.text,
        "met": slo.met,
        "state": slo.state.value.lower(),
        "runs_needed": slo.runs_needed,
        "value": slo.value,
        "limit": slo.slo.limit,
        "unit": slo.slo.unit,
        "interval": [slo.low, slo.high],
        "why": slo.why,
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


def _observer(result: Result) -> dict[str, Any] | None:
    own = result.own_requests
    if own is None:
        return None
    counts = [{"endpoint": name, "count": count} for name, count in sorted(own.by_endpoint.items())]
    return {"requests": counts, "platform_requests": own.platform, "platform_share": own.share}


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "name": finding.name,
        "title": finding.title,
        "confidence": finding.confidence,
        "status": finding.status,
        "severity": finding.severity,
        "evidence": [
            {"statement": e.statement, "value": e.value, "unit": e.unit, "table": e.table, "filter": e.filter}
            for e in finding.evidence
        ],
        "knob": finding.fix,
        "commands": list(finding.commands),
    }


def _ledger(result: Result) -> dict[str, Any]:
    counts = result.ledger
    names = ("intended", "succeeded", "failed", "canceled", "skipped", "in_flight", "rejected", "missed", "foreign")
    return {name: getattr(counts, name) for name in (*names, "terminal", "accepted", "unaccounted")}


def _throughput(result: Result) -> dict[str, Any]:
    flow = result.throughput
    columns = ("due", "succeeded", "failed", "nodes", "in_flight", "running", "pending")
    windows: dict[str, Any] = {name: getattr(flow, name).tolist() for name in columns}
    return {
        "succeeded_per_hour": flow.per_hour,
        "over_per_hour": flow.over_per_hour,
        "makespan_s": flow.makespan_s,
        "peak_nodes": result.peak_nodes,
        "windows": {"width_s": flow.width_s, "starts_s": flow.edges_s[:-1].tolist(), **windows},
    }


def _phases(result: Result) -> dict[str, Any]:
    found, names = result.phases, ("name", "mean_s", "share", "least_s", "most_s")
    return {
        "runs": found.runs,
        "mean_total_s": found.mean_total_s,
        "reversed_spans": found.reversed,
        "caveat": found.caveat,
        "phases": [{name: getattr(phase, name) for name in names} for phase in found.phases],
    }


def _scaling(result: Result) -> dict[str, Any] | None:
    """Throughput by number of nodes within this run; null when it ran on too few different numbers of nodes."""
    found, measured = result.scaling, result.progress
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


def _charges(result: Result) -> dict[str, Any] | None:
    paid = result.cost
    if paid is None:
        return None
    return asdict(paid) | {"overhead": paid.overhead, "surplus": paid.surplus, "wasted": paid.wasted}


def _wasted_work(result: Result) -> dict[str, Any] | None:
    lost = result.wasted_work
    return None if lost is None else asdict(lost) | {"amplification": lost.amplification}


def _tenants(result: Result) -> dict[str, Any] | None:
    found = result.tenants
    if found is None:
        return None
    return asdict(found) | {"worst": found.worst.name if found.worst is not None else None}


def _pending(result: Result) -> dict[str, Any] | None:
    found = result.pending
    if found is None:
        return None
    return {
        "phase_s": _summary(found.phase),
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
