"""What the text of an option means, and how it stands in argparse."""

import argparse

import pytest

from harness.model.errors import ConfigError
from harness.model.options import Option, parse_pair, with_defaults
from harness.model.units import parse_duration

NAME = Option("run-name", "", "a name")
RUNS = Option("runs", "60", "how many", int)
SHARE = Option("share", "", "a share", float)
TIME = Option("for", "1m", "how long", parse_duration)
KIND = Option("kind", "", "which", choices=("a", "b"))
TAGS = Option("tag", "", "any", repeatable=True)
PAIRS = Option("set", "", "any", parse_pair, repeatable=True)
QUIET = Option("quiet", False, "say nothing")


def test_it_is_called_alike_in_argparse_and_in_the_environment():
    assert (NAME.dest, NAME.variable) == ("run_name", "PIPESWARM_RUN_NAME")


@pytest.mark.parametrize(
    ("option", "given", "value"),
    [
        (NAME, " a ", "a"),
        (NAME, None, ""),
        (RUNS, "7", 7),
        (RUNS, 7, 7),
        (RUNS, " ", 60),
        (RUNS, str(10**18 - 1), 10**18 - 1),
        (RUNS, str(-(10**18)), -(10**18)),
        (SHARE, "", None),
        (SHARE, "1e30", 1e30),
        (TIME, "", 60.0),
        (KIND, "b", "b"),
        (TAGS, " a ;; b;", ("a", "b")),
        (TAGS, "", ()),
        (PAIRS, "a=1; b=x=y", (("a", "1"), ("b", "x=y"))),
        (QUIET, True, True),
        (QUIET, "", False),
        (QUIET, None, False),
    ],
)
def test_its_value_is_parsed_from_the_text_or_from_the_default(option, given, value):
    assert option.read(given) == value


@pytest.mark.parametrize(
    ("option", "text", "said"),
    [
        (RUNS, "many", "--runs: 'many' is not a whole number\n  → write it in digits"),
        (RUNS, "1.5", "--runs: '1.5' is not a whole number\n  → write it in digits"),
        (RUNS, "x" * 40, f"--runs: '{'x' * 40}' is not a whole number\n  → write it in digits"),
        (RUNS, "x" * 41, f"--runs: '{'x' * 40}…' is not a whole number\n  → write it in digits"),
        (RUNS, str(10**18), f"--runs: '{10**18}' is too large\n  → give a number of at most 18 digits"),
        (SHARE, "half", "--share: 'half' is not a number\n  → write it in digits"),
        (
            TIME,
            "long",
            "--for: 'long' is not a duration\n  → write it as 90s, 10m, 1h30m or a number of seconds",
        ),
        (KIND, "c", "--kind: 'c' is not a choice\n  → choose one of a, b"),
        (PAIRS, "a=1;b", "--set: 'b' is not a pair\n  → write it as NAME=VALUE"),
        (PAIRS, "=1", "--set: '=1' is not a pair\n  → write it as NAME=VALUE"),
        (PAIRS, "a=", "--set: 'a=' is not a pair\n  → write it as NAME=VALUE"),
    ],
)
def test_another_text_is_refused_by_the_options_name(option, text, said):
    with pytest.raises(ConfigError) as refused:
        option.read(text)
    assert str(refused.value) == said


def test_a_caller_may_name_the_place_instead():
    with pytest.raises(ConfigError, match=r"^stage 1, runs: 'many' is not"):
        RUNS.read("many", "stage 1, runs")


def parsed(option, *words, **more):
    parser = argparse.ArgumentParser()
    option.add_to(parser, **more)
    return vars(parser.parse_args(words))[option.dest]


def test_a_command_line_gives_the_text_that_is_read():
    assert parsed(RUNS) == "60"
    assert parsed(RUNS, "--runs", "7") == "7"
    assert parsed(RUNS, default="9") == "9"
    assert parsed(TAGS, "--tag", "a", "--tag", "b", "--tag", "c") == "a; b; c"
    assert parsed(QUIET) is False
    assert parsed(QUIET, "--quiet") is True
    assert parsed(KIND, "--kind", "a") == "a"
    with pytest.raises(SystemExit):
        parsed(KIND, "--kind", "c")


@pytest.mark.parametrize(
    ("option", "shown"),
    [
        (RUNS, "--runs RUNS"),
        (KIND, "--kind {a,b}"),
        (Option("kind", "", "which", choices=tuple("abcd")), "--kind {a,b,c,d}"),
        (Option("a-kind", "", "100 % sure", choices=tuple("abcde")), "--a-kind A_KIND"),
    ],
)
def test_its_help_fits_the_usage_line(option, shown):
    parser = argparse.ArgumentParser()
    option.add_to(parser)
    assert f"[{shown}]" in parser.format_usage()
    assert option.help in parser.format_help()


def test_some_options_have_other_defaults():
    assert [each.default for each in with_defaults((RUNS, TIME), {"runs": "5"})] == ["5", "1m"]
    assert with_defaults((RUNS, TIME), {"runs": "5"})[0].parse is int
