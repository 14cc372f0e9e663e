"""Transformations of hetida designer: inputs, wiring, and how a scenario changes the wiring.

Two documents are supported: an exported transformation (``GET /api/transformations/<id>``, component or workflow), and
a complete execution input as the backend sends it to a runtime. A scenario's column ``<input>`` is the value of a
directly provisioned input; ``<input>.ref_id``, ``<input>.timestampFrom`` and so on replace a part of the wiring of an
input or output that an adapter provides. `generate-scenarios --from-workflow` creates columns by the same rule.
"""

import copy
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson

from harness import reading
from harness.model.errors import ConfigError
from harness.model.text.redaction import HIDDEN, Redaction
from harness.targets.scenarios import Input, InputType, as_cell, typed

DIRECT = "direct_provisioning"
# The type of a scenario's cell, by hetida designer's name for the type of an input.
SCALARS = {
    "INT": InputType.INTEGER,
    "INTEGER": InputType.INTEGER,
    "FLOAT": InputType.DOUBLE,
    "STRING": InputType.STRING,
    "BOOLEAN": InputType.BOOLEAN,
}
_TABLES = frozenset({"DATAFRAME", "MULTITSFRAME"})
_RANGE = ("timestampFrom", "timestampTo")
HINT = "export it from hetida designer: GET /api/transformations/<id>"

Wiring = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Port:
    """An input of a transformation; `data_type` is hetida designer's name for its type (INT, SERIES, …)."""

    name: str
    data_type: str
    required: bool
    default: object = None


@dataclass(frozen=True, slots=True)
class Transformation:
    """A component or workflow that can be executed.

    `wiring` covers every input and output. `exported` is the exported document, for a backend that lacks it;
    `execution` is the complete input of a runtime, where that is known.
    """

    id: str
    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[str, ...]
    wiring: Wiring
    exported: Mapping[str, Any] = field(default_factory=dict)
    execution: Mapping[str, Any] = field(default_factory=dict)

    @property
    def adapters(self) -> set[str]:
        """The ids of the adapters that the wiring needs."""
        wired = (*self.wiring["input_wirings"], *self.wiring["output_wirings"])
        return {str(each["adapter_id"]) for each in wired} - {DIRECT}

    def parameters(self) -> tuple[Input, ...]:
        """The values that scenarios may, or must, provide."""
        return tuple(self._parameters())

    def _parameters(self) -> Iterator[Input]:
        by_name = {wired["workflow_input_name"]: wired for wired in self.wiring["input_wirings"]}
        for port in self.inputs:
            wiring = by_name[port.name]
            if wiring["adapter_id"] == DIRECT:
                filters = wiring["filters"]
                required = port.required and "value" not in filters
                yield Input(port.name, _type_of(port, wiring), required, filters.get("value", port.default))
            else:
                yield from _variable(port.name, wiring)
        for wiring in self.wiring["output_wirings"]:
            if wiring["adapter_id"] != DIRECT:
                yield from _variable(wiring["workflow_output_name"], wiring)


def read_json(path: Path, what: str, hint: str = HINT) -> Any:
    """The parsed JSON of a file; `what` names the file's role in errors.

    Raises:
        ConfigError: the file does not exist, or is not JSON; names the line.
    """
    with reading.readable(f"the {what} {path}", hint):
        return reading.parse_json(reading.read_bytes(path), path, hint)


def parse_transformation(raw: Any, where: str, wiring: Wiring | None = None) -> Transformation:
    """The transformation in a JSON document; `wiring` replaces its test wiring.

    Raises:
        ConfigError: it is neither an exported transformation nor an execution input, or its wiring does not match.
    """
    if isinstance(raw, list) and len(raw) == 1:
        raw = raw[0]  # an export of several transformations is a list
    if not isinstance(raw, Mapping):
        raise ConfigError(f"{where} is not a transformation", HINT)
    with reading.structured(where, HINT):
        return _parsed(raw, where, wiring)


def _parsed(raw: Mapping[str, Any], where: str, wiring: Wiring | None) -> Transformation:
    if isinstance(raw.get("workflow"), Mapping):
        workflow = raw["workflow"]
        transformation = Transformation(
            id=str(raw.get("trafo_id") or workflow.get("tr_id") or workflow.get("id") or ""),
            name=str(workflow.get("tr_name") or workflow.get("name") or "workflow"),
            inputs=tuple(_ports(workflow.get("inputs"), "type")),
            outputs=tuple(str(output["name"]) for output in workflow.get("outputs") or ()),
            wiring=wiring or dict(raw.get("workflow_wiring") or {}),
            execution=raw,
        )
    elif isinstance(raw.get("io_interface"), Mapping) and raw.get("id"):
        transformation = Transformation(
            id=str(raw["id"]),
            name=str(raw.get("name") or raw["id"]),
            inputs=tuple(_ports(raw["io_interface"].get("inputs"), "data_type")),
            outputs=tuple(
                str(output["name"]) for output in raw["io_interface"].get("outputs") or () if output.get("name")
            ),
            wiring=wiring or dict(raw.get("test_wiring") or {}),
            exported=raw,
        )
    else:
        raise ConfigError(f"{where} is not an exported transformation: it has no id or no io_interface", HINT)
    return replace(transformation, wiring=_completed(transformation, where))


def _ports(given: Any, type_key: str) -> Iterator[Port]:
    for each in given or ():
        if each.get("name"):
            optional = type_key == "data_type" and each.get("type") == "OPTIONAL"
            yield Port(str(each["name"]), str(each.get(type_key) or "ANY").upper(), not optional, each.get("value"))


def _completed(found: Transformation, where: str) -> Wiring:
    """The wiring with every input and output: those that are not wired are provisioned directly.

    Raises:
        ConfigError: it wires an unknown input or output, or provisions a value of the wrong type.
    """
    given_in = {str(w.get("workflow_input_name")): dict(w) for w in found.wiring.get("input_wirings") or ()}
    given_out = {str(w.get("workflow_output_name")): dict(w) for w in found.wiring.get("output_wirings") or ()}
    names = [port.name for port in found.inputs]
    for kind, given, known in (("input", given_in, names), ("output", given_out, list(found.outputs))):
        for name in sorted(set(given) - set(known)):
            raise ConfigError(
                f"{where}: the wiring names the {kind} '{name}', which {found.name} does not have",
                f"its {kind}s are: {', '.join(known) or 'none'}",
            )
    for port in found.inputs:
        _check_value(port, given_in.get(port.name, {}), where)
    return {
        "input_wirings": [{**_wired(given_in.get(name, {})), "workflow_input_name": name} for name in names],
        "output_wirings": [{**_wired(given_out.get(name, {})), "workflow_output_name": name} for name in found.outputs],
    }


def _wired(given: Wiring) -> Wiring:
    return {"adapter_id": DIRECT, **given, "filters": dict(given.get("filters") or {})}


def _check_value(port: Port, wiring: Mapping[str, Any], where: str) -> None:
    value = (wiring.get("filters") or {}).get("value")
    if value is None or port.data_type not in SCALARS or wiring.get("adapter_id", DIRECT) != DIRECT:
        return
    try:
        typed(str(value), SCALARS[port.data_type])
    except ValueError:
        raise ConfigError(
            f"{where}: the wiring gives the input '{port.name}' the value '{value}', which is not {port.data_type}",
            "fix the wiring, or give the input a column in the scenarios",
        ) from None


def _type_of(port: Port, wiring: Mapping[str, Any]) -> InputType:
    if port.data_type in SCALARS:
        return SCALARS[port.data_type]
    text = (wiring.get("filters") or {}).get("value")
    if text is None:
        return InputType.LIST if port.data_type in _TABLES else InputType.STRUCT
    return InputType.LIST if str(text).lstrip().startswith("[") else InputType.STRUCT


def _variable(name: str, wiring: Mapping[str, Any]) -> Iterator[Input]:
    for part in dict.fromkeys(("ref_id", *(("ref_key",) if "ref_key" in wiring else ()), *_filters(wiring))):
        yield Input(f"{name}.{part}", InputType.STRING, required=False)


def _filters(wiring: Mapping[str, Any]) -> Sequence[str]:
    ranged = str(wiring.get("type", "")).startswith(("timeseries", "multitsframe"))
    return (*(wiring.get("filters") or {}), *(_RANGE if ranged and "workflow_input_name" in wiring else ()))


def filled(wiring: Mapping[str, Any], values: Mapping[str, object]) -> Wiring:
    """The wiring of one execution; `values` are keyed as in `Transformation.parameters`."""
    made: Wiring = copy.deepcopy(dict(wiring))
    for key, wired in (
        ("workflow_input_name", made["input_wirings"]),
        ("workflow_output_name", made["output_wirings"]),
    ):
        for each in wired:
            name = each[key]
            if name in values and each["adapter_id"] == DIRECT:
                each["filters"]["value"] = as_cell(values[name])
            prefix = f"{name}."
            for column, value in values.items():
                if column.startswith(prefix):
                    part = column.removeprefix(prefix)
                    (each if part in {"ref_id", "ref_key"} else each["filters"])[part] = value
    return made


def without_values(document: bytes, redaction: Redaction) -> bytes:
    """A transformation, wiring or execution input without the values of hidden inputs and of their wiring."""
    tree = redaction.clean_tree(orjson.loads(document))
    _hide_inputs(tree, redaction.names)
    return orjson.dumps(tree, option=orjson.OPT_INDENT_2)


def _hide_inputs(node: Any, names: Collection[str]) -> None:
    if isinstance(node, list):
        for each in node:
            _hide_inputs(each, names)
    if not isinstance(node, dict):
        return
    wired = node.get("workflow_input_name") or node.get("workflow_output_name")
    for place in (node.get("filters") or {}, node) if wired else ():
        for part in place:
            if f"{wired}.{part}" in names or (wired in names and part == "value"):
                place[part] = HIDDEN
    if node.get("name") in names and "value" in node:
        node["value"] = HIDDEN  # the default of an optional input
    for below in node.values():
        _hide_inputs(below, names)


def execution_of(found: Transformation, where: str) -> Mapping[str, Any]:
    """The input of a runtime: the recorded one, or a component wrapped in a workflow of its own.

    Raises:
        ConfigError: it is a workflow without its components, which only the backend knows.
    """
    if found.execution:
        return found.execution
    exported = found.exported
    if exported.get("type") != "COMPONENT" or not isinstance(exported.get("content"), str):
        raise ConfigError(
            f"{where} is a workflow without the code of its components, which a runtime can't execute",
            "run it with --mode backend, or give a component or a recorded execution input",
        )
    return _wrapped(found, exported)


def _wrapped(found: Transformation, exported: Mapping[str, Any]) -> Mapping[str, Any]:
    def made(name: str) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{found.id}/{name}"))

    code, node, interface = made("code"), made("node"), exported["io_interface"]
    inputs = [{"id": p["id"], "name": p["name"], "type": p["data_type"]} for p in interface.get("inputs") or ()]
    outputs = [{"id": p["id"], "name": p["name"], "type": p["data_type"]} for p in interface.get("outputs") or ()]

    def outer(ports: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [
            {**port, "id": made(port["id"]), "id_of_sub_node": node, "name_in_subnode": port["name"]} for port in ports
        ]

    component = {"uuid": found.id, "name": found.name, "tag": str(exported.get("version_tag") or "1.0.0")}
    more = {"code_module_uuid": code, "function_name": "main"}
    sub_node = {"id": node, "name": found.name, "component_uuid": found.id, "has_only_plot_outputs": False}
    return {
        "trafo_id": found.id,
        "code_modules": [{"uuid": code, "code": exported["content"]}],
        "components": [{**component, "inputs": inputs, "outputs": outputs, **more}],
        "workflow": {
            "id": made("workflow"), "tr_id": found.id, "tr_name": found.name, "tr_tag": component["tag"],
            "name": found.name, "connections": [], "inputs": outer(inputs), "outputs": outer(outputs),
            "sub_nodes": [sub_node],
        },
        "configuration": {
            "engine": "plain", "name": "pipeswarm", "run_pure_plot_operators": False,
            "return_individual_node_results": False,
        },
    }  # fmt: skip
