"""Service level objectives as users write them: ``p95(run.duration) < 20m``, ``throughput > 100/h``.

objective  = measure ("<" | "<=" | ">" | ">=") limit
measure    = statistic "(" quantity ")" | ratio | "throughput"
statistic  = "mean" | "min" | "max" | "p" number           p50, p95, p99.9
quantity   = "run.duration" | "submit.latency" | "submit.service" | "submit.lag" | "phase." name
ratio      = "failed_ratio" | "rejected_ratio" | "missed_ratio" | "censored_ratio" | "succeeded_ratio"
             of intended runs; failed includes canceled and rejected
limit      = a duration for quantities, a number or percentage for ratios, a rate for the throughput
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import nan

from harness.model.errors import ConfigError, suggestion
from harness.model.phases import RUN_PHASES
from harness.model.units import parse_duration, parse_rate

RUN_DURATION = "run.duration"  # from due to end
SUBMIT_LATENCY = "submit.latency"  # from due to response
SUBMIT_SERVICE = "submit.service"  # from sent to response
SUBMIT_LAG = "submit.lag"  # from due to sent
PHASE_QUANTITIES = {f"phase.{name.replace(' ', '_')}": name for name in RUN_PHASES}
QUANTITIES = (RUN_DURATION, SUBMIT_LATENCY, SUBMIT_SERVICE, SUBMIT_LAG, *PHASE_QUANTITIES)
REJECTED_RATIO = "rejected_ratio"
RATIOS = ("failed_ratio", REJECTED_RATIO, "missed_ratio", "censored_ratio", "succeeded_ratio")
THROUGHPUT = "throughput"  # successful runs per second

_OBJECTIVE = re.compile(r"\s*([a-z0-9._]+)\s*(?:\(\s*([a-z._ ]+?)\s*\))?\s*(<=|>=|<|>)\s*(\S.*?)\s*", re.IGNORECASE)
_PERCENTILE = re.compile(r"p(\d+(?:\.\d+)?)")
_HINT = "write it as 'p95(run.duration) < 20m', 'failed_ratio < 0.01' or 'throughput > 100/h'"


@dataclass(frozen=True, slots=True)
class Slo:
    """One objective. `limit` is in seconds, a share, or runs per second; `percentile` is 0..100 or None."""

    text: str
    measure: str  # "mean", "min", "max", "percentile", a ratio's name, or "throughput"
    quantity: str  # "" for ratios and the throughput
    percentile: float | None
    operator: str
    limit: float

    @property
    def unit(self) -> str:
        """The unit of the limit and of measured values: "s", "/s" or "" (a share)."""
        if self.quantity:
            return "s"
        return "/s" if self.measure == THROUGHPUT else ""

    @property
    def is_upper(self) -> bool:
        """The limit is one from above."""
        return self.operator in {"<", "<="}

    def holds(self, value: float) -> bool:
        """Whether `value` meets the objective."""
        match self.operator:
            case "<":
                return value < self.limit
            case "<=":
                return value <= self.limit
            case ">":
                return value > self.limit
            case _:
                return value >= self.limit


def parse_slo(text: str) -> Slo:
    """Parse one objective.

    Raises:
        ConfigError: it does not follow the grammar above.
    """
    match = _OBJECTIVE.fullmatch(text)
    if match is None:
        raise ConfigError(f"the SLO '{text}' can't be parsed", _HINT)
    measure, quantity, operator, limit = match[1].lower(), (match[2] or "").lower(), match[3], match[4]
    if not quantity:
        return _whole_run(text, measure, operator, limit)
    if quantity not in QUANTITIES:
        raise ConfigError(
            f"the SLO '{text}': there is no quantity '{quantity}'",
            f"{suggestion(quantity, QUANTITIES)}quantities: {', '.join(QUANTITIES)}",
        )
    percentile = _percentile(text, measure)
    name = measure if percentile is None else "percentile"
    return Slo(text.strip(), name, quantity, percentile, operator, _limit(text, parse_duration, limit))


def _percentile(text: str, measure: str) -> float | None:
    if measure in {"mean", "min", "max"}:
        return None
    match = _PERCENTILE.fullmatch(measure)
    if match is None or not 0 < float(match[1]) < 100:
        raise ConfigError(
            f"the SLO '{text}': there is no statistic '{measure}'", "statistics: mean, min, max, p50, p95, p99.9, …"
        )
    return float(match[1])


def _whole_run(text: str, measure: str, operator: str, limit: str) -> Slo:
    if measure == THROUGHPUT:
        return Slo(text.strip(), measure, "", None, operator, _limit(text, parse_rate, limit))
    if measure in RATIOS:
        return Slo(text.strip(), measure, "", None, operator, _limit(text, parse_share, limit))
    names = (*RATIOS, THROUGHPUT)
    raise ConfigError(
        f"the SLO '{text}': there is no measure '{measure}'",
        f"{suggestion(measure, names)}{_HINT}; measures: {', '.join(names)}",
    )


def parse_share(text: str) -> float:
    """A share from 0 to 1: ``0.05`` or ``5%``.

    Raises:
        ConfigError: it is none.
    """
    try:
        share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        share = nan
    if not 0 <= share <= 1:
        raise ConfigError(f"'{text}' is not a share", "write it as 0.01 or 1%")
    return share


def _limit(text: str, parse: Callable[[str], float], limit: str) -> float:
    try:
        return parse(limit)
    except ConfigError as error:
        raise ConfigError(f"the SLO '{text}': {error.message}", error.hint) from error
