import argparse

import pytest

from harness.model import Burst, Concurrency, ConfigError, Constant, Level, Poisson, Ramp, Spread
from harness.model.plan import ObserverPlan
from harness.plan.options import declared, groups, register, settings
from harness.targets import hetida, kfp


class Parser(argparse.ArgumentParser):
    """Takes what Locust's parser takes."""

    def add_argument_group(self, *args, **more):
        group = super().add_argument_group(*args, **more)
        add = group.add_argument

        def add_argument(*names, env_var, **given):
            assert env_var.startswith("PIPESWARM_")
            return add(*names, **given)

        group.add_argument = add_argument
        return group


def parse(*arguments, host=""):
    parser = Parser()
    parser.add_argument("-u", dest="num_users", type=int)
    parser.add_argument("-r", dest="spawn_rate", type=float)
    register(parser, kfp)
    return settings(parser.parse_args(arguments), host, kfp)


@pytest.mark.parametrize(
    ("arguments", "schedule"),
    [
        ([], Spread(60, 60.0)),
        (["--schedule", "spread", "--runs", "3000", "--over", "1h", "--jitter", "0.2"], Spread(3000, 3600.0, 0.2)),
        (["--schedule", "constant", "--rate", "120/m", "--for", "90s"], Constant(2.0, 90.0)),
        (["--schedule", "burst", "--runs", "500"], Burst(500)),
        (["--schedule", "concurrency", "--for", "10m"], Concurrency((Level(1, 600.0),), 1.0)),
        (
            ["--schedule", "concurrency", "-u", "20", "-r", "4", "--runs", "100"],
            Concurrency((Level(20),), 4.0, 100),
        ),
        (["--schedule", "burst", "--runs", "5", "--every", "10m", "--times", "3"], Burst(5, 600.0, 3)),
        (["--schedule", "burst", "--scenarios", "x.csv"], Burst(42)),
        (["--schedule", "poisson", "--rate", "500/h", "--for", "1h"], Poisson(500 / 3600, 3600.0)),
        (["--schedule", "ramp", "--rate", "1/s..5/s", "--for", "1m"], Ramp(1.0, 5.0, 60.0)),
    ],
)
def test_schedules_as_options(arguments, schedule):
    assert parse(*arguments).schedule_for(42) == schedule


def test_options_that_the_schedule_ignores_are_named():
    given = parse("--schedule", "constant", "--rate", "1/s", "--runs", "500", "--over", "1h", "--jitter", "0")
    assert given.notes() == "note: --runs, --over are ignored by --schedule constant\n"
    assert parse("--schedule", "burst", "--runs", "5").notes() == ""
    assert "-u 9 is ignored by --schedule burst" in parse("--schedule", "burst", "--runs", "5", "-u", "9").notes()
    assert parse("--schedule", "concurrency", "-u", "9", "--runs", "20").notes() == ""


def test_objectives_are_repeatable():
    both = ("failed_ratio < 1%", "throughput > 2/h")
    assert parse("--slo", both[0], "--slo", both[1]).slos == both
    assert parse("--slo", "; ".join(both)).slos == both


def test_observer_options_are_parsed_with_the_load():
    found = parse(
        "--prometheus", "http://me:secret@p.example:9090", "--kube-requests", "60/m", "--metrics", "argo=http://a/metrics",
        "--platform-namespace", "a", "--platform-namespace", "b", "--insecure", "--redact", "password",
    )  # fmt: skip
    assert found.observer == ObserverPlan(
        ("a", "b"),
        kube_requests_per_s=1.0,
        prometheus="http://***@p.example:9090",
        metrics=(("argo", "http://a/metrics"),),
        verify_tls=False,
    )
    assert (found.verify_tls, found.redact) == (False, ("password",))
    assert parse().observer == ObserverPlan()


def test_a_missing_or_blank_option_has_the_default_of_its_platform():
    blank = argparse.Namespace(drain=" ", experiment="")
    found = settings(blank, "", hetida)
    assert (found.limits.drain_s, found.limits.answer_timeout_s, found.simulate) == (600.0, 900.0, "hetida-pattern-1")
    assert settings(blank, "", kfp).target["experiment"] == "pipeswarm"


def test_every_option_is_declared_once():
    for platform in (kfp, hetida):
        names = [option.name for option in declared(platform)]
        assert len(names) == len(set(names))


def test_limits_and_texts():
    found = parse(
        "--drain", "2m", "--max-in-flight", "1_000", "--experiment", " nightly ", host="https://kfp.example/pipeline/"
    )
    assert (found.limits.drain_s, found.limits.max_in_flight) == (120.0, 1000)
    assert (found.target["experiment"], found.host) == ("nightly", "https://kfp.example/pipeline")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--runs", "many"], "--runs: 'many' is not a whole number"),
        (["--over", "soon"], "--over: 'soon' is not a duration"),
        (["--schedule", "constant", "--rate", "fast"], "--rate: 'fast' is not a rate"),
        (["--runs", "0"], "'runs' is 0"),
        (["--jitter", "2"], "jitter is 2"),
        (["--drain", "-5"], "--drain: '-5' is not a duration"),
        (["--schedule", "poisson", "--for", "inf"], "--for: 'inf' is not a duration"),
        (["--answer-timeout", "0"], "--answer-timeout: 0 is not above 0"),
        (["--max-in-flight", "-1"], "--max-in-flight: -1 is not above 0"),
        (["--cleanup-rate", "0/s"], "--cleanup-rate: 0/s is not above 0"),
        (["--kube-requests", "0"], "--kube-requests: 0 is not above 0"),
        (["--metrics", "argo"], "--metrics: 'argo' is not a pair"),
        (["--slo", "fast"], "--slo: "),
        (["--abort-on", "often"], "--abort-on: "),
        (["--param-mode", "rows"], "--param-mode: 'rows' is not a parameter mode"),
        (["--schedule", "stages"], "--schedule-file"),
        (["--schedule", "replay", "--schedule-file", "none.csv"], "none.csv does not exist"),
    ],
)
def test_an_error_names_the_option(arguments, message):
    with pytest.raises(ConfigError) as raised:
        parse(
            *(f"{option}={value}" for option, value in zip(arguments[::2], arguments[1::2], strict=True))
        ).schedule_for(1)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("arguments", "note"),
    [
        (["--schedule", "poisson", "--rate", "5"], "--rate is read as 5/s"),
        (["--over", "90"], "--over is read as 90s"),
        (["--slo", "p95(run.duration) < 20"], "'p95(run.duration) < 20' is read as 20s"),
        (["--slo", "throughput >= 2"], "'throughput >= 2' is read as 2/s"),
        (["--rate", "5"], ""),  # that schedule has no rate
        (["--schedule", "poisson", "--rate", "5/s"], ""),
        (["--slo", "failed_ratio < 0.1"], ""),  # a share
        (["--drain", "0"], ""),
    ],
)
def test_an_assumed_unit_is_named(arguments, note):
    lines = parse(*arguments).notes().splitlines()
    assert [each for each in lines if "unit" in each] == ([f"note: without a unit, {note}"] if note else [])


def test_every_option_has_one_group_and_the_form_begins_with_the_load():
    found = groups(kfp)
    names = [each.name for options in found.values() for each in options]
    assert sorted(names) == sorted({each.name for each in declared(kfp)}), "each once"
    assert next(iter(found)) == "Load"
    assert {"scenarios", "slo", "pipeline"} <= {each.name for each in found["Load"]}
    assert {"drain", "seed", "abort-on"} <= {each.name for each in found["Records and limits"]}
    assert {"prepare", "caching"} <= {each.name for each in found["Pipeline"]}
