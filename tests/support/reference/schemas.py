"""JSON Schemas as tables of keys."""

from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.reference.markdown import code, table
from tests.support.reference.markdown import page as whole

_COLUMNS = ("key", "value", "meaning")
_DEFAULT_TYPES = {"object": "mapping", "array": "list"}
_NAMED = {None: "null", "": '""'}
Node = Mapping[str, Any]


def report(schema: Node) -> str:
    """The page of report.json."""
    introduction = (
        f"{schema['description']} The schema for programs is `reports/report.schema.json`. `[]` stands for each item "
        "of a list, `{}` for each value of a mapping; *optional* keys may be missing."
    )
    return whole("report.json", introduction, _table(schema, schema))


def spec(schema: Node) -> str:
    """The page of scenario specs."""
    definitions = schema["$defs"]
    introduction = (
        "A YAML file for `generate-scenarios --spec`; [Scenarios](../scenarios.md#kinds) has an example of each kind. "
        "The schema for editors is `generators/scenario-spec.schema.json`."
    )
    lines = ["## The file", "", *_table(schema, schema), "## Keys of every definition", ""]
    lines += _table(definitions["options"], schema)
    lines += ["## Definitions that depend on another field", "", *_table(definitions["by"], schema)]
    for name, kind in definitions["kinds"].items():
        lines += [f"## {name}", "", *_table(kind, schema)]
    return whole("Scenario spec", introduction, lines)


def workload(schema: Node) -> str:
    """The page of workloads."""
    introduction = (
        "A YAML file for `generate-scenarios workload --spec`. The schema for editors is "
        "`generators/workload.schema.json`."
    )
    return whole("Workload", introduction, _table(schema["$defs"]["outer"], schema))


def _table(node: Node, schema: Node) -> list[str]:
    return table(_COLUMNS, _rows(node, schema))


def _rows(node: Node, schema: Node, prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """The rows of a mapping's keys, and of what is in them."""
    required = set(node.get("required", ()))
    for key, written in node.get("properties", {}).items():
        value = _resolved(written, schema)
        kind, meaning = _kind(value, schema), value.get("description", "")
        optional = required and key not in required and "anyOf" not in node
        yield code(f"{prefix}{key}"), f"{kind}, *optional*" if optional else kind, meaning
        yield from _inside(value, schema, f"{prefix}{key}")


def _inside(value: Node, schema: Node, path: str) -> Iterator[tuple[str, str, str]]:
    yield from _rows(value, schema, f"{path}.") if "properties" in value else ()
    for word, suffix in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(value.get(word), Mapping):
            within = _resolved(value[word], schema)
            yield from _rows(within, schema, f"{path}{suffix}.")


def _resolved(node: Node, schema: Node) -> Node:
    """The node, with what it refers to; a definition of a field is described by its kind."""
    reference = node.get("$ref", "")
    if not reference or reference == "#/$defs/definition":
        return node
    found: Any = schema
    for step in reference.removeprefix("#/").split("/"):
        found = found[step]
    return {**found, **{key: value for key, value in node.items() if key != "$ref"}}


def _kind(node: Node, schema: Node) -> str:
    """The values allowed, in words."""
    if node.get("$ref"):
        return "definition"
    if "const" in node:
        return code(node["const"])
    if "enum" in node:
        return " or ".join(code(_NAMED.get(each, each)) for each in node["enum"])
    if either := node.get("anyOf"):
        return " or ".join(dict.fromkeys(_kind(_resolved(each, schema), schema) for each in either))
    types = node.get("type", "any")
    named = [_DEFAULT_TYPES.get(each, each) for each in ([types] if isinstance(types, str) else types)]
    return " or ".join(named) + _items(node, schema) + _limits(node)


def _items(node: Node, schema: Node) -> str:
    items = _resolved(node.get("items", {}), schema)
    return f" of {_kind(items, schema)}" if items and "properties" not in items else ""


def _limits(node: Node) -> str:
    words = {
        "minimum": "at least", "exclusiveMinimum": "more than", "maximum": "at most", "exclusiveMaximum": "less than",
    }  # fmt: skip
    said = [f"{text} {node[word]}" for word, text in words.items() if word in node]
    return f" ({', '.join(said)})" if said else ""
