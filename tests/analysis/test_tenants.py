"""Tenants side by side: their figures, their slowdown within the same scenarios, and fairness."""

from dataclasses import replace

import numpy as np
import pytest

from harness.analysis.tenants import figures, jain, tenants
from harness.model.phases import FAILED, RUNNING
from harness.model.records import Outcome
from tests.support.timelines import Story


def story(*runs: tuple[str, str, float]) -> Story:
    """Runs of (tenant, scenario) that take so many seconds, a hundred seconds apart; half of it they work."""
    told = Story(intended=len(runs))
    for seq, (tenant, scenario, took) in enumerate(runs):
        due = 100.0 * seq
        run = told.submit(seq, due=due, lag=0.0, service=0.0)
        told.records[-1] = replace(
            told.records[-1], tenant=tenant, scenario_id=scenario, run_name=f"{scenario}-{scenario}"
        )
        told.run(run, due, due + took)
        told.pod(run, "train", "n1", (RUNNING, due + took / 2, due + took))
    return told


def test_runs_without_tenants_have_none(tmp_path):
    timeline = story(("", "a", 4.0), ("", "a", 4.0)).timeline(tmp_path)
    assert tenants(timeline) is None
    assert not dict(figures(timeline))


def test_a_tenants_slowdown_is_against_the_others_runs_of_the_same_scenarios(tmp_path):
    runs = [
        ("alpha", "small", 4.0), ("alpha", "large", 40.0), ("beta", "small", 8.0), ("beta", "small", 8.0),
        ("beta", "small", 8.0), ("gamma", "own", 90.0),
    ]  # fmt: skip
    found = {each.name: each for each in tenants(story(*runs).timeline(tmp_path)).tenants}
    assert found["beta"].slowdown == pytest.approx(2.0), "the large run of alpha is of another scenario"
    assert found["alpha"].slowdown == pytest.approx(0.5)
    assert found["gamma"].slowdown is None, "nobody else ran its scenario"
    assert (found["alpha"].mean_s, found["alpha"].p95_s, found["alpha"].waited_s) == (22.0, 40.0, 11.0)


def test_a_name_of_a_tenant_is_not_enough_to_compare(tmp_path):
    found = tenants(story(("alpha", "own", 4.0), ("beta", "other", 8.0)).timeline(tmp_path))
    assert (found.fairness, found.worst) == (None, None)
    assert [each.name for each in found.tenants] == ["alpha", "beta"]


def test_fairness_is_jains_index_of_speeds(tmp_path):
    even = tenants(story(("alpha", "a", 4.0), ("beta", "a", 4.0)).timeline(tmp_path / "even"))
    assert even.fairness == pytest.approx(1.0)
    uneven = tenants(story(("alpha", "a", 2.0), ("beta", "a", 6.0)).timeline(tmp_path / "uneven"))
    assert uneven.fairness == pytest.approx(jain(np.array([4 / 2, 4 / 6])))
    assert uneven.worst.name == "beta"


@pytest.mark.parametrize(("values", "index"), [([1, 1, 1, 1], 1.0), ([1, 0, 0, 0], 0.25), ([1, 3], 0.8)])
def test_jains_index(values, index):
    assert jain(np.array(values, dtype=float)) == pytest.approx(index)


def test_every_arrival_of_a_tenant_is_counted(tmp_path):
    told = story(("alpha", "a", 4.0), ("beta", "a", 4.0))
    for seq, outcome in enumerate((Outcome.REJECTED, Outcome.MISSED), 2):
        told.submit(seq, due=10.0, outcome=outcome, status=503)
        told.records[-1] = replace(told.records[-1], tenant="beta")
    run = told.submit(4, due=300.0)
    told.records[-1] = replace(told.records[-1], tenant="beta")
    told.run(run, 300.0, 310.0, FAILED)
    told.intended = 5
    beta = tenants(told.timeline(tmp_path)).tenants[1]
    assert (beta.intended, beta.succeeded, beta.failed, beta.lost) == (4, 1, 1, 2)
    assert beta.mean_s == 4.0, "of runs that succeeded"
