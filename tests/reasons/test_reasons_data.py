"""The catalogue of stated reasons: each row is whole, matches its examples first, and gives commands that only read."""

import re
from collections import Counter
from importlib.resources import files
from typing import Any

import pytest
import yaml

_ROWS: list[dict[str, Any]] = yaml.safe_load(files("harness.model").joinpath("reasons.yaml").read_text())["reasons"]
_KEYS = (
    "name", "source", "reason", "pattern", "general", "cause", "layer", "effect", "nodes_help", "needs", "fix", "show",
    "change", "link", "examples", "counter",
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
_NEEDS = {"pod-pending", "container-main", "container-sidecar", "http-5xx"}
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


def _texts(row: dict[str, Any], example: str, source: str) -> list[tuple[str, str]]:
    """The example as a component of that source states it: the reason, and the text in which patterns are searched."""
    reasons = _listed(row.get("reason")) if source in _WITH_REASON else []
    return [(reason, f"{reason}: {example}") for reason in reasons] or [("", example)]


def _first(source: str, reason: str, text: str, needs: list[str]) -> str:
    """The name of the first row of the source that matches; "" without one."""
    for row in _ROWS:
        reasons = _listed(row.get("reason")) if source in _WITH_REASON else []
        if (
            source in _listed(row["source"])
            and (not reasons or reason in reasons)
            and re.search(row.get("pattern", ""), text)
            and set(row.get("needs", ())) <= set(needs)
        ):
            return str(row["name"])
    return ""


def _groups(row: dict[str, Any]) -> set[str]:
    return set(re.compile(row.get("pattern", "")).groupindex)


def _fields(text: str) -> set[str]:
    """The placeholders in a title or a command."""
    return set(re.findall(r"\{([a-z_]+)\}", text))


_EACH = [pytest.param(row, id=row["name"]) for row in _ROWS]


def test_there_are_enough_rows_and_each_name_is_unique() -> None:
    assert len(_ROWS) >= 250
    assert [name for name, count in Counter(row["name"] for row in _ROWS).items() if count > 1] == []


def test_rows_that_say_only_that_something_failed_come_last() -> None:
    general = [row.get("general", False) for row in _ROWS]
    assert general == sorted(general)


@pytest.mark.parametrize("row", _EACH)
def test_a_row_has_the_agreed_keys_and_words(row: dict[str, Any]) -> None:
    assert list(row) == [key for key in _KEYS if key in row]
    assert set(row) >= _REQUIRED
    assert re.fullmatch(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*", row["name"])
    assert set(_listed(row["source"])) <= _SOURCES
    assert row["layer"] in _LAYERS
    assert row["effect"] in {"delays", "fails", "blocks"}
    assert set(row.get("needs", ())) <= _NEEDS
    assert row["link"].startswith("https://")
    assert not row["cause"].endswith(".")
    assert row["fix"].endswith(".")
    assert 1 <= len(row["examples"]) <= 3


@pytest.mark.parametrize("row", _EACH)
def test_a_row_is_decided_by_its_text_where_its_source_states_no_reason(row: dict[str, Any]) -> None:
    sources = set(_listed(row["source"]))
    assert "pattern" in row or ("reason" in row and sources <= _WITH_REASON)
    assert "nodes_help" not in row or (sources == {"scheduler"} and row["nodes_help"] is True)


@pytest.mark.parametrize("row", _EACH)
def test_every_example_matches_its_row_first_in_each_of_its_sources(row: dict[str, Any]) -> None:
    for source in _listed(row["source"]):
        for example in row["examples"]:
            for reason, text in _texts(row, example, source):
                assert _first(source, reason, text, row.get("needs", [])) == row["name"], (source, text)


@pytest.mark.parametrize("row", _EACH)
def test_no_counterexample_matches(row: dict[str, Any]) -> None:
    assert [text for text in row.get("counter", ()) if re.search(row["pattern"], text)] == []


@pytest.mark.parametrize("row", _EACH)
def test_patterns_keep_to_what_linear_time_engines_know(row: dict[str, Any]) -> None:
    assert _FORBIDDEN.search(_ESCAPED.sub("x", row.get("pattern", ""))) is None


@pytest.mark.parametrize("row", _EACH)
def test_titles_and_commands_use_what_the_pattern_captures(row: dict[str, Any]) -> None:
    titles = _fields(row["cause"])
    commands = {name for each in (*row["show"], *row.get("change", ())) for name in _fields(each)}
    assert titles <= _groups(row)
    assert commands <= _groups(row) | _OBSERVED
    for example in row["examples"]:
        found = re.search(row.get("pattern", ""), example)
        caught = {} if found is None else found.groupdict()
        assert all(caught[name] for name in titles | commands - _OBSERVED), example


@pytest.mark.parametrize("row", _EACH)
def test_commands_under_show_only_read(row: dict[str, Any]) -> None:
    assert [each for each in row["show"] if not _READS.fullmatch(each)] == []
