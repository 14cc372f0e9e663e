import argparse

import pytest

from harness.model import Burst, Concurrency, ConfigError, Constant, Level, Poisson, Ramp, Spread
from harness.plan.options import register, settings
from harness.targets.kfp import OPTIONS


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
    register(parser, OPTIONS, {})
    return settings(parser.parse_args(arguments), host, OPTIONS)


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


def test_what_a_schedule_does_not_heed_is_told():
    given = parse("--schedule", "constant", "--rate", "1/s", "--runs", "500", "--over", "1h", "--jitter", "0")
    assert given.ignored_options() == "note: the schedule 'constant' does not heed --runs, --over\n"
    assert parse("--schedule", "burst", "--runs", "5").ignored_options() == ""
    assert (
        "-u 9 does not set the rate of runs, the schedule 'burst' does"
        in parse("--schedule", "burst", "--runs", "5", "-u", "9").ignored_options()
    )
    assert parse("--schedule", "concurrency", "-u", "9", "--runs", "20").ignored_options() == ""


def test_objectives_may_be_given_several_times():
    assert parse("--slo", "a < 1", "--slo", "b < 2").slos == ("a < 1", "b < 2")
    assert parse("--slo", "a < 1; b < 2").slos == ("a < 1", "b < 2")


def test_limits_and_texts():
    found = parse(
        "--drain", "2m", "--max-in-flight", "1_000", "--experiment", " nightly ", host="https://kfp.example/pipeline/"
    )
    assert (found.limits.drain_s, found.limits.max_in_flight) == (120.0, 1000)
    assert (found.text("experiment"), found.host) == ("nightly", "https://kfp.example/pipeline")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--runs", "many"], "--runs: 'many' is not a number"),
        (["--over", "soon"], "--over: 'soon' is not a duration"),
        (["--schedule", "constant", "--rate", "fast"], "--schedule constant: 'fast' is not a rate"),
        (["--runs", "0"], "'runs' is 0"),
        (["--jitter", "2"], "jitter is 2"),
        (["--drain", "-5"], "--drain: '-5' is not a duration"),
        (["--schedule", "poisson", "--for", "inf"], "--for: 'inf' is not a duration"),
        (["--answer-timeout", "0"], "--answer-timeout: it is 0"),
        (["--max-in-flight", "-1"], "--max-in-flight: it is -1"),
        (["--cleanup-rate", "0/s"], "--cleanup-rate: it is 0/s"),
        (["--schedule", "stages"], "--schedule-file"),
        (["--schedule", "replay", "--schedule-file", "none.csv"], "none.csv does not exist"),
    ],
)
def test_what_cannot_be_understood_names_the_option(arguments, said):
    with pytest.raises(ConfigError) as raised:
        parse(
            *(f"{option}={value}" for option, value in zip(arguments[::2], arguments[1::2], strict=True))
        ).schedule_for(1)
    assert said in str(raised.value)
