"""Advice for steps on spot machines, against the closed forms and what a simulated platform does with it."""

import json
from dataclasses import replace

import pytest
import yaml

from harness.analysis.spot.advice import advice, share_of
from harness.cli import main
from harness.model.phases import RUNNING, SCHEDULING
from harness.simulator.platform import Platform
from harness.simulator.profile.file import load_profile
from tests.support.platforms import UNCACHED, submit, upload
from tests.support.spot_arithmetic import expected
from tests.support.timelines import Story

LENGTH_S, HOURS, TAKEN = 1800.0, 100.0, 50


def recorded(*, slos=(), price=None, on_demand=None, length_s=LENGTH_S) -> Story:
    """100 machines for an hour, of which 50 are taken back at its end; one run with a long step and a short one."""
    told = Story(intended=1, slos=slos)
    for k in range(100):
        taken = k < TAKEN
        gone = 3600.0 if k < 98 else None  # the others are scaled down
        told.node(f"cheap-{k:02}", 0.0, 0.0, gone, pool="cheap", spot=True, price=price)
        if taken:
            told.event(3599.0 - k * 70, "Node", f"cheap-{k:02}", "PreemptScheduled")
    told.node("steady", 0.0, 0.0, 0.1, pool="steady", price=on_demand)
    run = told.submit(0)
    told.pod(run, "train", "cheap-99", (SCHEDULING, 0.0, 1.0), (RUNNING, 1.0, 1.0 + length_s))
    told.pod(run, "train-driver", "cheap-99", (RUNNING, 0.0, 1.0))
    told.pod(run, "test", "cheap-98", (RUNNING, 1.0 + length_s, 61.0 + length_s))
    told.run(run, 0.0, 3600.0)
    return told


def test_retries_are_the_fewest_with_which_failures_stay_below_the_limit(tmp_path):
    """Two steps of a run share 1 %; the rate is the upper end for 50 losses in 100 h."""
    found = advice(recorded().timeline(tmp_path))
    test, train = found.steps
    assert (found.limit, found.from_slo, train.task, train.recorded) == (0.01, False, "train", 1)
    rate, share = found.rate_per_hour / 3600, share_of(0.01, 2)
    assert found.rate_per_hour == pytest.approx(0.659, rel=1e-2)
    assert 1 - expected(LENGTH_S, rate, train.retries).success <= share
    assert 1 - expected(LENGTH_S, rate, train.retries - 1).success > share
    assert train.retries == 4
    assert test.retries == 1
    assert found.failing == pytest.approx(1 - (1 - test.failing) * (1 - train.failing))
    assert found.failing <= 0.01


def test_expectations_are_those_of_the_closed_forms(tmp_path):
    found = advice(recorded().timeline(tmp_path))
    train = found.steps[1]
    wanted = expected(LENGTH_S, found.rate_per_hour / 3600, train.retries)
    assert train.failing == pytest.approx(1 - wanted.success, abs=4 * (wanted.success / 20_000 * 0.005) ** 0.5)
    assert train.attempts == pytest.approx(wanted.attempts, rel=0.02)
    assert train.break_even == pytest.approx(LENGTH_S / (LENGTH_S + wanted.work_s - LENGTH_S), rel=0.02)
    # Without a recorded loss, the next attempt is taken to wait for two minutes.
    assert train.added_s == pytest.approx(train.lost_s + 120 * (train.attempts - 1), rel=0.05)
    assert train.max_s >= LENGTH_S + 2 * 120


@pytest.mark.parametrize(
    ("slos", "limit", "retries"),
    [(("failed_ratio < 0.2",), 0.2, 1), (("succeeded_ratio >= 99.9%", "failed_ratio < 0.2"), 0.001, 6)],
)
def test_the_limit_is_that_of_the_strictest_objective(slos, limit, retries, tmp_path):
    found = advice(recorded(slos=slos).timeline(tmp_path))
    assert (found.limit, found.from_slo, found.steps[1].retries) == (pytest.approx(limit), True, retries)


@pytest.mark.parametrize(
    ("price", "on_demand", "spot"), [(None, None, None), (0.1, 0.5, True), (0.45, 0.5, False)]
)  # fmt: skip
def test_a_step_belongs_on_spot_if_that_is_cheaper_with_its_lost_work(price, on_demand, spot, tmp_path):
    train = advice(recorded(price=price, on_demand=on_demand).timeline(tmp_path)).steps[1]
    assert train.spot is spot


def test_a_step_that_is_lost_nearly_always_does_not_belong_on_spot(tmp_path):
    train = advice(recorded(price=0.1, on_demand=0.5, length_s=40 * 3600.0).timeline(tmp_path)).steps[1]
    assert (train.spot, train.retries) == (False, None)
    assert train.failing == pytest.approx(1.0, abs=0.01)


def test_attempts_that_failed_or_go_on_do_not_stand_for_a_step(tmp_path):
    told = recorded()
    run = told.submit(0)
    for name, *running in (("failed", 0.0, 5.0), ("going", 0.0, None)):
        step = told.pod(run, "train", "cheap-98", (RUNNING, *running))
        told.records[-1] = replace(told.records[-1], step=f"{step}-{name}")
    told.event(5.0, "Pod", f"{run}-train-failed", "Error", "container main ended with exit code 1", run=run)
    assert advice(told.timeline(tmp_path)).steps[1].recorded == 1


def test_few_evictions_in_a_short_time_give_no_advice(tmp_path):
    told = Story(intended=1)
    told.node("cheap", 0.0, 0.0, pool="cheap", spot=True)
    run = told.submit(0)
    told.pod(run, "train", "cheap", (RUNNING, 0.0, 600.0))
    told.run(run, 0.0, 600.0)
    assert advice(told.timeline(tmp_path)) is None


POOLS = """
pools:
  - {name: system, cpu: 64, memory: 256Gi, pods: 1000, initial: 1, min: 1, max: 1}
  - {name: cheap, cpu: 4, memory: 32Gi, initial: 20, max: 60, price: 0.09, spot: true, evictions_per_hour: 1.5,
     eviction: {cloud: eks}}
steps: [{duration: 20m, cpu: 200m, memory: 100Mi, output: 1Mi, requests_cpu: 1}]
api: {qps: 100, burst: 200}
controller: {qps: 100, burst: 200, error_retries: 1}
autoscaler: {provisioning: 60s, scan_s: 5s}
"""


def on_spot(retries: int, longest_s: float = 3600.0) -> bytes:
    """Three steps of 20 minutes, all on spot machines, which live for 40 minutes on average."""
    (spec,) = yaml.safe_load_all(UNCACHED)
    policy = {"maxRetryCount": retries, "backoffDuration": "0s", "backoffMaxDuration": f"{longest_s:g}s"}
    for task in spec["root"]["dag"]["tasks"].values():
        task["retryPolicy"] = policy
    executors = {
        label: {"nodeSelector": {"labels": {"agentpool": "cheap"}}} for label in spec["deploymentSpec"]["executors"]
    }
    platform = {"platforms": {"kubernetes": {"deploymentSpec": {"executors": executors}}}}
    return yaml.safe_dump_all([spec, platform]).encode()


def test_advice_from_a_test_with_too_few_retries_keeps_the_next_one_below_its_limit(tmp_path):
    """Lost too often, and ended by the usual longest time of an hour; with the advice no more fail than allowed."""
    (tmp_path / "pools.yaml").write_text(POOLS)
    (tmp_path / "before.yaml").write_bytes(on_spot(retries=1))
    given = {"profile": tmp_path / "pools.yaml", "pipeline": tmp_path / "before.yaml", "runs": 60,
             "runs-dir": tmp_path, "run-name": "before", "slo": "failed_ratio < 10%"}  # fmt: skip
    assert main(["simulate", "run", "--quiet", *(f"--{key}={value}" for key, value in given.items())]) == 3
    folder = tmp_path / "before"
    told = json.loads((folder / "report.json").read_bytes())
    assert told["ledger"]["failed"] > 0.2 * 60
    assert told["spot"]["evictions_per_hour"]["low"] <= 1.5 <= told["spot"]["evictions_per_hour"]["high"]
    assert "Advice for each step on spot nodes" in (folder / "report.html").read_text()
    assert "## Evictions" in (folder / "report.md").read_text()

    advised = told["spot"]["advice"]
    assert (advised["from_slo"], advised["limit"]) == (True, 0.1)
    retries, longest_s = (max(step[name] for step in advised["steps"]) for name in ("retries", "max_s"))
    assert retries > 1
    platform = Platform(load_profile(str(tmp_path / "pools.yaml")), seed=1)
    rows = submit(platform, upload(platform, on_spot(retries, longest_s)), 60)
    platform.loop.run(12 * 3600.0)
    assert sum(run.state != "SUCCEEDED" for run in rows) <= 0.1 * 60
