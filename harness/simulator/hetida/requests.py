"""Execution requests, checked as hetida designer checks them."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from harness.simulator.hetida.schema import EXECUTION, EXECUTION_INPUT, TRANSFORMATION, misfits, wrong

DIRECT = "direct_provisioning"
_READ = {"INT": int, "FLOAT": float}
# The characters that version 0.9.8 takes in these texts: no colon, no apostrophe.
_TEXTS = {
    "name": r"^[\w ,\.\-\(\)\&\+=/]+$",
    "category": r"^[\w ,\.\-\(\)\&\+=/]+$",
    "description": r"^[\w ,\.\-\(\)\&\+=/]*$",
}


_NOT_JSON = wrong(["body", 0], "JSON decode error", "json_invalid") | {
    "input": {},
    "ctx": {"error": "Expecting value"},
}


class RefusedError(Exception):
    """A request that is answered with `status` and `detail` and not executed."""

    def __init__(self, status: int, detail: object) -> None:
        super().__init__(status)
        self.status, self.body = status, {"detail": detail}


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
        return [str(w["adapter_id"]) for w in _wirings(self.wiring, "input") if not _is_direct(w)]

    def sinks(self) -> list[str]:
        """The adapter of each output that has one."""
        return [str(w["adapter_id"]) for w in _wirings(self.wiring, "output") if not _is_direct(w)]

    def direct_outputs(self) -> list[str]:
        """The outputs that come with the answer."""
        elsewhere = {str(w["workflow_output_name"]) for w in _wirings(self.wiring, "output") if not _is_direct(w)}
        return [name for name in self.outputs if name not in elsewhere]

    def values(self) -> Iterator[tuple[str, str]]:
        """(input, text) of what is provisioned directly."""
        for wiring in _wirings(self.wiring, "input"):
            if _is_direct(wiring):
                yield str(wiring["workflow_input_name"]), str((wiring.get("filters") or {}).get("value") or "")

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


def _wirings(wiring: Mapping[str, Any], side: str) -> list[Mapping[str, Any]]:
    return wiring.get(f"{side}_wirings") or []


def _is_direct(wiring: Mapping[str, Any]) -> bool:
    """Whether the value itself is given, or comes with the answer; so it is where no adapter is named."""
    return (wiring.get("adapter_id") or DIRECT) == DIRECT


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


def parsed(raw: bytes, shape: Mapping[str, Any]) -> Mapping[str, Any]:
    """The body of a request.

    Raises:
        RefusedError: it is not JSON, or has another shape.
    """
    try:
        body = orjson.loads(raw)
    except ValueError:
        raise RefusedError(422, [_NOT_JSON]) from None
    found = list(misfits(body, shape, ["body"]))
    if found:
        raise RefusedError(422, found)
    checked: Mapping[str, Any] = body
    return checked


def execution(raw: bytes) -> Mapping[str, Any]:
    """A request to execute what is stored.

    Raises:
        RefusedError: see `parsed`.
    """
    return parsed(raw, EXECUTION)


def transformation(raw: bytes, name: str) -> Mapping[str, Any]:
    """A transformation that is to be stored as `name`.

    Raises:
        RefusedError: see `parsed`; a field has a character that it may not have, or its id is another one.
    """
    body = parsed(raw, TRANSFORMATION)
    for field, pattern in _TEXTS.items():
        if not re.match(pattern, str(body.get(field) or "-")):
            told = f'string does not match regex "{pattern}"'
            raise RefusedError(422, [wrong(["body", field], told, "value_error.str.regex")])
    if body["id"] != name:
        raise RefusedError(400, "The id of the path and that of the body differ.")
    return body


def runtime_request(raw: bytes) -> Request:
    """A whole execution input.

    Raises:
        RefusedError: see `parsed`; an input is not wired.
    """
    body = parsed(raw, EXECUTION_INPUT)
    workflow = body["workflow"]
    inputs = {str(each["name"]): each["type"] for each in workflow["inputs"] if each.get("name")}
    outputs = {str(each["name"]): each["type"] for each in workflow["outputs"] if each.get("name")}
    name = str(workflow.get("tr_name") or workflow.get("name"))
    return _wired(Request(body, name, inputs, outputs, body["workflow_wiring"]), inputs)


def backend_request(body: Mapping[str, Any], stored: Mapping[str, Any]) -> Request:
    """The execution of a stored transformation, with its test wiring where the request has none.

    Raises:
        RefusedError: a required input is not wired.
    """
    taken, given = (stored["io_interface"].get(side) or [] for side in ("inputs", "outputs"))
    inputs = {str(each["name"]): str(each["data_type"]) for each in taken}
    outputs = {str(each["name"]): str(each["data_type"]) for each in given}
    needed = {str(each["name"]) for each in taken if each.get("type") != "OPTIONAL"}
    wiring = body.get("wiring") or stored.get("test_wiring") or {}
    return _wired(Request(body, str(stored["name"]), inputs, outputs, wiring), needed)


def _wired(request: Request, needed: Mapping[str, str] | set[str]) -> Request:
    wired = {str(each["workflow_input_name"]) for each in _wirings(request.wiring, "input")}
    for name in request.inputs:
        if name in needed and name not in wired:
            message = f"Wiring Incomplete: Workflow Input '{name}' has no wiring!"
            raise RefusedError(422, [wrong(["body", "__root__"], message)])
    return request
