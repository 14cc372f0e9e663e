"""What clusters, stores, databases and platforms say, what it means, and what to do: the catalogue of stated reasons."""

from importlib.resources import files
from itertools import groupby
from typing import Any

import yaml

from tests.support.reference.markdown import code, table, text
from tests.support.reference.markdown import page as whole

_INTRODUCTION = (
    "Events, states, conditions, refusals, messages and log lines that name a cause, by the layer where it happens. "
    "Runs that such a text *delays* go on by themselves, those that it *blocks* wait until a person acts, and those "
    "that it *fails* have failed. Patterns and commands are in `harness/reasons/reasons.yaml`."
)
_COLUMNS = ("name", "effect", "what is said, for example", "fix", "source")
_LAYERS = (
    "pipeline", "registry", "scheduler", "autoscaler", "quota", "admission", "node", "network", "volumes", "store",
    "database", "platform",
)  # fmt: skip


def page() -> str:
    """The page of stated reasons."""
    rows = yaml.safe_load(files("harness.reasons").joinpath("reasons.yaml").read_text(encoding="utf-8"))["reasons"]
    ordered = sorted(rows, key=lambda row: (_LAYERS.index(row["layer"]), row["name"]))
    lines = []
    for layer, those in groupby(ordered, key=lambda row: row["layer"]):
        lines += [f"## {layer}", "", *table(_COLUMNS, map(_cells, those))]
    return whole("Stated reasons", _INTRODUCTION, lines)


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    shortest = min(row["examples"], key=len)
    return code(row["name"]), row["effect"], text(shortest), text(row["fix"]), f"[source]({row['link']})"
