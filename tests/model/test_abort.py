import pytest

from harness.model import ConfigError
from harness.model.abort import Watch, parse_abort


def counts(done=0, failed=0, accepted=0, rejected=0, missed=0, compared=0):
    told = {"done": done, "failed": failed, "accepted": accepted, "rejected": rejected, "missed": missed}
    return {**told, "rejected_with_ended": compared}


def watch(*rules):
    return Watch(tuple(parse_abort(rule) for rule in rules))


def test_a_rule_without_a_window_applies_to_the_whole_test():
    watching = watch("failed_ratio > 0.2")
    assert watching.broken(0.0, counts()) is None, "nothing has ended"
    assert watching.broken(1.0, counts(done=16, failed=4)) is None
    assert watching.broken(2.0, counts(done=16, failed=6)) == "failed_ratio > 0.2: it was 0.273"


@pytest.mark.parametrize(
    ("rule", "least"),
    [("failed_ratio > 0.2", 20), ("failed_ratio > 0.2 after 5", 5), ("failed_ratio > 0.2 after 1 runs", 1),
     ("failed_ratio > 0.2 for 1s", 1), ("failed_ratio > 0.2 for 1s after 7", 7)],
)  # fmt: skip
def test_a_rule_needs_a_least_number_of_ended_runs(rule, least):
    watching = watch(rule)
    watching.broken(0.0, counts())
    assert watching.broken(1.0, counts(failed=least - 1)) is None
    assert watching.broken(1.0, counts(failed=least)) is not None


def test_a_rule_with_a_window_applies_once_the_test_is_that_old():
    watching = watch("failed_ratio > 50% for 1m")
    assert watching.broken(0.0, counts()) is None
    assert watching.broken(30.0, counts(failed=5)) is None, "the test is younger than the window"
    assert watching.broken(60.0, counts(done=100, failed=5)) is None
    assert watching.broken(90.0, counts(done=101, failed=30)) is None, "25 of 126 within the last minute"
    reason = watching.broken(120.0, counts(done=101, failed=60))
    assert reason == "failed_ratio > 50% for 1m: it was 0.982 in the last 60 s"


def test_events_before_the_window_do_not_count():
    watching = watch("rejected_ratio >= 0.5 for 10s")
    for second in range(10):
        assert watching.broken(float(second), counts(rejected=second)) is None
    assert watching.broken(10.0, counts(rejected=10)) is not None
    for second in range(11, 25):
        reason = watching.broken(float(second), counts(rejected=10, accepted=10 * (second - 10)))
    assert reason is None


def test_a_rejected_run_has_failed_as_in_objectives():
    reason = watch("failed_ratio > 0.5").broken(0.0, counts(done=8, failed=4, accepted=12, rejected=8, compared=8))
    assert reason == "failed_ratio > 0.5: it was 0.6"
    assert watch("succeeded_ratio < 0.5").broken(0.0, counts(done=8, failed=4, compared=8)) is not None


def test_rejections_wait_for_the_ends_of_the_runs_that_were_due_with_them():
    """Of 100 arrivals 10 are rejected at once; that is 10 % of them, not 10 of the first 20 that are over."""
    watching = watch("failed_ratio > 0.2")
    assert watching.broken(0.0, counts(done=10, accepted=90, rejected=10, compared=1)) is None
    assert watch("rejected_ratio > 0.05").broken(0.0, counts(accepted=90, rejected=10)) is not None


def test_any_of_several_rules_is_enough():
    watching = watch("failed_ratio > 0.9", "missed_ratio > 0")
    assert watching.broken(0.0, counts(done=1, accepted=19, missed=1)).startswith("missed_ratio")


@pytest.mark.parametrize(
    "text",
    ["often", "failed_ratio > 0.2 for long", "throughput > 3/s", "p95(run.duration) > 3s", "failed_ratio > 1 for 0s",
     "failed_ratio > 0.2 after 0", "failed_ratio > 0.2 after few", "failed_ratio > 0.2 for", "", "failed_ratio\n> x"],
)  # fmt: skip
def test_a_rule_that_cannot_be_evaluated_is_refused(text):
    with pytest.raises(ConfigError, match="the rule") as refused:
        parse_abort(text)
    assert refused.value.hint.startswith(
        "write it as 'failed_ratio > 0.2 for 1m', 'failed_ratio > 0.2 after 50' or 'blocked'"
    )


def test_the_ratios_that_are_known_during_a_test_are_named():
    with pytest.raises(ConfigError) as refused:
        parse_abort("censored_ratio > 0.2")
    assert refused.value.hint.endswith("; ratios: failed_ratio, rejected_ratio, missed_ratio, succeeded_ratio")


def test_runs_that_are_blocked_abort_a_test_at_once():
    watching = watch("blocked")
    assert watching.broken(0.0, counts(done=3) | {"blocked": 0}) is None
    assert watching.broken(1.0, counts(done=3)) is None, "nothing observes the cluster"
    broken = watching.broken(2.0, counts(done=3) | {"blocked": 2})
    assert broken == "blocked: 2 runs wait for what will not come by itself"


def test_without_rules_nothing_aborts_a_test():
    watching = watch()
    assert [watching.broken(float(second), counts(failed=99)) for second in range(3)] == [None] * 3
