"""Execution requests, checked as hetida designer checks them."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

# --- the shapes of request bodies, as far as they are read here, and the errors for bodies of another shape ----------
# Locations and messages are those of FastAPI with pydantic 1, as in hetida designer 0.9.8. A shape is a type,
# ``[shape]`` for a list, ``{name: shape}`` for an object (one whose name ends in ``?`` may be missing or null), or
# the texts that are allowed.


_WRONG: Mapping[type, tuple[str, str]] = {
    str: ("str type expected", "type_error.str"),
    dict: ("value is not a valid dict", "type_error.dict"),
    list: ("value is not a valid list", "type_error.list"),
}
_READ_AS: Mapping[type, tuple[type, ...]] = {str: (str, int, float)}  # numbers are accepted as texts

_DATA_TYPE = frozenset(
    {"INT", "FLOAT", "STRING", "BOOLEAN", "SERIES", "MULTITSFRAME", "DATAFRAME", "ANY", "PLOTLYJSON"}
)
_WIRING = {
    "input_wirings?": [{"workflow_input_name": str, "adapter_id?": str, "filters?": dict}],
    "output_wirings?": [{"workflow_output_name": str, "adapter_id?": str}],
}
_PORTS = [{"name": str, "data_type": _DATA_TYPE}]
_ENDS = [{"name?": str, "type": _DATA_TYPE}]
TRANSFORMATION = {
    "id": str, "name": str, "category?": str, "description?": str, "revision_group_id?": str,
    "io_interface": {"inputs?": _PORTS, "outputs?": _PORTS}, "test_wiring?": _WIRING,
}  # fmt: skip
EXECUTION = {"id?": str, "revision_group_id?": str, "job_id?": str, "wiring?": _WIRING}
EXECUTION_INPUT = {
    "job_id?": str, "trafo_id?": str, "code_modules": list, "components": list,
    "workflow": {"name?": str, "tr_name?": str, "inputs": _ENDS, "outputs": _ENDS},
    "configuration": dict, "workflow_wiring": _WIRING,
}  # fmt: skip


def wrong(location: list[object], message: str, kind: str = "value_error") -> dict[str, Any]:
    """One entry of a 422's ``detail``."""
    return {"loc": location, "msg": message, "type": kind}


def misfits(value: object, shape: Any, at: list[object]) -> Iterator[dict[str, Any]]:
    """The errors of a value at the location `at`, for a 422's ``detail``."""
    kind = shape if isinstance(shape, type) else str if isinstance(shape, frozenset) else type(shape)
    if value is None:
        yield wrong(at, "none is not an allowed value", "type_error.none.not_allowed")
    elif not isinstance(value, _READ_AS.get(kind, kind)):
        yield wrong(at, *_WRONG[kind])
    elif isinstance(shape, frozenset) and value not in shape:
        permitted = ", ".join(f"'{each}'" for each in sorted(shape))
        yield wrong(at, f"value is not a valid enumeration member; permitted: {permitted}", "type_error.enum")
    elif isinstance(value, list) and isinstance(shape, list):
        for index, each in enumerate(value):
            yield from misfits(each, shape[0], [*at, index])
    elif isinstance(value, dict) and isinstance(shape, dict):
        for field, its_shape in shape.items():
            name = field.removesuffix("?")
            if value.get(name) is not None or (name in value and name == field):
                yield from misfits(value[name], its_shape, [*at, name])
            elif name == field:
                yield wrong([*at, name], "field required", "value_error.missing")


DIRECT = "direct_provisioning"
_READ = {"INT": int, "FLOAT": float}
# The characters that version 0.9.8 takes in these texts: no colon, no apostrophe.
_TEXTS = {
    "name": r"^[\w ,\.\-\(\)\&\+=/]+$",
    "category": r"^[\w ,\.\-\(\)\&\+=/]+$",
    "description": r"^[\w ,\.\-\(\)\&\+=/]*$",
}


_NOT_JSON = wrong(["body", 0], "JSON decode error", "json_invalid") | {"input": {}, "ctx": {"error": "Expecting value"}}


class RefusedError(Exception):
    """The request is refused with `status` and `detail`."""

    def __init__(self, status: int, detail: object) -> None:
        super().__init__(status)
        self.status, self.body = status, {"detail": detail}


@dataclass(frozen=True, slots=True)
class Request:
    """A request to execute a transformation with a wiring."""

    body: Mapping[str, Any]
    name: str
    inputs: Mapping[str, str]  # data types by name
    outputs: Mapping[str, str]
    wiring: Mapping[str, Any]

    def sources(self) -> list[str]:
        """The adapters of the inputs that have one."""
        return [str(w["adapter_id"]) for w in _wirings(self.wiring, "input") if not _is_direct(w)]

    def sinks(self) -> list[str]:
        """The adapters of the outputs that have one."""
        return [str(w["adapter_id"]) for w in _wirings(self.wiring, "output") if not _is_direct(w)]

    def direct_outputs(self) -> list[str]:
        """The outputs that are returned in the response."""
        elsewhere = {str(w["workflow_output_name"]) for w in _wirings(self.wiring, "output") if not _is_direct(w)}
        return [name for name in self.outputs if name not in elsewhere]

    def values(self) -> Iterator[tuple[str, str]]:
        """(input, text) of all directly provisioned inputs."""
        for wiring in _wirings(self.wiring, "input"):
            if _is_direct(wiring):
                yield str(wiring["workflow_input_name"]), str((wiring.get("filters") or {}).get("value") or "")

    def unreadable(self) -> tuple[str, str] | None:
        """The first (input, text) that cannot be parsed as the input's type; none if all can."""
        for name, text in self.values():
            try:
                read(self.inputs.get(name, "ANY"), text)
            except ValueError:
                return name, text
        return None

    def parameters(self) -> dict[str, object]:
        """The directly provisioned numbers, on which a profile's amounts may depend."""
        found: dict[str, object] = {}
        for name, text in self.values():
            if self.inputs.get(name) in _READ:
                found[name] = read(self.inputs[name], text)
        return found


def _wirings(wiring: Mapping[str, Any], side: str) -> list[Mapping[str, Any]]:
    return wiring.get(f"{side}_wirings") or []


def _is_direct(wiring: Mapping[str, Any]) -> bool:
    """Whether the value is part of the request or response; the default without an adapter."""
    return (wiring.get("adapter_id") or DIRECT) == DIRECT


def read(data_type: str, text: str) -> object:
    """Parse a text as a data type.

    Raises:
        ValueError: the text is not of that type.
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
    """The parsed body of a request.

    Raises:
        RefusedError: not JSON, or not of that shape.
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
    """The body of a request to execute a stored transformation.

    Raises:
        RefusedError: see `parsed`.
    """
    return parsed(raw, EXECUTION)


def transformation(raw: bytes, name: str) -> Mapping[str, Any]:
    """The body of a request to store a transformation as `name`.

    Raises:
        RefusedError: see `parsed`; or an invalid character, or a different id.
    """
    body = parsed(raw, TRANSFORMATION)
    for field, pattern in _TEXTS.items():
        if not re.match(pattern, str(body.get(field) or "-")):
            message = f'string does not match regex "{pattern}"'
            raise RefusedError(422, [wrong(["body", field], message, "value_error.str.regex")])
    if body["id"] != name:
        raise RefusedError(400, "The id of the path and that of the body differ.")
    return body


def runtime_request(raw: bytes) -> Request:
    """The request in a complete execution input, as sent to the runtime.

    Raises:
        RefusedError: see `parsed`; an input is not wired.
    """
    body = parsed(raw, EXECUTION_INPUT)
    workflow = body["workflow"]
    inputs = {str(each["name"]): each["type"] for each in workflow["inputs"] if each.get("name")}
    outputs = {str(output["name"]): output["type"] for output in workflow["outputs"] if output.get("name")}
    name = str(workflow.get("tr_name") or workflow.get("name"))
    return _wired(Request(body, name, inputs, outputs, body["workflow_wiring"]), inputs)


def backend_request(body: Mapping[str, Any], stored: Mapping[str, Any]) -> Request:
    """The request to execute a stored transformation; its test wiring is the default.

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
    wired = {str(wiring["workflow_input_name"]) for wiring in _wirings(request.wiring, "input")}
    for name in request.inputs:
        if name in needed and name not in wired:
            message = f"Wiring Incomplete: Workflow Input '{name}' has no wiring!"
            raise RefusedError(422, [wrong(["body", "__root__"], message)])
    return request
