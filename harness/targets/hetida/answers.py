"""hetida designer's answers to executions, and the conditions that a test sets on their outputs."""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from harness.model.errors import ConfigError
from harness.model.http import HttpAnswer
from harness.model.phases import BACKEND, COMPUTING, FAILED, LOADING, QUEUED, SENDING, SUCCEEDED
from harness.targets import answers
from harness.targets.completed_run import CompletedRun

# Headers in which load balancers and pods commonly name the worker that answered.
WORKER_HEADERS = ("x-worker", "x-pod-name", "x-upstream-addr", "x-upstream", "x-served-by")
_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt,
}  # fmt: skip
_EXPECTATION = re.compile(r"\s*([^\s<>=!]+)\s*(?:(==|!=|<=|>=|<|>)\s*(\S.*?))?\s*")


@dataclass(frozen=True, slots=True)
class Expectation:
    """A condition: an output exists and, with an operator, compares as stated."""

    text: str
    output: str
    operator: str = ""
    value: Any = None

    def violation(self, outputs: Mapping[str, Any]) -> str:
        """Why the outputs do not meet the condition; "" when they do."""
        if self.output not in outputs:
            return f"the output '{self.output}' is missing"
        found = outputs[self.output]
        if not self.operator:
            return ""
        try:
            holds = _OPERATORS[self.operator](found, self.value)
        except TypeError:
            holds = False
        return "" if holds else f"expected {self.text}, found {orjson.dumps(found)[:80].decode()}"


def parse_expectations(text: str) -> tuple[Expectation, ...]:
    """Parse conditions such as ``score; mean < 3; state == "ok"``.

    Raises:
        ConfigError: a part is not an output's name with an operator and a JSON value.
    """
    return tuple(_expectation(part.strip()) for part in text.split(";") if part.strip())


def _expectation(text: str) -> Expectation:
    match = _EXPECTATION.fullmatch(text)
    try:
        if match is not None:
            return Expectation(text, match[1], match[2] or "", orjson.loads(match[3]) if match[3] else None)
    except ValueError:
        pass
    raise ConfigError(
        f"--expect-output: '{text}' is not a condition", 'write NAME, NAME < 3 or NAME == "text" (a JSON value)'
    )


def completed_run(
    answer: HttpAnswer, run: str, *, task: str, empty_s: float, expected: Sequence[Expectation]
) -> CompletedRun | None:
    """The execution that an answer describes; None when the answer is not that of an execution.

    The platform measures with its own clock, so only durations are taken from it. Its loading time includes work that
    the worker did for other executions meanwhile; its computing time does not.
    """
    try:
        body = orjson.loads(answer.body)
    except ValueError:
        return None
    if not isinstance(body, Mapping) or "result" not in body:
        return None
    state, error = SUCCEEDED, ""
    if body["result"] != "ok":
        state, error = FAILED, _error(body)
    else:
        outputs = body.get("output_results_by_output_name") or {}
        violations = [violation for expectation in expected if (violation := expectation.violation(outputs))]
        if violations:
            state, error = FAILED, "; ".join(violations)
    node = next((answer.headers[name] for name in WORKER_HEADERS if name in answer.headers), None)
    phases, waiting = _phases(body.get("measured_steps") or {})
    return CompletedRun(run, state, error, task, phases, waiting, empty_s, node)


def _phases(steps: Mapping[str, Any]) -> tuple[tuple[tuple[str, float], ...], str]:
    """(phase, seconds) in their order, and the phase to which unmeasured time is attributed.

    In the backend: waiting and preparing, then the call of the runtime; in the runtime: waiting for other executions of
    the same worker, loading, computing, sending. A failed execution may have no measured steps, and then no phases.
    """

    def seconds(name: str) -> float | None:
        step = steps.get(name)
        given = step.get("duration") if isinstance(step, Mapping) else None
        return float(given) if isinstance(given, int | float) else None

    full, called, handled = (
        seconds(name) for name in ("internal_full", "run_execution_input", "runtime_service_handling")
    )
    work = tuple(
        (phase, length)
        for phase, name in ((LOADING, "load_data"), (COMPUTING, "pure_execution"), (SENDING, "send_data"))
        if (length := seconds(name)) is not None
    )
    in_runtime = called if called is not None else handled
    if in_runtime is None:
        return work, QUEUED
    queued = (QUEUED, max(0.0, in_runtime - sum(length for _, length in work)))
    if full is None or called is None:
        return (queued, *work), QUEUED
    return ((BACKEND, max(0.0, full - called)), queued, *work), BACKEND


def _error(body: Mapping[str, Any]) -> str:
    """The error on one line: process stage, operator, exception."""
    error = body.get("error")
    if not isinstance(error, Mapping):
        text = str(error or body.get("traceback") or "the result is not ok, and no error is given")
        return text.strip().splitlines()[-1][: answers.MOST_TEXT]
    operator_info = error.get("operator_info") or {}
    place = " / ".join(((operator_info.get("hierarchy_in_workflow") or {}).get("by_name")) or ())
    parts = [str(error.get("process_stage") or ""), f"operator {place}" if place else ""]
    parts.append(": ".join(str(error[key]) for key in ("type", "message") if error.get(key)))
    return " · ".join(part for part in parts if part)[: answers.MOST_TEXT]


def error_text(answer: HttpAnswer) -> str:
    """The error in an answer without a result: FastAPI's `detail`, a Kubernetes status, or the body's beginning."""
    return answers.error_text(answer, _told)


def _told(found: Mapping[str, Any]) -> object:
    detail = found.get("message" if found.get("kind") == "Status" else "detail")
    return "; ".join(map(_detail, detail)) if isinstance(detail, list) else detail


def _detail(each: Any) -> str:
    if not isinstance(each, Mapping):
        return str(each)
    place = ".".join(str(part) for part in each.get("loc") or () if part not in {"body", "__root__"})
    return f"{place}: {each.get('msg')}" if place else str(each.get("msg"))
