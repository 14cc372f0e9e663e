"""Execution requests, checked as hetida designer checks them."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from harness.simulator.hetida.answers import NOT_JSON, invalid

DIRECT = "direct_provisioning"
_READ = {"INT": int, "FLOAT": float}
# The characters that version 0.9.8 takes in these texts: no colon, no apostrophe.
_TEXTS = {
    "name": r"^[\w ,\.\-\(\)\&\+=/]+$",
    "category": r"^[\w ,\.\-\(\)\&\+=/]+$",
    "description": r"^[\w ,\.\-\(\)\&\+=/]*$",
}


class RefusedError(Exception):
    """A request that is answered with `status` and `body` and not executed."""

    def __init__(self, status: int, body: Any) -> None:
        super().__init__(status)
        self.status, self.body = status, body


@dataclass(frozen=True, slots=True)
class Request:
    """An execution: of what, and how it is wired."""

    body: Mapping[str, Any]
    name: str
    inputs: Mapping[str, str]  # data types by name
    outputs: Mapping[str, str]
    wiring: Mapping[str, Any]

    def sources(self) -> list[str]:
        """The adapter of each input that has one."""
        return [str(w["adapter_id"]) for w in self.wiring.get("input_wirings", ()) if w.get("adapter_id") != DIRECT]

    def sinks(self) -> list[str]:
        """The adapter of each output that has one."""
        return [str(w["adapter_id"]) for w in self.wiring.get("output_wirings", ()) if w.get("adapter_id") != DIRECT]

    def direct_outputs(self) -> list[str]:
        """The outputs that come with the answer."""
        elsewhere = {
            str(w.get("workflow_output_name"))
            for w in self.wiring.get("output_wirings", ())
            if w.get("adapter_id") != DIRECT
        }
        return [name for name in self.outputs if name not in elsewhere]

    def values(self) -> Iterator[tuple[str, str]]:
        """(input, text) of what is provisioned directly."""
        for wiring in self.wiring.get("input_wirings", ()):
            if wiring.get("adapter_id") == DIRECT:
                yield str(wiring["workflow_input_name"]), str((wiring.get("filters") or {}).get("value", ""))

    def unreadable(self) -> tuple[str, str] | None:
        """The first (input, text) that can't be read as the input's type."""
        for name, text in self.values():
            try:
                read(self.inputs.get(name, "ANY"), text)
            except ValueError:
                return name, text
        return None

    def parameters(self) -> dict[str, object]:
        """The numbers that are provisioned directly: a profile's amounts may depend on them."""
        found: dict[str, object] = {}
        for name, text in self.values():
            if self.inputs.get(name) in _READ:
                found[name] = read(self.inputs[name], text)
        return found


def read(data_type: str, text: str) -> object:
    """What a text means as a type.

    Raises:
        ValueError: nothing.
    """
    if data_type in _READ:
        return _READ[data_type](text)
    if data_type in {"SERIES", "DATAFRAME", "MULTITSFRAME"}:
        parsed = orjson.loads(text)
        if not isinstance(parsed, dict | list):
            raise ValueError(text)
        return parsed
    return text


def parsed(raw: bytes) -> Mapping[str, Any]:
    """The body of a request.

    Raises:
        RefusedError: it is not JSON, or not an object.
    """
    try:
        body = orjson.loads(raw)
    except ValueError:
        raise RefusedError(422, NOT_JSON) from None
    if not isinstance(body, Mapping):
        raise RefusedError(422, invalid(["body"], "value is not a valid dict", "type_error.dict"))
    return body


def transformation(raw: bytes, name: str) -> Mapping[str, Any]:
    """A transformation that is to be stored as `name`.

    Raises:
        RefusedError: a field is missing or has a character that it may not have, or its id is another one.
    """
    body = parsed(raw)
    for field in ("id", "name", "io_interface"):
        if field not in body:
            raise RefusedError(422, invalid(["body", field], "field required", "value_error.missing"))
    if not _is_interface(body["io_interface"]):
        raise RefusedError(422, invalid(["body", "io_interface"], "value is not a valid dict", "type_error.dict"))
    for field, pattern in _TEXTS.items():
        if not re.match(pattern, str(body.get(field) or "-")):
            raise RefusedError(
                422, invalid(["body", field], f'string does not match regex "{pattern}"', "value_error.str.regex")
            )
    if body["id"] != name:
        raise RefusedError(400, {"detail": "The id of the path and that of the body differ."})
    return body


def _is_interface(value: object) -> bool:
    """Whether it names the data type of each input and output."""
    if not isinstance(value, Mapping):
        return False
    sides = [value.get("inputs", []), value.get("outputs", [])]
    if not all(isinstance(side, list) for side in sides):
        return False
    return all(isinstance(port, Mapping) and {"name", "data_type"} <= port.keys() for side in sides for port in side)


def runtime_request(raw: bytes) -> Request:
    """A whole execution input.

    Raises:
        RefusedError: a field is missing, or an input is not wired.
    """
    body = parsed(raw)
    for field in ("code_modules", "components", "workflow", "configuration", "workflow_wiring"):
        if field not in body:
            raise RefusedError(422, invalid(["body", field], "field required", "value_error.missing"))
    workflow = body["workflow"]
    inputs = {str(each["name"]): str(each["type"]) for each in workflow.get("inputs", ()) if each.get("name")}
    outputs = {str(each["name"]): str(each["type"]) for each in workflow.get("outputs", ()) if each.get("name")}
    name = str(workflow.get("tr_name") or workflow.get("name"))
    return _wired(Request(body, name, inputs, outputs, body["workflow_wiring"]), inputs)


def backend_request(body: Mapping[str, Any], stored: Mapping[str, Any]) -> Request:
    """The execution of a stored transformation, with its test wiring where the request has none.

    Raises:
        RefusedError: a required input is not wired.
    """
    interface = stored["io_interface"]
    inputs = {str(each["name"]): str(each["data_type"]) for each in interface.get("inputs", ())}
    outputs = {str(each["name"]): str(each["data_type"]) for each in interface.get("outputs", ())}
    needed = {str(each["name"]) for each in interface.get("inputs", ()) if each.get("type") != "OPTIONAL"}
    wiring = body.get("wiring") or stored.get("test_wiring") or {}
    return _wired(Request(body, str(stored["name"]), inputs, outputs, wiring), needed)


def _wired(request: Request, needed: Mapping[str, str] | set[str]) -> Request:
    wired = {str(each.get("workflow_input_name")) for each in request.wiring.get("input_wirings", ())}
    for name in request.inputs:
        if name in needed and name not in wired:
            message = f"Wiring Incomplete: Workflow Input '{name}' has no wiring!"
            raise RefusedError(422, invalid(["body", "__root__"], message))
    return request
