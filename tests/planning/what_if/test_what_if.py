"""Predictions from a recorded test, compared with what the changed platform does; and how changes are written."""

import json
import re
from dataclasses import replace

import pytest

from harness.cli import main
from harness.detectors import diagnose
from harness.model.effects import Figure
from harness.model.errors import ConfigError
from harness.model.findings import Finding
from harness.planning.identify import identify, measures_of, recorded_test, replay
from harness.planning.identify.reproduction import compare
from harness.planning.removals import REMOVALS
from harness.planning.sweeps import Workers
from harness.planning.timelines import timeline_of
from harness.planning.what_if import Scenario, fixes_of, parse_change, parse_sweep, predict
from harness.simulator.profile import Step
from harness.simulator.profile.file import load_profile
from harness.store import RunFolder

PLATFORM = """
pools: [{name: steps, cpu: 4, memory: 16Gi, initial: NODES, min: NODES, max: NODES, price: 0.2}]
controller: {qps: 50, burst: 100, requeue_s: 2s, parallelism: PARALLELISM}
api: {qps: 50, burst: 100}
"""
OF_HETIDA = {"adapter-slow", "adapter-errors", "lb-imbalance", "runtime-saturated", "slow-worker"}
QUIET = ("--no-report", "--quiet")


def run(place, name, nodes, parallelism=0, runs=40):
    (place / f"{name}.yaml").write_text(PLATFORM.replace("NODES", str(nodes)).replace("PARALLELISM", str(parallelism)))
    load = ("--schedule", "burst", "--runs", str(runs), "--runs-dir", str(place), "--run-name", name)
    assert main(["simulate", "run", "--profile", str(place / f"{name}.yaml"), *load, *QUIET]) == 0
    return place / name


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def recorded(place):
    """A burst of 40 on three nodes, ten at a time."""
    path = run(place, "recorded", 3, 10)
    timeline = timeline_of(path)
    test = recorded_test(RunFolder.open(path), timeline)
    return identify(timeline, test), test, diagnose(timeline)


TRUTHS = {
    "parallelism=0": {"nodes": 3},
    "parallelism=0,nodes=9": {"nodes": 9},
    "nodes=9": {"nodes": 9, "parallelism": 10},
    "runs=20": {"nodes": 3, "parallelism": 10, "runs": 20},
}
SAME = "nodes=3"


@pytest.fixture(scope="module")
def predictions(recorded):
    """By change; together, as they share the simulations of the platform as it is."""
    found, test, diagnosis = recorded
    changes = [parse_change(each, Scenario(found.profile, test), found.images) for each in (*TRUTHS, SAME)]
    name, fix = fixes_of(diagnosis.findings)["parallelism-cap"]
    predicted = predict(found, test, [*changes, fix], Workers(1)).predictions
    return dict(zip((*TRUTHS, SAME, name), predicted, strict=True))


@pytest.fixture
def today(recorded):
    return Scenario(recorded[0].profile, recorded[1])


@pytest.mark.parametrize("change", TRUTHS)
def test_a_prediction_is_what_the_changed_platform_does(predictions, place, change):
    found = predictions[change]
    really = measures_of(timeline_of(run(place, change.replace(",", "-").replace("=", "-"), **TRUTHS[change])))
    for name in ("mean_s", "makespan_s"):
        figure = found.figures[name]
        assert figure.value == pytest.approx(getattr(really, name), rel=0.15), name
        assert figure.low <= figure.value <= figure.high


def test_what_is_predicted_for_no_change_is_no_change(predictions):
    found = predictions[SAME]
    for figure in found.figures.values():
        assert figure.value == pytest.approx(figure.now)
        assert figure.low <= figure.now <= figure.high
    assert found.failed == Figure(0.0, 0.0, 0.0, 0.0)


def test_the_share_of_lost_runs_has_an_interval_that_holds_another_test(tmp_path, capsys):
    (tmp_path / "flaky.yaml").write_text("api: {error_rate: 0}\nsteps: [{match: '*', failing: 0.1}]")
    load = ("--schedule", "burst", "--runs", "60", "--runs-dir", str(tmp_path), *QUIET)
    lost = {}
    for seed in ("1", "2"):
        where = ("--profile", str(tmp_path / "flaky.yaml"), "--seed", seed, "--run-name", seed)
        assert main(["simulate", "run", *where, *load]) == 0
        lost[seed] = measures_of(timeline_of(tmp_path / seed)).lost
    assert main(["what-if", str(tmp_path / "1"), "--set", "controller.workers=31", "--json"]) == 0
    (found,) = [each for each in json.loads(capsys.readouterr().out)["predictions"] if "workers" in each["name"]]
    low, high = found["failed_interval"]
    assert low < found["failed"] < high
    assert low <= lost["2"] <= high
    assert main(["what-if", str(tmp_path / "1"), "--set", "controller.workers=31"]) == 0
    assert f"({low:.1%} to {high:.1%})" in " ".join(capsys.readouterr().out.split())


def test_each_finding_with_a_removal_is_a_change(predictions):
    found = predictions["no limit on running workflows"]
    assert found.figures["mean_s"].change[1] < -0.1


def test_a_model_that_does_not_reproduce_the_test_predicts_nothing(recorded, today):
    identified, test, _ = recorded
    phases = tuple(replace(each, off=True) for each in identified.reproduction.phases[:1])
    wrong = replace(identified, reproduction=replace(identified.reproduction, phases=phases))
    found = predict(wrong, test, [parse_change("nodes=9", today, identified.images)], Workers(1))
    assert not found.reproduced
    assert not found.predictions


def test_without_the_recorded_nodes_over_time_only_runs_are_predicted(recorded, today):
    identified, test, _ = recorded
    assert identified.reproduction.nodes.recorded == pytest.approx(3.0)
    assert not identified.reproduction.nodes.off
    with_more = replace(identified.recorded, node_hours=1.2 * identified.recorded.node_hours)
    other = replace(identified, recorded=with_more, reproduction=compare(with_more, identified.simulated))
    assert str(other.reproduction).endswith("; nodes over time -17%: their hours and cost are not predicted")
    (found,) = predict(other, test, [parse_change(SAME, today, identified.images)], Workers(1)).predictions
    assert "makespan_s" in found.figures
    assert not {"node_hours", "cost"} & found.figures.keys()


@pytest.mark.parametrize("name", [*REMOVALS])
def test_every_described_removal_changes_a_platform(today, name):
    ((_, change),) = fixes_of([Finding(name, "", 0.9, (), "")]).values()
    if name in OF_HETIDA:
        today = replace(today, profile=load_profile("hetida-pattern-1"))
    assert change.apply(today).test is today.test


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("nodse=4", "no setting 'nodse'", "did you mean 'nodes'"),
        ("controller.qsp=4", "no setting 'controller.qsp'", "did you mean 'controller.qps'"),
        ("image.trian=2Gi", "no setting 'image.trian'", "did you mean 'image.train'"),
        ("pool.stpes.max=4", "no setting 'pool.stpes.max'", "did you mean 'pool.steps.max'"),
        ("nodes", "has no value", "nodes=40"),
        ("nodes=-1", "no number of nodes", "give 1"),
        ("nodes=1.5", "no number of nodes", "give 1"),
        ("controller.qps=-3", "below 0", "0 or more"),
        ("controller.qps=fast", "not a number", ""),
        ("controller.requeue_s=5parsecs", "", ""),
        ("quota.cpu=-1", "below 0", ""),
        ("image.train=0", "not above 0", ""),
        ("image.train=2Gx", "", ""),
        ("step.train.cpu=-2", "not above 0", ""),
        ("spot=maybe", "not a number", "on or off"),
        ("price=0", "not above 0", ""),
        ("runs×0", "can't be simulated", "give 1"),
        ("runs×1000000", "can't be simulated", "give 1"),
        ("schedule=tomorrow", "no schedule", "spread:1h"),
        ("nodes=²", "no number of nodes", "give 1"),
        ("nodes=" + "9" * 5000, "no number of nodes", "give 1"),
        ("runs=" + "9" * 5000, "no setting 'runs'", ""),
        ("controller.qps=" + "[" * 9000, "more than 100 levels", ""),
        ("schedule=constant:0/s", "no schedule", "spread:1h"),
        ("", "empty", "nodes=40"),
    ],
)
def test_an_impossible_change_says_what_to_write(recorded, today, text, message, hint):
    with pytest.raises(ConfigError) as caught:
        parse_change(text, today, recorded[0].images)
    assert message in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("text", "shows"),
    [
        ("nodes=7", lambda s: [(p.initial, p.max) for p in s.profile.pools] == [(7, 7)]),
        ("pool.steps.max=7", lambda s: s.profile.pools[0].max == 7 and s.profile.autoscaler is not None),
        ("parallelism=0", lambda s: s.profile.controller.parallelism == 0),
        ("controller.workers=64", lambda s: s.profile.controller.workers == 64),
        ("store.bytes_per_s=1Gi", lambda s: s.profile.store.bytes_per_s == 2**30),
        ("quota.cpu=200", lambda s: s.profile.quota.cpu == 200),
        ("scheduler.packing=true", lambda s: s.profile.scheduler.packing),
        ("spot=on", lambda s: s.profile.pools[0].evictions_per_hour > 0 and s.profile.pools[0].price is None),
        ("spot=on,price=0.1", lambda s: s.profile.pools[0].spot and s.profile.pools[0].price == 0.1),
        ("pool.steps.price=0.2", lambda s: s.profile.pools[0].price == 0.2),
        ("image.train=2Gi", lambda s: 2**31 in s.profile.kubelet.images.values()),
        ("step.train.cpu=2", lambda s: b"resourceCpuRequest: '2'" in s.test.package),
        ("runs×2", lambda s: len(s.test.arrivals) == 80),
        ("runs=500", lambda s: len(s.test.arrivals) == 500),
        ("schedule=spread:1h", lambda s: 3000 < s.test.arrivals[-1].due_s <= 3600),
        ("schedule=constant:60/m", lambda s: s.test.arrivals[-1].due_s == pytest.approx(39.0)),
        ("nodes=7, runs×2", lambda s: s.profile.pools[0].max == 7 and len(s.test.arrivals) == 80),
    ],
)
def test_a_change_changes_what_it_names(recorded, today, text, shows):
    assert shows(parse_change(text, today, recorded[0].images).apply(today))


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("nodes=10..30:10", ["nodes=10", "nodes=20", "nodes=30"]),
        ("image.train=1..2:0.5", ["image.train=1", "image.train=1.5", "image.train=2"]),
    ],
)
def test_a_sweep_is_one_change_for_each_value(text, changes):
    assert parse_sweep(text) == changes


@pytest.mark.parametrize(
    "text",
    ["nodes", "nodes=1..2", "nodes=3..1:1", "nodes=1..2:0", "nodes=1..1000:1", "nodes=a..b:c", "nodes=0..1e308:1e-300"],
)
def test_a_sweep_without_a_range_is_an_error(text):
    with pytest.raises(ConfigError, match="--sweep"):
        parse_sweep(text)


def test_the_command_prints_a_table_and_one_object(recorded, place, capsys):
    assert main(["what-if", str(place / "recorded"), "--set", "nodes=9", "--settings", "--jobs", "1"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("The model reproduces the test within ")
    assert "nodes=9" in out
    assert "parallelism: 10 (runs that were active at once while others waited)" in out
    assert re.search(r"^makespan +\d.* +\d.*$\n(.+\n)+nodes +\d[\d.]+ +\d[\d.]+$", out, re.MULTILINE)
    assert main(["what-if", str(place / "recorded"), "--set", "nodes=9", "--json", "--jobs", "1"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["reproduction"]["reproduced"]
    figure = document["predictions"][-1]["figures"]["p95_s"]
    assert figure["interval"][0] <= figure["value"] <= figure["interval"][1]


@pytest.mark.parametrize(
    ("options", "says"), [(("--set", "nodse=4"), "did you mean 'nodes'"), (("--sweep", "x"), "range")]
)
def test_bad_options_of_the_command_end_with_2(recorded, place, capsys, options, says):
    before = sorted(place.rglob("*"))
    assert main(["what-if", str(place / "recorded"), *options]) == 2
    assert says in capsys.readouterr().err
    assert sorted(place.rglob("*")) == before


def test_a_step_with_fewer_cores_does_not_keep_the_recorded_request(recorded, today):
    profile = replace(today.profile, steps=(Step("train", requests_cpu=4.0), *today.profile.steps))
    busy = replace(today, profile=profile)
    changed = parse_change("step.train.cpu=2", busy, recorded[0].images).apply(busy)
    assert changed.profile.steps[0].requests_cpu == 0.0


def test_intervals_are_those_of_another_test(place):
    """Steps that take a few seconds or half a minute: which run has the long ones is chance, today as in the next test."""
    path = place / "varying.yaml"
    steps = "steps: [{duration: {lognormal: {median: 10s, p95: 30s}}}]\n"
    path.write_text(PLATFORM.replace("NODES", "9").replace("PARALLELISM", "0") + steps)
    inside = []
    for seed in map(str, range(6)):
        load = ("--schedule", "burst", "--runs", "12", "--runs-dir", str(place), "--run-name", f"varying-{seed}")
        assert main(["simulate", "run", "--profile", str(path), "--seed", seed, *load, *QUIET]) == 0
        timeline = timeline_of(place / f"varying-{seed}")
        test = recorded_test(RunFolder.open(place / f"varying-{seed}"), timeline)
        found = identify(timeline, test)
        same = parse_change("nodes=9", Scenario(found.profile, test), found.images)
        (predicted,) = predict(found, test, [same], Workers(1)).predictions
        others = [replay(load_profile(str(path)), test, 100 + k) for k in range(10)]
        for name in ("p95_s", "makespan_s"):
            figure = predicted.figures[name]
            inside += [figure.low <= getattr(each, name) <= figure.high for each in others]
    assert sum(inside) >= 0.8 * len(inside)
