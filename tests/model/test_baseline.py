"""What a baseline takes from an earlier report, what it refuses, and in which settings two tests differ."""

from dataclasses import replace

import pytest

from harness.model.baseline import Baseline, differences
from harness.model.errors import ConfigError
from harness.model.plan import Plan
from harness.model.schedules import Burst, Concurrency, Level, to_mapping

REPORT = {
    "schema_version": 1,
    "name": "nightly",
    "plan": {
        "target": "kfp", "host": "https://kfp", "schedule": to_mapping(Burst(100)), "intended": 100, "seed": 7,
        "simulated": True, "digests": {"pipeline": "p"}, "versions": {"pipeswarm": "1"}, "workers": 3, "command": ["x"],
    },
    "batches_s": [1.0] * 7 + [None, 2.0],
    "ledger": {"failed": 5, "canceled": 2, "rejected": 3, "succeeded": 90, "intended": 100},
    "validity": {"verdict": "VALID"},
}  # fmt: skip


def test_an_earlier_test_is_taken_from_its_report():
    found = Baseline.parse(REPORT, "runs/a")
    assert (found.name, found.source, found.failed_ratio) == ("nightly", "runs/a", 0.1)
    assert found.batches_s == (*[1.0] * 7, None, 2.0)
    assert found.plan == Plan(
        "kfp", "https://kfp", to_mapping(Burst(100)), 100, 7, simulated=True, digests={"pipeline": "p"},
        versions={"pipeswarm": "1"}, workers=3,
    )  # fmt: skip


def test_a_test_without_arrivals_lost_none():
    one = REPORT | {"ledger": {"failed": 1, "canceled": 0, "rejected": 0, "succeeded": 0, "intended": 1}}
    assert Baseline.parse(one, "a").failed_ratio == 1.0
    assert Baseline.parse(REPORT | {"ledger": dict.fromkeys(REPORT["ledger"], 0)}, "a").failed_ratio == 0.0


@pytest.mark.parametrize(
    ("report", "said"),
    [
        ([], "is not a report of Pipeswarm\n  → give a run's folder"),
        ({"batches_s": []}, "is not a report of Pipeswarm\n  → give a run's folder"),
        ({"schema_version": 1}, "was written by an older version\n  → rewrite its report: pipeswarm report"),
        (REPORT | {"name": 5}, "can't be read: 'name' is 5, not a text\n  → give a run's folder"),
        (REPORT | {"ledger": {"failed": 5}}, "can't be read: 'canceled'\n  → give a run's folder"),
        (REPORT | {"plan": {}}, "can't be read: 'target'\n  → give a run's folder"),
        (
            REPORT | {"validity": {"verdict": "INVALID", "reasons": ["late", "lost"]}},
            "is INVALID: late\n  → give another run",
        ),
        (REPORT | {"validity": {"verdict": "INVALID"}}, "is INVALID: unknown\n  → give another run"),
        (
            REPORT | {"batches_s": [1.0] * 7 + [None] * 13},
            "is too small: 90 of its runs succeeded\n  → give a test with at least 60 successful runs",
        ),
    ],
)
def test_another_report_is_refused_with_what_to_do(report, said):
    with pytest.raises(ConfigError) as refused:
        Baseline.parse(report, "runs/a")
    assert str(refused.value) == f"the baseline runs/a {said}"


A = Plan("kfp", "", to_mapping(Burst(100)), 100, 7, simulated=False, digests={"pipeline": "a" * 64, "schedule": "1"})


@pytest.mark.parametrize(
    ("b", "said"),
    [
        (A, ()),
        (replace(A, seed=8, host="other", workers=3), ()),
        (replace(A, target="argo"), ("target: kfp and argo",)),
        (replace(A, intended=50), ("runs: 100 and 50",)),
        (replace(A, digests={}), (f"pipeline: {'a' * 12} and none",)),
        (replace(A, digests={"pipeline": "b" * 64}), (f"pipeline: {'a' * 12} and {'b' * 12}",)),
        (replace(A, digests=A.digests | {"scenarios": "c"}), ("scenarios: none and c",)),
        (
            replace(A, schedule=to_mapping(Burst(100, 5.0, 2)), digests=A.digests | {"schedule": "2"}),
            ("schedule: burst, runs 100 and burst, every 5 s, runs 100, times 2",),
        ),
        # Equal due times are equal schedules, and the runs of a closed test are a result.
        (replace(A, schedule={"name": "replay"}), ()),
        (
            replace(A, schedule=to_mapping(Concurrency((Level(3, 60.0),))), intended=7, digests={"pipeline": "a" * 64}),
            ("schedule: burst, runs 100 and concurrency, for 60 s, model closed, spawn rate 1/s, users 3",),
        ),
    ],
)
def test_two_tests_differ_in_their_settings(b, said):
    assert differences(A, b) == said


def test_the_runs_of_a_closed_test_are_a_result_on_either_side():
    closed = replace(A, schedule=to_mapping(Concurrency((Level(3, 60.0),))), digests={})
    assert differences(closed, replace(closed, intended=7)) == ()
    other = replace(A, intended=7)
    assert len(differences(closed, other)) == len(differences(other, closed)) == 2, "schedule and pipeline"


def test_without_digests_schedules_are_compared_by_their_settings():
    a = replace(A, digests={}, schedule=to_mapping(Burst(100)) | {"stages": (1, 2)})
    assert differences(a, replace(a, schedule=dict(a.schedule) | {"stages": [1, 2]})) == ()
    assert len(differences(a, replace(a, schedule=to_mapping(Burst(100))))) == 1


def test_a_baseline_of_another_load_is_refused_and_one_of_another_pipeline_is_not():
    base = Baseline("a", "runs/a", A, (), 0.0)
    base.demand_same_load(replace(A, digests=A.digests | {"pipeline": "b" * 64}))
    with pytest.raises(ConfigError) as refused:
        base.demand_same_load(replace(A, intended=50, digests=A.digests | {"pipeline": "b" * 64}))
    assert str(refused.value) == (
        "the baseline runs/a is of another load: runs: 100 and 50\n  → repeat its load, or give another run"
    )
