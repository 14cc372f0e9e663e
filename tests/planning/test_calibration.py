"""A profile calibrated on a recorded run reproduces that run."""

from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.cli import main
from harness.model import Span
from harness.model.phases import RUN
from harness.planning.calibration import calibrated, fitted
from harness.planning.observations import timeline_of
from harness.simulator.engine.distributions import Fixed, Lognormal
from harness.simulator.profile import Profile
from harness.simulator.profile.file import load_profile
from harness.store.folder import RunFolder

SLOW = """
pools: [{name: pool, cpu: 4, memory: 16Gi, initial: 1, min: 1, max: 12}]
autoscaler: {provisioning: {lognormal: {median: 70s, p95: 90s}}}
kubelet: {start: {lognormal: {median: 3s, p95: 5s}}, pull_overhead_s: 0s, pull_bytes_per_s: 100Gi}
api: {qps: 1000, burst: 1000, latency: {uniform: [100ms, 140ms]}}
controller: {qps: 1000, burst: 1000, requeue_s: 1s, driver: {uniform: [1s, 3s]}}
store: {request_s: 0s}
database: {parallel: 0}
steps:
  - {match: train, duration: {lognormal: {median: 50s, p95: 100s}}, output: 3Mi, cpu: 100m}
  - {duration: 7s, output: 0, cpu: 100m}
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "slow.yaml").write_text(SLOW)
    options = ["--schedule", "burst", "--runs", "150", "--runs-dir", str(folder), "--run-name", "run", "--no-report"]
    assert main(["simulate", "run", "--profile", str(folder / "slow.yaml"), *options, "--quiet"]) == 0
    return folder / "run"


@pytest.fixture(scope="module")
def learned(recorded: Path) -> Profile:
    return calibrated(load_profile("aks-20-nodes"), timeline_of(recorded))[0]


def median_run_s(run: Path) -> float:
    spans = (span for span in RunFolder.open(run).records(Span) if span.phase == RUN)
    return median((span.ended_at - span.started_at) / 1e9 for span in spans if span.ended_at is not None)


def test_step_durations_are_those_of_the_recorded_run(learned: Profile) -> None:
    train = next(step for step in learned.steps if step.match == "train").duration.distribution
    assert isinstance(train, Lognormal)
    assert train.median == pytest.approx(50, rel=0.15)
    assert train.p95 == pytest.approx(100, rel=0.25)
    prepare = next(step for step in learned.steps if step.match == "prepare").duration.distribution
    assert prepare.mean == pytest.approx(7, abs=0.1)


def test_drivers_starts_pulls_the_api_and_new_nodes_are_those_of_the_recorded_run(learned: Profile) -> None:
    assert learned.controller.driver.distribution.mean == pytest.approx(2, rel=0.2)
    assert learned.kubelet.start.distribution.mean == pytest.approx(3.1, rel=0.15)
    assert learned.kubelet.pull_overhead_s < 0.01
    assert 0.1 <= learned.api.latency.distribution.mean <= 0.12
    assert learned.autoscaler is not None
    assert learned.autoscaler.provisioning.distribution.mean == pytest.approx(72, rel=0.15)


def test_everything_else_keeps_the_value_of_the_profile(learned: Profile) -> None:
    plain = load_profile("aks-20-nodes")
    assert (learned.pools, learned.store, learned.scheduler) == (plain.pools, plain.store, plain.scheduler)
    assert learned.steps[-1:] == plain.steps
    train = next(step for step in learned.steps if step.match == "train")
    assert replace(train, match="*", duration=plain.steps[0].duration) == plain.steps[0]


def test_a_calibrated_simulation_takes_as_long_as_the_recorded_run(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The same machines and limits, but nothing known of what takes how long.
    (tmp_path / "same.yaml").write_text(
        SLOW[: SLOW.index("steps:")].replace("median: 70s, p95: 90s", "median: 9s, p95: 9s")
    )
    options = ["--schedule", "burst", "--runs", "150", "--runs-dir", str(tmp_path), "--run-name", "again", "--quiet"]
    main([
        "simulate", "run", "--profile", str(tmp_path / "same.yaml"), "--calibrate-from", str(recorded), *options
    ])  # fmt: skip
    assert "step train: median" in capsys.readouterr().err
    assert median_run_s(tmp_path / "again") == pytest.approx(median_run_s(recorded), rel=0.15)


def test_a_steps_duration_does_not_include_the_upload_that_its_log_shows(tmp_path: Path) -> None:
    """The store's bandwidth is part of the profile: counted into the step as well, it would count twice."""
    storing = SLOW.replace("- {duration: 7s, output: 0, cpu: 100m}", "- {duration: 7s, output: 500Mi, cpu: 100m}")
    (tmp_path / "storing.yaml").write_text(storing.replace("store: {", "store: {capacity: 1Ti, bytes_per_s: 100Gi, "))
    options = [
        "--schedule",
        "spread",
        "--runs",
        "40",
        "--over",
        "30m",
        "--runs-dir",
        str(tmp_path),
        "--run-name",
        "run",
    ]
    assert (
        main(["simulate", "run", "--profile", str(tmp_path / "storing.yaml"), *options, "--no-report", "--quiet"]) == 0
    )
    known = calibrated(load_profile("aks-20-nodes"), timeline_of(tmp_path / "run"))[0]
    prepare = next(step for step in known.steps if step.match == "prepare").duration.distribution
    assert prepare.mean == pytest.approx(7, abs=0.1), "not 7 s and 5 s for 500 MiB at 100 MiB/s"


def test_with_too_few_observations_nothing_changes(tmp_path: Path) -> None:
    options = ["--schedule", "burst", "--runs", "2", "--runs-dir", str(tmp_path), "--run-name", "few", "--no-report"]
    main(["simulate", "run", *options, "--quiet"])
    plain = load_profile("aks-20-nodes")
    profile, learned = calibrated(plain, timeline_of(tmp_path / "few"))
    assert profile.api == plain.api
    assert {each.what for each in learned} <= {"driver", "pod start", "image pull"}


def test_a_missing_run_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "run", "--calibrate-from", str(tmp_path / "nothing"), "--runs-dir", str(tmp_path)]) == 2
    assert "no run folder" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@given(st.lists(st.floats(0, 1e6), min_size=5, max_size=50))
def test_any_observations_give_a_distribution(durations: list[float]) -> None:
    distribution = fitted(durations).distribution
    assert isinstance(distribution, Fixed | Lognormal)
    assert 0 <= distribution.mean < float("inf")


def test_a_served_platform_can_be_calibrated_too(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from harness.simulator import serve

    served: list[serve.ServeOptions] = []
    monkeypatch.setattr(serve, "serve", served.append)
    assert main(["simulate", "serve", "--profile", "aks-20-nodes", "--calibrate-from", str(recorded)]) == 0
    (options,) = served
    assert options.profile == calibrated(load_profile("aks-20-nodes"), timeline_of(recorded))[0]
    assert options.profile != load_profile("aks-20-nodes")
