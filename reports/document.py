"""``report.json``: the report for machines. Its schema is in this folder, ``report.schema.json``."""

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import orjson

from harness.analysis.capacity.progress import progress
from harness.analysis.result import Result
from harness.analysis.services.own_requests import own_requests
from harness.analysis.slo import SloResult
from harness.analysis.stats.quantiles import Summary
from harness.model.effects import Figure, Prediction
from reports.spot import spot_document

SCHEMA_VERSION = "1.0"
_DIGITS = 6
_COUNTS = (
    "intended", "succeeded", "failed", "canceled", "skipped", "in_flight", "rejected", "missed", "foreign", "terminal",
    "accepted", "unaccounted",
)  # fmt: skip
_PLAN = (
    "target", "host", "simulated", "schedule", "intended", "seed", "workers", "command", "digests", "versions",
)  # fmt: skip


def render(result: Result) -> bytes:
    """JSON with sorted keys and six significant digits: the same bytes on every machine."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS
    return orjson.dumps(document(result), option=options) + b"\n"


def document(result: Result) -> dict[str, Any]:
    """The report as plain values."""
    validity, tenants = result.diagnosis.validity, result.tenants
    whole: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        **_of(result, "name", "headline", "exit_code", "virtual", "image_pulls", "gpu_drivers",
              "degradation", "bounds", "knee", "batches_s", "scale_advice", "workers", "processes", "recovered",
              "allocated", "errors"),
        "started_at": result.timeline.start_at,
        "exit_meaning": result.exit_code.meaning,
        "validity": {"verdict": result.verdict, "reasons": validity.reasons, "figures": validity.figures},
        "slos": [_slo(slo) for slo in result.slos],
        "findings": [_all(finding) for finding in result.diagnosis.findings],
        "effects": _effects(result),
        "not_judged": [
            _all(judged) | {"lacked": [_of(lack, "observation", "sources") for lack in judged.lacked]}
            for judged in result.not_judged
        ],
        "judged_with_less": result.diagnosis.judged_with_less,
        "ledger": _of(result.ledger, *_COUNTS),
        "throughput": _throughput(result),
        "phases": _phases(result),
        "latencies": {f"{name}_s": _summary(each) for name, each in _all(result.latencies).items()},
        "scaling": _scaling(result),
        "cost": _all(result.cost, "overhead", "surplus", "wasted"),
        "pending": _pending(result),
        "baseline": _baseline(result),
        "observer": _observer(result),
        "wasted_work": _all(result.wasted_work, "amplification"),
        "goodput": [_all(kind, "per_node_hour", "per_money") for kind in result.goodput],
        "spot": spot_document(result),
        "tenants": _all(tenants) | {"worst": tenants.worst and tenants.worst.name} if tenants else None,
    }  # fmt: skip
    rounded: dict[str, Any] = tidy(whole)
    # Not rounded: a later test compares its plan with this one.
    rounded["plan"] = _of(result.plan, *_PLAN) | {"command": list(result.plan.command)}
    return rounded


def _of(value: object, *names: str) -> dict[str, Any]:
    return {name: getattr(value, name) for name in names}


def _all(value: Any, *more: str) -> Any:
    """The fields of a dataclass and `more` of its properties; none of none."""
    return None if value is None else _of(value, *(field.name for field in fields(value)), *more)


def tidy(value: Any) -> Any:
    """Plain values: floats with six significant digits, as the last bits of a sum differ between machines.

    NaN and infinity are null; dataclasses become mappings of their fields, arrays lists.
    """
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: tidy(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [tidy(item) for item in value]
    if is_dataclass(value):
        return tidy(_all(value))
    return tidy(value.tolist()) if hasattr(value, "tolist") else value


def _effects(result: Result) -> dict[str, Any] | None:
    effects = result.effects
    if effects is None:
        return None
    together = effects.together
    return {
        "model": effects.model,
        "fixes": [prediction_document(fix) for fix in effects.fixes.values()],
        "together": None if together is None else prediction_document(together),
    }


def prediction_document(of: Prediction) -> dict[str, Any]:
    """A prediction as plain values."""
    fairness, fair_now = of.fairness or (None, None)
    return {
        **_of(of, "name", "simulated", "binds"), "figures": _figures(of.figures), "failed": of.failed.value,
        "failed_now": of.failed.now, "failed_interval": [of.failed.low, of.failed.high],
        "tenants": {name: _figures(each) for name, each in of.tenants.items()}, "fairness": fairness,
        "fairness_now": fair_now,
    }  # fmt: skip


def _figures(of: Mapping[str, Figure]) -> dict[str, Any]:
    return {
        name: {"now": each.now, "value": each.value, "interval": [each.low, each.high]} for name, each in of.items()
    }


def _slo(slo: SloResult) -> dict[str, Any]:
    return {
        **_of(slo, "met", "runs_needed", "value", "why"),
        **_of(slo.slo, "text", "limit", "unit"),
        "state": slo.state.value.lower(),
        "interval": [slo.low, slo.high],
    }


def _baseline(result: Result) -> dict[str, Any] | None:
    regression = result.regression
    if regression is None:
        return None
    change = regression.comparison
    return {
        "name": regression.baseline,
        "worse": regression.reasons,
        "duration_change": change.change if change else None,
        "interval": [change.low, change.high] if change else [None, None],
        "said": regression.sentence,
        "failed_ratio": regression.failed,
        "differences": regression.differences,
    }


def _observer(result: Result) -> dict[str, Any] | None:
    own = own_requests(result.timeline)
    if own is None:
        return None
    counts = [{"endpoint": name, "count": count} for name, count in sorted(own.by_endpoint.items())]
    return {"requests": counts, "platform_requests": own.platform, "platform_share": own.share}


def _throughput(result: Result) -> dict[str, Any]:
    flow = result.throughput
    columns = ("due", "succeeded", "failed", "nodes", "in_flight", "running", "pending")
    return {
        "succeeded_per_hour": flow.per_hour,
        "over_per_hour": flow.over_per_hour,
        "makespan_s": flow.makespan_s,
        "peak_nodes": result.peak_nodes,
        "windows": {"width_s": flow.width_s, "starts_s": flow.edges_s[:-1], **_of(flow, *columns)},
    }


def _phases(result: Result) -> dict[str, Any]:
    phase_breakdown = result.phases
    return {
        **_of(phase_breakdown, "runs", "mean_total_s", "caveat"),
        "reversed_spans": phase_breakdown.reversed,
        "phases": [_of(phase, "name", "mean_s", "share", "least_s", "most_s") for phase in phase_breakdown.phases],
    }


def _scaling(result: Result) -> dict[str, Any] | None:
    """Throughput by number of nodes within this run; null when it ran on too few different numbers of nodes."""
    scaling, measured = result.scaling, progress(result.timeline)
    if scaling is None or measured is None:
        return None
    return {
        **_of(scaling.curve, "law", "gamma", "sigma", "kappa"),
        "fitted_on": scaling.fitted_on,
        "enough_nodes": scaling.enough,
        "peak_nodes": scaling.peak,
        "limit_per_hour": scaling.curve.limit,
        "measured": _of(measured, "nodes", "per_hour"),
    }


def _pending(result: Result) -> dict[str, Any] | None:
    pending = result.pending
    if pending is None:
        return None
    within = {f"{bound:g}s": share for bound, share in pending.within.items()}
    return {"phase_s": _summary(pending.phase), "waited_s": _summary(pending.waited), "within": within}


def _summary(summary: Summary) -> dict[str, Any]:
    return {
        **_of(summary, "count", "censored", "mean"),
        "min": summary.least,
        "max": summary.most,
        "quantiles": {f"p{q.level * 100:g}": _of(q, "value", "low", "high", "at_least") for q in summary.quantiles},
    }
