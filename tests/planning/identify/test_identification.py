"""A platform identified from a test reproduces it, or says which phase does not fit: simulated and real tests."""

import tarfile
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from harness.cli import main
from harness.model.errors import ConfigError
from harness.planning.identify import compare, identify, measures_of, recorded_test, replay
from harness.planning.identify.reproduction import NODES
from harness.planning.timelines import timeline_of
from harness.simulator.engine.distributions import fixed
from harness.simulator.profile import ArtifactStore, Pool, Profile, Step
from harness.simulator.profile.file import load_profile
from harness.store import RunFolder
from harness.store.tables import seal
from tests.support.injection.case import Case, run_in
from tests.support.injection.case import simulated as case_simulated
from tests.support.injection.packages import Task, pipeline

REAL = Path(__file__).parents[2] / "data" / "real_folders"
BURST = ("--schedule", "burst", "--runs", "100", "--no-report", "--quiet")


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """A burst of 100 at ``aks-20-nodes`` with a fault, and the platform identified from it."""

    @cache
    def of(fault):
        place = tmp_path_factory.mktemp("simulated")
        options = ("--profile", "aks-20-nodes", "--fault", fault, "--runs-dir", str(place), "--run-name", "run")
        assert main(["simulate", "run", *options, *BURST]) == 0
        return _identified(place / "run", load_profile("aks-20-nodes"))

    return of


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """The platform identified from a test that was recorded on a real one."""

    @cache
    def of(name):
        place = tmp_path_factory.mktemp("real")
        with tarfile.open(REAL / f"{name}.tar.xz") as packed:
            packed.extractall(place, filter="data")
        seal(RunFolder.open(place / name))
        return _identified(place / name)

    return of


def _identified(path, profile=None):
    timeline = timeline_of(path)
    return identify(timeline, recorded_test(RunFolder.open(path), timeline), profile)


@pytest.mark.parametrize(
    "fault",
    [
        "autoscaler-slow", "cpu-starved", "autoscaler-at-max", "nodes-exhausted", "image-pull", "parallelism-cap",
        "store-slow", "quota",
    ],
)  # fmt: skip
def test_a_simulated_test_with_a_fault_is_reproduced_within_10_percent(simulated, fault):
    found = simulated(fault)
    assert not found.reproduction.misfits
    for name in ("mean_s", "makespan_s", "p95_s"):
        assert getattr(found.simulated, name) == pytest.approx(getattr(found.recorded, name), rel=0.1), name
    assert found.simulated.lost == pytest.approx(found.recorded.lost, abs=0.02)
    assert not found.reproduction.nodes.off, "of the runs' pools: those of the platform itself are not simulated"


@pytest.mark.parametrize("name", [
    "a1-base", "a4-parallelism4", "a5-quota6", "a6-nodes", "k6-burst60", "k-fail", "quota-cpu", "kfp-none", "none",
])  # fmt: skip
def test_a_real_test_is_reproduced_within_10_percent(real, name):
    found = real(name)
    assert not found.reproduction.misfits
    assert found.simulated.mean_s == pytest.approx(found.recorded.mean_s, rel=0.1)
    assert found.simulated.makespan_s == pytest.approx(found.recorded.makespan_s, rel=0.1)
    assert "the model reproduces the test within" in str(found.reproduction)


@pytest.mark.parametrize("seed", ["1", "2", "4"])
def test_a_burst_on_packed_nodes_of_an_autoscaler_that_scans_often_is_reproduced(seed, tmp_path):
    """That of the README: pods wait for new nodes as long as the autoscaler's scans and the scheduler let them."""
    load = ("--schedule", "burst", "--runs", "30", "--seed", seed, "--no-report", "--quiet")
    where = ("--pipeline", "harness/targets/training.yaml", "--runs-dir", str(tmp_path), "--run-name", "example")
    assert main(["simulate", "run", *where, *load]) == 0
    found = _identified(tmp_path / "example")
    assert not found.reproduction.misfits
    assert found.simulated.phases[NODES] == pytest.approx(found.recorded.phases[NODES], rel=0.15)
    read = {setting.name: str(setting.value) for setting in found.settings}
    assert (read["scheduler.packing"], read["autoscaler.scan_s"]) == ("true", "at most 2 s")


def test_kubernetes_own_scheduler_spreads_pods(real):
    assert real("none").profile.scheduler.packing is False


def test_a_real_test_that_does_not_fit_names_the_phase(real):
    """The controller was down for 25 seconds; pods were evicted, and killed, which no setting explains."""
    for name in ("a8-ctlkill", "k-evict", "k-oom"):
        found = real(name).reproduction
        assert found.misfits
        assert str(found).startswith("the model does not reproduce the test: ")
        assert found.misfits[0].name in str(found)


@pytest.mark.parametrize("name", ["a3-workers1", "k-noagent"])
def test_a_test_whose_runs_did_not_end_says_how_many_it_takes(real, name):
    with pytest.raises(ConfigError, match="has 0 runs that ended and whose pods were observed; it takes 5"):
        real(name)


@pytest.mark.parametrize(
    ("fault", "name", "value", "source"),
    [
        ("quota", "quota.cpu", "4", "refusals of pods"),
        ("parallelism-cap", "parallelism", "10", "runs that were active at once"),
        ("autoscaler-at-max", "pool.steps.max", "6", "the autoscaler's decisions"),
        ("nodes-exhausted", "pool.steps.nodes", "3", "nodes observed"),
        ("image-pull", "image.python:3.11-slim", "99.", "pulls of nodes"),
    ],
)
def test_a_limit_is_read_and_says_where(simulated, fault, name, value, source):
    (found,) = [each for each in simulated(fault).settings if each.name == name]
    assert str(found.value).startswith(value)
    assert found.source.startswith(source)


def test_what_other_pods_use_of_a_quota_is_not_the_runs(real):
    """The quota has seven pods, and one of them is the controller's."""
    found = real("quota6")
    (quota,) = [each for each in found.settings if each.name == "quota.pods"]
    assert str(quota.value) == "6 (7 less 1 of other pods)"
    assert found.profile.quota.pods == 6
    assert not found.reproduction.misfits


def test_a_mixture_stays_one(simulated):
    """Most pods pull nothing, and some for minutes: no single distribution has both."""
    found = simulated("image-pull")
    assert found.simulated.phases["image pull"] == pytest.approx(found.recorded.phases["image pull"], rel=0.1)


def test_what_the_pipeline_does_not_say_is_taken_from_its_pods(tmp_path):
    """Requests that the platform adds, outputs of very different sizes, and submissions that it rejects."""
    tasks = [Task("small"), Task("large", ("small",)), Task("last", ("large",))]
    sizes = {"small": 1e6, "large": 1e9, "last": 1e7}
    steps = [
        Step(name, fixed(20.0), fixed(size), fixed(0.2), requests_cpu=1.5, requests_memory=1e8)
        for name, size in sizes.items()
    ]
    pool = Pool("default", 4.0, initial=3, min=3, max=3)
    platform = Profile("asking", pools=(pool,), store=ArtifactStore(bytes_per_s=5e8), steps=tuple(steps))
    case = Case(("db-connections@0s",), runs=30, package=pipeline(tasks))
    timeline = case_simulated(case, 1.0, 5, platform, tmp_path)
    found = identify(timeline, replace(recorded_test(run_in(tmp_path), timeline), package=case.package))
    assert found.recorded.lost > 0.1
    assert found.simulated.lost == found.recorded.lost
    assert [each.requests_cpu for each in found.profile.steps[:3]] == [1.5, 1.5, 1.5]
    for task, was in found.recorded.uploads.items():
        assert found.simulated.uploads[task] == pytest.approx(was, rel=0.2, abs=0.3), task
    assert not found.reproduction.misfits


def test_another_load_is_another_test(simulated, tmp_path):
    """What is identified is the platform, not the test: half of the load is simulated as half of it was recorded."""
    fault = "nodes-exhausted"
    options = ("--profile", "aks-20-nodes", "--fault", fault, "--runs-dir", str(tmp_path), "--run-name", "half")
    assert main(["simulate", "run", *options, *BURST[:3], "50", *BURST[4:]]) == 0
    timeline = timeline_of(tmp_path / "half")
    test = recorded_test(RunFolder.open(tmp_path / "half"), timeline)
    predicted, truth = replay(simulated(fault).profile, test), measures_of(timeline)
    assert predicted.mean_s == pytest.approx(truth.mean_s, rel=0.1)
    assert predicted.makespan_s == pytest.approx(truth.makespan_s, rel=0.1)


def test_a_phase_that_is_off_by_more_than_15_percent_is_a_misfit_unless_it_is_slight(simulated):
    recorded = simulated("nodes-exhausted").recorded
    for name, seconds, off in (
        ("running", 1.2 * recorded.phases["running"], True),
        ("running", 1.1 * recorded.phases["running"], False),
        ("image pull", 2.0 * recorded.phases["image pull"], False),
    ):
        changed = replace(recorded, phases={**recorded.phases, name: seconds})
        assert [each.name for each in compare(recorded, changed).misfits] == [name] * off
