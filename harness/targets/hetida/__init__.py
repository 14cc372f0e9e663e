"""hetida designer: executions through its backend, synchronous or asynchronous, or directly on a runtime.

The answer to an execution is its result, so a run ends with its answer and nothing is listed. An asynchronous
execution is answered with 202 and ends with a callback, which the observer receives.
"""

import os
import socket
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import orjson

from harness.model.errors import ConfigError
from harness.model.http import LONG_ANSWER, Exchange, HttpAnswer, HttpRequest
from harness.model.options import Option
from harness.model.phases import FAILED
from harness.model.plan import Plan
from harness.model.scenario import Scenario
from harness.targets.answers import JSON
from harness.targets.completed_run import CompletedRun
from harness.targets.hetida.answers import completed_run, error_text, parse_expectations
from harness.targets.hetida.api import Backend, release, round_trip_s
from harness.targets.hetida.transformation import (
    Transformation,
    execution_of,
    filled,
    parse_transformation,
    read_json,
    without_values,
)
from harness.targets.kube_service import path_of
from harness.targets.target import Prepared, RejectedError, Service, SetUp

__all__ = [
    "DEFAULTS", "EXAMPLE", "HOST_VARIABLE", "OPTIONS", "HetidaTarget", "from_plan", "prepare", "without_values",
]  # fmt: skip


def _is_id(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True


MODES = ("backend", "async", "runtime")
OPTIONS = (
    Option(
        "transformation", "", "exported transformation or execution input (JSON file), or an id the backend knows",
        file="json", is_name=_is_id,
    ),
    Option(
        "mode", "backend",
        "backend: execute and wait for the result · async: the backend calls back · runtime: a runtime directly",
        choices=MODES,
    ),
    Option("revision-group", "", "execute the latest released revision of this group"),
    Option("wiring", "", "wiring (JSON file) instead of the transformation's test wiring", file="json"),
    Option("expect-output", "", "expected results, as 'score < 3; alerts' (an output's name, a JSON value)"),
    Option("callback-url", "", "async: address at which the backend reaches this machine, as http://me.example:9090"),
)  # fmt: skip
# An execution may take minutes: gunicorn's own time limit in the public images is 15.
DEFAULTS = {"simulate": "hetida-pattern-1", "answer-timeout": "15m"}
HOST_VARIABLE = "PIPESWARM_HETIDA_BACKEND"
EXAMPLE = Path(__file__).parent.with_name("anomaly_detection.json")

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_RUNTIME_ERROR = 500  # the execution failed while it ran; any other error means that it was not accepted


def prepare(texts: Mapping[str, str], *, simulated: bool) -> Prepared:
    """Read transformation and wiring and check the options; see `Platform.prepare`."""
    mode, given, group = texts["mode"] or "backend", texts["transformation"].strip(), texts["revision-group"].strip()
    parse_expectations(texts["expect-output"])
    options = {"mode": mode, "expect_output": texts["expect-output"], "callback_url": texts["callback-url"].strip()}
    if group and mode == "runtime":
        raise ConfigError("only the backend resolves --revision-group", "with --mode runtime give --transformation")
    if not (given or group or simulated):
        raise ConfigError("no transformation to execute", "give --transformation FILE or ID, or --revision-group ID")
    options["revision_group"] = group
    wiring = read_json(Path(texts["wiring"]), "wiring") if texts["wiring"].strip() else None
    if wiring is not None:
        options["wiring"] = orjson.dumps(_wiring(wiring, texts["wiring"])).decode()
    path = Path(given) if given else EXAMPLE
    if group and not given:
        return Prepared(options, group)
    if given and _is_id(given):
        if mode == "runtime":
            raise ConfigError("a runtime has no stored transformations", "with --mode runtime give the exported file")
        return Prepared(options | {"id": given}, given)
    transformation = parse_transformation(read_json(path, "transformation"), str(path), wiring)
    options |= {
        "id": transformation.id,
        "name": transformation.name,
        "wiring": orjson.dumps(transformation.wiring).decode(),
    }
    if mode == "runtime":
        execution = {**execution_of(transformation, str(path)), "workflow_wiring": transformation.wiring}
        options["execution"] = orjson.dumps(execution).decode()
    elif not transformation.exported:
        raise ConfigError(f"{path} is an execution input", "give --mode runtime, or an exported transformation")
    package = (
        {**transformation.exported, "test_wiring": transformation.wiring}
        if transformation.exported
        else _as_exported(transformation)
    )
    packed = orjson.dumps(package, option=orjson.OPT_INDENT_2)
    return Prepared(options, transformation.name, transformation.parameters(), packed, inferred_with="--from-workflow")


def _wiring(raw: Any, where: str) -> dict[str, Any]:
    if not isinstance(raw, Mapping) or not isinstance(raw.get("input_wirings"), list):
        raise ConfigError(f"{where} is not a wiring: it has no input_wirings", "write it like a test_wiring")
    return dict(raw)


def _as_exported(found: Transformation) -> Mapping[str, Any]:
    """The part of an execution input that the generators read: the interface and the wiring."""
    inputs = [{"name": port.name, "data_type": port.data_type} for port in found.inputs]
    return {"id": found.id, "name": found.name, "io_interface": {"inputs": inputs}, "test_wiring": found.wiring}


def from_plan(plan: Plan, package: bytes | None = None) -> "HetidaTarget":
    """The target of a plan; `package` is the exported transformation, to upload to a backend that lacks it."""
    options = {name: str(value) for name, value in plan.target_options.items()}
    return HetidaTarget(options, plan.host, package)


class HetidaTarget:
    """A backend or a runtime of hetida designer at `host`.

    `options`: mode, id or revision_group, name, wiring and execution (JSON), expect_output, callback_url; after
    `set_up` also empty_s, the seconds of an exchange that does no work.
    """

    submits_ahead = True
    replica_pods = "runtime"

    def __init__(self, options: Mapping[str, str], host: str, package: bytes | None = None) -> None:
        self._options = options
        self._package = package
        self._host = host
        self._mode = options.get("mode", "backend")
        self._api = "" if path_of(host) else "/api"
        self._wiring = orjson.loads(options.get("wiring") or "null")
        self._execution = orjson.loads(options.get("execution") or "{}")
        self._expected = parse_expectations(options.get("expect_output", ""))
        self._empty_s = float(options.get("empty_s") or 0)
        self._task = options.get("name") or options.get("id") or options.get("revision_group", "")

    def set_up(self, exchange: Exchange) -> SetUp:
        """Measure the round trip, and find or upload the transformation; see `Target.set_up`."""
        if self._mode == "runtime":
            empty_s = round_trip_s(exchange, "/engine/info", "a runtime")
            transformation = parse_transformation(self._execution, "the execution input")
            options = {"empty_s": f"{empty_s:.6f}"}
            return SetUp(options, transformation.parameters(), release(exchange, "/engine/info", "hetida runtime"))
        empty_s = round_trip_s(exchange, f"{self._api}/adapters/", "a backend")
        backend, group = Backend(exchange, self._api), self._options.get("revision_group", "")
        stored = backend.latest(group) if group else backend.transformation(self._options["id"], self._package)
        transformation = parse_transformation(stored, "the backend's transformation", self._wiring)
        known = {str(adapter.get("id")) for adapter in backend.adapters()}
        missing = sorted(transformation.adapters - known) if known else []
        if missing:
            raise ConfigError(
                f"the wiring of {transformation.name} needs the adapter {', '.join(missing)}, which the backend "
                "does not know",
                f"its adapters are: {', '.join(sorted(known))}; see HETIDA_DESIGNER_ADAPTERS of the backend",
            )
        options = {
            "empty_s": f"{empty_s:.6f}",
            "wiring": orjson.dumps(transformation.wiring).decode(),
            "name": transformation.name,
        }
        versions = release(exchange, f"{self._api}/info", "hetida backend")
        return SetUp({**options, **self._callback()}, transformation.parameters(), versions)

    def versions(self, exchange: Exchange) -> Mapping[str, str]:
        """See `NamesVersions.versions`."""
        if self._mode == "runtime":
            round_trip_s(exchange, "/engine/info", "a runtime")
            return release(exchange, "/engine/info", "hetida runtime")
        round_trip_s(exchange, f"{self._api}/adapters/", "a backend")
        return release(exchange, f"{self._api}/info", "hetida backend")

    def submit(self, scenario: Scenario, exchange: Exchange) -> str | CompletedRun:
        """One execution; see `Target.submit`. Only an asynchronous one continues after its answer."""
        job, path, body = str(uuid.uuid4()), "/engine/runtime", dict(self._execution)
        wiring = filled(self._wiring, scenario.values)
        if self._mode == "runtime":
            body |= {"workflow_wiring": wiring, "job_id": job}
        else:
            path, body = self._request(wiring, job)
        answer = exchange(HttpRequest("POST", path, orjson.dumps(body), JSON, LONG_ANSWER))
        if self._mode == "async" and answer.status // 100 == 2:
            return job
        if answer.status == _RUNTIME_ERROR:
            return CompletedRun(job, FAILED, f"HTTP 500 · {error_text(answer)}", self._task)
        if answer.status // 100 != 2:
            raise RejectedError(answer.status, error_text(answer))
        ended = completed_run(answer, job, task=self._task, empty_s=self._empty_s, expected=self._expected)
        if ended is None:
            raise RejectedError(answer.status, f"not the result of an execution: {error_text(answer)}")
        return ended

    def read_callback(self, body: bytes) -> CompletedRun | None:
        """The asynchronous execution that a posted body describes; see `ReportsBack.read_callback`."""
        try:
            job = str(orjson.loads(body)["job_id"])
        except (ValueError, KeyError, TypeError):
            return None
        return completed_run(HttpAnswer(200, body), job, task=self._task, empty_s=0.0, expected=self._expected)

    def services(self, exchange: Exchange) -> tuple[Service, ...]:
        """The runtime, or the backend and the adapters that it knows; see `HasServices.services`."""
        if self._mode == "runtime":
            return (Service("runtime", "/engine/info"),)
        known = Backend(exchange, self._api).adapters()
        adapters = (Service(f"adapter {each.get('id')}", f"{each['url']}/info") for each in known if each.get("url"))
        return (Service("backend", f"{self._api}/adapters/"), *adapters)

    def _request(self, wiring: Mapping[str, Any], job: str) -> tuple[str, dict[str, Any]]:
        group = self._options.get("revision_group", "")
        which = {"revision_group_id": group} if group else {"id": self._options["id"]}
        verb = "execute-latest" if group else "execute"
        path = f"{self._api}/transformations/{verb}"
        if self._mode == "async":
            path += f"-async?{urlencode({'callback_url': self._options['callback_url']})}"
        return path, {**which, "wiring": wiring, "run_pure_plot_operators": False, "job_id": job}

    def _callback(self) -> Mapping[str, str]:
        """Where the backend is to call back; a free port of this machine when both are on it."""
        if self._mode != "async":
            return {}
        given = self._options.get("callback_url", "")
        if given:
            if urlsplit(given).scheme != "http" or not urlsplit(given).port:
                raise ConfigError(f"--callback-url: '{given}' has no port", "write it as http://me.example:9090")
            # Listening on all interfaces is what the option asks for.
            return {"callback_url": given, "callback_listen": f"0.0.0.0:{urlsplit(given).port}"}
        if urlsplit(self._host).hostname not in _LOOPBACK:
            raise ConfigError(
                "the backend needs an address at which to call this machine back",
                f"give --callback-url, as http://{os.uname().nodename}:9090",
            )
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            listen = f"127.0.0.1:{probe.getsockname()[1]}"
        return {"callback_url": f"http://{listen}", "callback_listen": listen}
