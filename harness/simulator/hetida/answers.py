"""Response bodies in the words of hetida designer (recorded from 0.9.8)."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from harness.simulator.hetida.execution import (
    CALLING,
    COMPUTING,
    FULL,
    HANDLING,
    LOADING,
    PREPARING,
    SENDING,
    STEPS,
    Ending,
    Job,
)  # fmt: skip

_NAMES = {
    FULL: FULL, PREPARING: PREPARING, CALLING: CALLING,
    HANDLING: "RUNTIME_SERVICE", LOADING: "LOADING_DATA_FROM_ADAPTERS", COMPUTING: "EXECUTING_COMPONENT_CODE",
    SENDING: "SENDING_DATA_TO_ADAPTERS",
}  # fmt: skip
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def succeeded(job: Job, request: "Mapping[str, Any]", origin_at: int, outputs: Mapping[str, Any]) -> dict[str, Any]:
    """The result of a successful execution."""
    steps = {name: _step(job, name, origin_at) for name in STEPS}
    return _result(request, steps) | {"result": "ok", "output_results_by_output_name": dict(outputs)}


def failed(job: Job, request: Mapping[str, Any], name: str, origin_at: int) -> dict[str, Any]:
    """The result of a failed execution: the runtime's steps are null, the backend's are not."""
    steps = {step: _step(job, step, origin_at) if step in (FULL, PREPARING, CALLING) else None for step in STEPS}
    if job.ending is Ending.SEND_FAILED:
        error = _error("AdapterHandlingException", "sending data to the adapter failed: 503", _NAMES[SENDING])
    else:
        error = _error("ValueError", "simulated failure of an operator", _NAMES[COMPUTING])
        error["operator_info"] = _operator(request, name)
        error["location"] = {"file": "COMPONENT CODE", "function_name": "main", "line_number": 1}
    return _result(request, steps) | failure(error)


def unreadable(request: Mapping[str, Any], name: str, port: str, text: str) -> dict[str, Any]:
    """The result if a directly provisioned value cannot be parsed as its input's type."""
    message = f"The input mapping with workflow input '{port}' does not match the inputs of the workflow: {text[:60]!r}"
    error = _error("MissingInputSource", message, _NAMES[COMPUTING])
    return _result(request, dict.fromkeys(STEPS)) | failure(error | {"operator_info": _operator(request, name)})


def unknown_adapter(request: Mapping[str, Any], adapter: str) -> dict[str, Any]:
    """The result if the wiring names an unknown adapter."""
    error = _error("AdapterConnectionError", f"No adapter with the key {adapter} is registered", _NAMES[LOADING])
    return _result(request, dict.fromkeys(STEPS)) | failure(error)


def failure(error: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a result that report a failure."""
    text = f"Traceback (most recent call last):\n  (simulated)\n{error['type']}: {error['message']}\n"
    return {"result": "failure", "error": dict(error), "traceback": text}


def value(data_type: str, random: Random) -> Any:
    """A random output value of a data type."""
    match data_type:
        case "FLOAT":
            return round(random.gauss(1.0, 0.5), 6)
        case "INT":
            return random.randrange(100)
        case "BOOLEAN":
            return random.random() < 0.5
        case "STRING":
            return "simulated"
        case "SERIES" | "DATAFRAME" | "MULTITSFRAME":
            return {
                "__hd_wrapped_data_object__": data_type,
                "__metadata__": {},
                "__data__": {"name": None, "index": ["2026-01-01T00:00:00.000Z"], "data": [round(random.random(), 6)]},
                "__data_parsing_options__": {"orient": "split"},
            }
        case _:
            return {}


def _result(request: Mapping[str, Any], steps: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "error": None,
        "output_results_by_output_name": {},
        "traceback": None,
        "job_id": request.get("job_id"),
        "measured_steps": dict(steps),
        "node_results": None,
    }


def _step(job: Job, name: str, origin_at: int) -> dict[str, Any] | None:
    seconds = job.duration(name)
    if seconds is None:
        return None
    return {
        "name": _NAMES[name],
        "start": _stamp(origin_at, job.began[name]),
        "end": _stamp(origin_at, job.ended[name]),
        "duration": round(seconds, 6),
    }


def _stamp(origin_at: int, at: float) -> str:
    return (_EPOCH + timedelta(microseconds=origin_at // 1000 + round(at * 1e6))).isoformat(timespec="microseconds")


def _error(kind: str, message: str, stage: str) -> dict[str, Any]:
    return {
        "type": kind,
        "error_code": None,
        "message": message,
        "extra_information": None,
        "process_stage": stage,
        "operator_info": None,
        "location": None,
    }


def _operator(request: Mapping[str, Any], name: str) -> dict[str, Any]:
    identity = str(request.get("trafo_id") or request.get("id") or "")
    return {
        "transformation_info": {"id": identity, "name": name, "tag": "1.0.0", "type": "WORKFLOW"},
        "hierarchy_in_workflow": {"by_name": [name], "by_id": [identity]},
    }
