"""Objectives as written: their parts, their limits, and what the user is told of those that mean nothing."""

import pytest

from harness.model import ConfigError
from harness.model.slo import PHASE_QUANTITIES, Slo, parse_share, parse_slo


@pytest.mark.parametrize(
    ("text", "slo"),
    [
        (" throughput >= 360/h ", Slo("throughput >= 360/h", "throughput", "", None, ">=", 0.1)),
        ("Failed_Ratio < 25%", Slo("Failed_Ratio < 25%", "failed_ratio", "", None, "<", 0.25)),
        (" mean(submit.lag)>2s", Slo("mean(submit.lag)>2s", "mean", "submit.lag", None, ">", 2.0)),
        ("min(submit.latency) < 1s", Slo("min(submit.latency) < 1s", "min", "submit.latency", None, "<", 1.0)),
        ("p0.1(run.duration) <= 1m", Slo("p0.1(run.duration) <= 1m", "percentile", "run.duration", 0.1, "<=", 60.0)),
    ],
)
def test_an_objective_has_its_text_and_its_parts(text, slo):
    assert parse_slo(text) == slo


@pytest.mark.parametrize(
    ("operator", "below", "at", "above"),
    [("<", True, False, False), ("<=", True, True, False), (">", False, False, True), (">=", False, True, True)],
)
def test_an_objective_holds_on_its_side_of_the_limit(operator, below, at, above):
    slo = parse_slo(f"max(run.duration) {operator} 3s")
    assert (slo.holds(2.9), slo.holds(3.0), slo.holds(3.1)) == (below, at, above)
    assert slo.is_upper == below


STATISTICS = "statistics: mean, min, max, p50, p95, p99.9, …"
FORM = "write it as 'p95(run.duration) < 20m', 'failed_ratio < 0.01' or 'throughput > 100/h'"
PHASES = ", ".join(PHASE_QUANTITIES)


@pytest.mark.parametrize(
    ("text", "problem", "hint"),
    [
        ("fast", "the SLO 'fast' can't be parsed", FORM),
        ("median(run.duration) < 1s", "the SLO 'median(run.duration) < 1s': there is no statistic 'median'", STATISTICS),
        ("p0(run.duration) < 1s", "the SLO 'p0(run.duration) < 1s': there is no statistic 'p0'", STATISTICS),
        ("p100(run.duration) < 1s", "the SLO 'p100(run.duration) < 1s': there is no statistic 'p100'", STATISTICS),
        ("p95(speed) < 1s", "the SLO 'p95(speed) < 1s': there is no quantity 'speed'",
         f"quantities: run.duration, submit.latency, submit.service, submit.lag, {PHASES}"),
        ("p95(run.durtion) < 1s", "the SLO 'p95(run.durtion) < 1s': there is no quantity 'run.durtion'",
         f"did you mean 'run.duration'? quantities: run.duration, submit.latency, submit.service, submit.lag, {PHASES}"),
        ("failed_rate < 1", "the SLO 'failed_rate < 1': there is no measure 'failed_rate'",
         (f"did you mean 'failed_ratio'? {FORM}; "
         "measures: failed_ratio, rejected_ratio, missed_ratio, censored_ratio, succeeded_ratio, throughput")),
        ("speed < 1", "the SLO 'speed < 1': there is no measure 'speed'",
         f"{FORM}; measures: failed_ratio, rejected_ratio, missed_ratio, censored_ratio, succeeded_ratio, throughput"),
        ("failed_ratio < 2", "the SLO 'failed_ratio < 2': '2' is not a share", "write it as 0.01 or 1%"),
        ("throughput > 3/w", "the SLO 'throughput > 3/w': '3/w' is not a rate", "write it as 2/s, 120/m or 500/h"),
        ("max(run.duration) < soon", "the SLO 'max(run.duration) < soon': 'soon' is not a duration",
         "write it as 90s, 10m, 1h30m or a number of seconds"),
    ],
)  # fmt: skip
def test_an_objective_without_a_meaning_is_refused_with_what_there_is(text, problem, hint):
    with pytest.raises(ConfigError) as refused:
        parse_slo(text)
    assert (refused.value.message, refused.value.hint) == (problem, hint)


@pytest.mark.parametrize(("text", "share"), [("0", 0.0), ("1", 1.0), ("100%", 1.0), ("5%", 0.05), ("0.25", 0.25)])
def test_shares_are_from_0_to_1(text, share):
    assert parse_share(text) == share


@pytest.mark.parametrize("text", ["1.01", "101%", "-0.1", "nan", "", "%", "many"])
def test_other_numbers_are_no_shares(text):
    with pytest.raises(ConfigError, match=f"'{text}' is not a share"):
        parse_share(text)
