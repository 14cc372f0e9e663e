"""The catalogue of stated reasons: each row is whole, matches its examples first, and gives commands that only read."""

import re
from collections import Counter
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import pytest
import yaml

_TEXT = files("harness.reasons").joinpath("reasons.yaml").read_text()
_ROWS: list[dict[str, Any]] = yaml.load(_TEXT, yaml.CSafeLoader)["reasons"]  # in C: each process of the tests reads it
_KEYS = (
    "name", "source", "about", "reason", "pattern", "general", "cause", "layer", "effect", "exit_code", "yields_to", "nodes_help",
    "beside", "fix", "show", "change", "link", "seen", "examples", "counter",
)  # fmt: skip
_REQUIRED = {"name", "source", "cause", "layer", "effect", "fix", "show", "link", "examples"}
_WITH_REASON = {
    "kubelet-event", "waiting", "terminated", "pod-condition", "pod-status", "node-condition", "event", "autoscaler",
}  # fmt: skip
_SOURCES = _WITH_REASON | {"scheduler", "admission", "workflow", "log", "platform"}
_LAYERS = {
    "pipeline", "registry", "scheduler", "network", "volumes", "admission", "quota", "autoscaler", "store", "database",
    "node", "platform",
}  # fmt: skip
_OBSERVED = {"namespace", "pod", "node"}
# Lookaround, backreferences, atomic groups, conditionals and inline flags; possessive quantifiers; a quantified group that
# ends in a quantifier; more than 1,000 repetitions.
_FORBIDDEN = re.compile(r"\(\?(?!:|P<)|\\[1-9Z]|[*+?}]\+|[*+}]\)[*+{]|\{(?:\d*,)?\d{4,}\}")
_ESCAPED = re.compile(r"\\[^1-9Z]")
_READS = re.compile(
    r"kubectl (?:-n \S+ )?(?:get|describe|logs|top|explain|events|version|api-resources|cluster-info|auth can-i)\b[^|;&<>$`]*"
)


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def stated(source: str, text: str, reason: str = "") -> str:
    """The name of the first row of the source that matches; "" without one."""
    for row in _ROWS:
        reasons = _listed(row.get("reason")) if source in _WITH_REASON else []
        if (
            source in _listed(row["source"])
            and (not reasons or reason in reasons)
            and re.search(row.get("pattern", ""), f"{reason}: {text}" if reason else text)
        ):
            return str(row["name"])
    return ""


def _fields(text: str) -> set[str]:
    """The placeholders in a title or a command."""
    return set(re.findall(r"\{([a-z_]+)\}", text))


def test_there_are_enough_rows_and_each_name_is_unique() -> None:
    assert len(_ROWS) >= 250
    assert [name for name, count in Counter(row["name"] for row in _ROWS).items() if count > 1] == []


def test_rows_that_say_only_that_something_failed_come_last() -> None:
    general = [row.get("general", False) for row in _ROWS]
    assert general == sorted(general)


@pytest.mark.parametrize(
    "holds",
    [
        pytest.param(lambda row: list(row) == [key for key in _KEYS if key in row], id="known keys in their order"),
        pytest.param(lambda row: set(row) >= _REQUIRED, id="all required keys"),
        pytest.param(lambda row: re.fullmatch(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*", row["name"]), id="a name for commands"),
        pytest.param(lambda row: set(_listed(row["source"])) <= _SOURCES, id="a known source"),
        pytest.param(lambda row: row["layer"] in _LAYERS, id="a known layer"),
        pytest.param(lambda row: row["effect"] in {"delays", "fails", "blocks"}, id="a known effect"),
        pytest.param(lambda row: row["link"].startswith("https://"), id="a link"),
        pytest.param(lambda row: not row["cause"].endswith("."), id="a cause that is a title"),
        pytest.param(lambda row: row["fix"].endswith("."), id="a fix that is a sentence"),
        pytest.param(lambda row: 1 <= len(row["examples"]) <= 3, id="one to three examples"),
        pytest.param(lambda row: all(map(_READS.fullmatch, row["show"])), id="commands that only read"),
        pytest.param(lambda row: not _FORBIDDEN.search(_ESCAPED.sub("x", row.get("pattern", ""))), id="linear time"),
        pytest.param(lambda row: not any(re.search(row["pattern"], each) for each in row.get("counter", ())),
                     id="no match of a counterexample"),
        pytest.param(lambda row: "pattern" in row or ("reason" in row and set(_listed(row["source"])) <= _WITH_REASON),
                     id="a pattern where its source states no reason"),
        pytest.param(lambda row: "nodes_help" not in row or {"scheduler", "autoscaler"} & {*_listed(row["source"])}, id="nodes that help in a row of the scheduler or an autoscaler"),
    ],
)  # fmt: skip
def test_each_row_has(holds: Callable[[dict[str, Any]], object]) -> None:
    assert [row["name"] for row in _ROWS if not holds(row)] == []


def test_every_example_matches_its_row_first_in_each_of_its_sources() -> None:
    others = [
        (row["name"], source, example, found)
        for row in _ROWS
        for source in _listed(row["source"])
        for example in row["examples"]
        for reason in (source in _WITH_REASON and _listed(row.get("reason"))) or [""]
        if (found := stated(source, example, reason)) != row["name"]
    ]
    assert others == []


def test_titles_and_commands_use_only_what_the_pattern_captures_in_every_example() -> None:
    unknown = []
    for row in _ROWS:
        commands = {name for each in (*row["show"], *row.get("change", ())) for name in _fields(each)} - _OBSERVED
        for example in row["examples"]:
            found = re.search(row.get("pattern", ""), example)
            caught = {name for name, value in found.groupdict().items() if value} if found else set()
            unknown += [(row["name"], name) for name in (_fields(row["cause"]) | commands) - caught]
    assert unknown == []
