"""hetida designer: what a test of executions shows of its platform, and predictions against the changed platform."""

import json
from functools import cache

import pytest

from harness.cli import main
from harness.detectors import diagnose
from harness.model.errors import ConfigError
from harness.planning.identify import identify, measures_of, recorded_test
from harness.planning.sweeps import Workers
from harness.planning.timelines import timeline_of
from harness.planning.what_if import Scenario, expected_effects, fixes_of, parse_change, predict
from harness.store import RunFolder

PLATFORM = """
pools: [{{name: runtime, cpu: 8, memory: 16Gi, initial: {nodes}, min: {nodes}, max: {nodes}, price: 0.2}}]
hetida:
  runtime: {{nodes: {nodes}, cores: {cores}, replicas: {replicas}, workers: {workers}, balancing: {balancing}}}
  backend: {{workers: 4, prepare_s: 10ms}}
  adapters: [{{id: plants, error_rate: {errors}}}]
  executions:
    - load: {{lognormal: {{median: 120ms, p95: 300ms}}}}
      compute: {{lognormal: {{median: {compute}, p95: 1s}}}}
      send: {{lognormal: {{median: 60ms, p95: 150ms}}}}
"""
USUAL = {"nodes": 2, "cores": 8, "replicas": 2, "workers": 3, "balancing": "least-connections", "errors": 0,
         "compute": "350ms"}  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("executions")


@pytest.fixture(scope="module")
def run(place):
    """The folder of a simulated test; settings differ from `USUAL`."""

    def of(runs=600, over="80s", fault="", **settings):
        name = "-".join(filter(None, ("run", str(runs), over, fault, *(f"{k}{v}" for k, v in settings.items()))))
        profile = place / f"{name}.yaml"
        if profile.exists():
            return place / name
        profile.write_text(PLATFORM.format(**{**USUAL, **settings}))
        load = ("--schedule", "spread", "--runs", str(runs), "--over", over, "--runs-dir", str(place))
        faults = ("--fault", fault) if fault else ()
        options = ("--profile", str(profile), *load, *faults, "--run-name", name, "--no-report", "--quiet")
        assert main(["simulate", "run", *options]) == 0
        return place / name

    return of


@cache
def identified(path):
    timeline = timeline_of(path)
    test = recorded_test(RunFolder.open(path), timeline)
    return identify(timeline, test), test


def settings_of(path):
    return {each.name: str(each.value) for each in identified(path)[0].settings}


TRUTHS = {
    "replicas=4": {"replicas": 4},
    "workers=6": {"workers": 6},
    "replicas=3": {"replicas": 3},
    "balancing=random": {"balancing": "random"},
    "runs=300": {"runs": 300},
    "schedule=spread:100s": {"over": "100s"},
    "runtime.cores=2": {"cores": 2},
    "replicas=4,nodes=4": {"replicas": 4, "nodes": 4},
}
LIMITS = {"replicas=1": "runtime workers", "replicas=12": "the steps' own work"}


@pytest.fixture(scope="module")
def predictions(run):
    """By change; together, as they share the simulations of the platform as it is."""
    found, test = identified(run())
    changes = [parse_change(each, Scenario(found.profile, test), found.images) for each in (*TRUTHS, *LIMITS)]
    return dict(zip((*TRUTHS, *LIMITS), predict(found, test, changes, Workers(1)).predictions, strict=True))


def test_replicas_workers_nodes_and_balancing_are_read(run):
    shown = settings_of(run())
    assert shown["runtime.replicas"] == "2"
    assert shown["runtime.workers"] == "3"
    assert shown["runtime.nodes"] == "2"
    assert shown["runtime.cores"] == "8"
    assert shown["runtime.balancing"] == "least-connections"


@pytest.mark.parametrize("balancing", ["random", "round-robin", "least-connections"])
def test_how_the_balancer_chooses_shows_by_its_choices(run, balancing):
    assert settings_of(run(replicas=4, workers=1, balancing=balancing))["runtime.balancing"] == balancing


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({}, ""), ({"workers": 1, "replicas": 6}, ""), ({"cores": 2}, ""), ({}, "slow-worker"), ({}, "adapter-errors"),
        *(
            pytest.param(settings, fault, marks=pytest.mark.soak)
            for settings, fault in (
                ({"over": "400s"}, ""), ({"balancing": "random"}, ""), ({"errors": 0.2}, ""), ({}, "lb-imbalance"),
                ({}, "adapter-slow"),
            )
        ),
    ],
)  # fmt: skip
def test_a_test_of_executions_is_reproduced_within_10_percent(run, settings, fault):
    found, _ = identified(run(fault=fault, **settings))
    assert not found.reproduction.misfits, str(found.reproduction)
    for name in ("mean_s", "makespan_s"):
        assert getattr(found.simulated, name) == pytest.approx(getattr(found.recorded, name), rel=0.1), name


@pytest.mark.parametrize("change", TRUTHS)
def test_a_prediction_is_what_the_changed_platform_does(run, predictions, change):
    found = predictions[change]
    really = measures_of(timeline_of(run(**TRUTHS[change])))
    for name in ("mean_s", "makespan_s"):
        assert found.figures[name].value == pytest.approx(getattr(really, name), rel=0.15, abs=0.05), name


def test_more_nodes_cost_more(predictions):
    assert predictions["replicas=4,nodes=4"].figures["cost"].change[1] == pytest.approx(1.0, abs=0.05)
    assert predictions["replicas=4"].figures["cost"].change[1] == pytest.approx(0.0, abs=0.05)


@pytest.mark.parametrize("change", LIMITS)
def test_it_says_what_binds_then(predictions, change):
    assert predictions[change].binds == LIMITS[change]


@pytest.mark.parametrize(
    ("over", "fault", "finding"),
    [
        ("50s", "", "runtime-saturated"),
        ("200s", "slow-worker", "slow-worker"),
        pytest.param("80s", "adapter-errors", "adapter-errors", marks=pytest.mark.soak),
    ],
)
def test_the_report_expects_an_effect_of_the_fix(run, over, fault, finding):
    path = run(fault=fault, over=over)
    timeline = timeline_of(path)
    diagnosis = diagnose(timeline)
    assert finding in fixes_of(diagnosis.findings)
    effects = expected_effects(RunFolder.open(path), timeline, diagnosis, Workers(1))
    assert effects.model.startswith("the model reproduces the test within")
    effect = effects.fixes[finding]
    assert effect.saved > 0.05 or effect.failed.value < effect.failed.now / 2


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("replica=4", "no setting 'replica'", "did you mean 'replicas'"),
        ("replicas=0", "not 1 or more", ""),
        ("workers=many", "not a", ""),
        ("balancing=fair", "fair", "least-connections"),
        ("adapter.plant.capacity=3", "no setting 'adapter.plant.capacity'", "did you mean 'adapter.plants.capacity'"),
        ("controller.qps=4", "no setting 'controller.qps'", "replicas, workers"),
    ],
)
def test_an_impossible_change_says_what_to_write(run, text, message, hint):
    found, test = identified(run())
    with pytest.raises(ConfigError) as caught:
        parse_change(text, Scenario(found.profile, test), found.images)
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_the_command_takes_a_test_of_executions(run, capsys):
    path = run()
    assert main(["what-if", str(path), "--set", "replicas=4", "--set", "workers=6", "--rank", "mean", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    means = [each["figures"]["mean_s"]["value"] for each in document["predictions"]]
    assert means == sorted(means)
    assert {"replicas=4", "workers=6"} <= {each["name"] for each in document["predictions"]}
    assert main(["what-if", str(path), "--set", "replicas=4", "--settings"]) == 0
    assert "runtime.replicas: 2 (the runtime's pods)" in capsys.readouterr().out


def test_without_a_transformation_that_can_be_simulated_it_says_so(run, tmp_path, capsys):
    import shutil

    shutil.copytree(run(), tmp_path / "other")
    (tmp_path / "other" / "pipeline.yaml").write_text("{}")
    assert main(["what-if", str(tmp_path / "other"), "--set", "replicas=4"]) == 2
    assert "the recorded transformation can't be simulated" in capsys.readouterr().err
