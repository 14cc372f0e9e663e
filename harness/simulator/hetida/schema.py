"""The shapes of request bodies, as far as they are read here, and the errors for bodies of another shape.

Locations and messages are those of FastAPI with pydantic 1, as in hetida designer 0.9.8. A shape is a type,
``[shape]`` for a list, ``{name: shape}`` for an object (one whose name ends in ``?`` may be missing or null), or
the texts that are allowed.
"""

from collections.abc import Iterator, Mapping
from typing import Any

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
