"""hetida designer: executions through its backend, with or without waiting for the result, or at a runtime directly.

The answer of an execution is its result, so a run is over when it is answered: nothing is listed. An asynchronous
execution is answered with 202 and ends with a callback, which the observer receives.
"""

import os
import socket
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import orjson

from harness.model.errors import ConfigError, TargetUnreachableError
from harness.model.http import Exchange, HttpAnswer, HttpRequest
from harness.model.options import Option
from harness.model.phases import FAILED
from harness.model.plan import Plan
from harness.model.redaction import Redaction
from harness.model.scenario import Scenario
from harness.targets import hetida_transformation
from harness.targets.hetida_answer import error_text, over, parse_expectations
from harness.targets.hetida_transformation import (
    Transformation,
    execution_of,
    filled,
    read_json,
    understand,
)
from harness.targets.target import CompletedRun, Prepared, RejectedError, Service, SetUp

MODES = ("backend", "async", "runtime")
OPTIONS = (
    Option(
        "mode", "backend",
        "backend: execute and wait for the result · async: the backend calls back · runtime: a runtime directly",
        choices=MODES,
    ),
    Option("transformation", "", "exported transformation or execution input (JSON file), or an id the backend knows"),
    Option("revision-group", "", "execute the latest released revision of this group"),
    Option("wiring", "", "wiring (JSON file) instead of the transformation's test wiring"),
    Option("expect-output", "", "expected results, as 'score < 3; alerts' (an output's name, a JSON value)"),
    Option("callback-url", "", "async: address at which the backend reaches this machine, as http://me.example:9090"),
)  # fmt: skip
# An execution may take minutes: gunicorn's own time limit in the public images is 15.
DEFAULTS = {"simulate": "hetida-pattern-1", "answer-timeout": "15m"}
HOST_VARIABLE = "PIPESWARM_HETIDA_BACKEND"
_EXAMPLE = Path(__file__).with_name("anomaly_detection.json")
_JSON = {"content-type": "application/json"}
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_HELLOS = 3
_AUTH_HINT = "give a bearer token with --token-file or the environment variable PIPESWARM_TOKEN"
_RUNTIME_ERROR = 500  # the execution was under way when it broke; other errors mean that it was not taken on


def prepare(texts: Mapping[str, str], *, simulated: bool) -> Prepared:
    """Read transformation and wiring and check the options; see `Platform.prepare`."""
    mode, given, group = texts["mode"] or "backend", texts["transformation"].strip(), texts["revision-group"].strip()
    parse_expectations(texts["expect-output"])
    options = {"mode": mode, "expect_output": texts["expect-output"], "callback_url": texts["callback-url"].strip()}
    if group and mode == "runtime":
        raise ConfigError("--revision-group is the backend's to resolve", "with --mode runtime give --transformation")
    if not (given or group or simulated):
        raise ConfigError("there is nothing to execute", "give --transformation FILE or ID, or --revision-group ID")
    options["revision_group"] = group
    wiring = read_json(Path(texts["wiring"]), "wiring") if texts["wiring"].strip() else None
    if wiring is not None:
        options["wiring"] = orjson.dumps(_wiring(wiring, texts["wiring"])).decode()
    path = Path(given) if given else _EXAMPLE
    if group and not given:
        return Prepared(options, group)
    if given and _is_id(given):
        if mode == "runtime":
            raise ConfigError("a runtime knows no ids", "with --mode runtime give --transformation FILE")
        return Prepared(options | {"id": given}, given)
    found = understand(read_json(path, "transformation"), str(path), wiring)
    options |= {"id": found.id, "name": found.name, "wiring": orjson.dumps(found.wiring).decode()}
    if mode == "runtime":
        execution = {**execution_of(found, str(path)), "workflow_wiring": found.wiring}
        options["execution"] = orjson.dumps(execution).decode()
    elif not found.exported:
        raise ConfigError(f"{path} is an input of a runtime", "give --mode runtime, or an exported transformation")
    package = {**found.exported, "test_wiring": found.wiring} if found.exported else None
    return Prepared(
        options,
        found.name,
        found.parameters(),
        orjson.dumps(package or _as_exported(found), option=orjson.OPT_INDENT_2),
        "--from-workflow",
    )


def _wiring(raw: Any, where: str) -> dict[str, Any]:
    if not isinstance(raw, Mapping) or not isinstance(raw.get("input_wirings"), list):
        raise ConfigError(f"{where} is not a wiring: it has no input_wirings", "write it as in a test_wiring")
    return dict(raw)


def _is_id(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True


def _as_exported(found: Transformation) -> Mapping[str, Any]:
    """What the generators need to know of an execution input: the interface and the wiring."""
    inputs = [{"name": port.name, "data_type": port.data_type} for port in found.inputs]
    return {"id": found.id, "name": found.name, "io_interface": {"inputs": inputs}, "test_wiring": found.wiring}


def from_plan(plan: Plan, package: bytes | None = None) -> "HetidaTarget":
    """The target of a plan; `package` is the exported transformation, for a backend that does not have it."""
    options = {name: str(value) for name, value in plan.target_options.items()}
    return HetidaTarget(options, plan.host, package)


def without_values(document: bytes, redaction: Redaction) -> bytes:
    """See `Redactable.without_values`."""
    return hetida_transformation.without_values(document, redaction)


class HetidaTarget:
    """A backend or a runtime of hetida designer at `host`.

    `options`: mode, id or revision_group, name, wiring and execution (JSON), expect_output, callback_url; after
    `set_up` also empty_s, the time of an exchange without any work.
    """

    def __init__(self, options: Mapping[str, str], host: str, package: bytes | None = None) -> None:
        self._options = options
        self._package = package
        self._host = host
        self._mode = options.get("mode", "backend")
        self._api = "" if urlsplit(host).path.strip("/") else "/api"
        self._wiring = orjson.loads(options.get("wiring") or "null")
        self._execution = orjson.loads(options.get("execution") or "{}")
        self._expected = parse_expectations(options.get("expect_output", ""))
        self._empty_s = float(options.get("empty_s") or 0)
        self._task = options.get("name") or options.get("id") or options.get("revision_group", "")

    def set_up(self, exchange: Exchange) -> SetUp:
        """Say hello, and find or upload the transformation; see `Target.set_up`."""
        if self._mode == "runtime":
            empty_s = min(self._hello(exchange, "/engine/info") for _ in range(_HELLOS))
            found = understand(self._execution, "the execution input")
            return SetUp({"empty_s": f"{empty_s:.6f}"}, found.parameters())
        empty_s = min(self._hello(exchange, f"{self._api}/adapters/") for _ in range(_HELLOS))
        found = understand(self._stored(exchange), "the backend's transformation", self._wiring)
        known = {str(each.get("id")) for each in self._json(exchange, "/adapters/") if isinstance(each, Mapping)}
        missing = sorted(found.adapters - known) if known else []
        if missing:
            raise ConfigError(
                f"the wiring of {found.name} needs the adapter {', '.join(missing)}, which the backend does not know",
                f"its adapters are: {', '.join(sorted(known))}; see HETIDA_DESIGNER_ADAPTERS of the backend",
            )
        options = {"empty_s": f"{empty_s:.6f}", "wiring": orjson.dumps(found.wiring).decode(), "name": found.name}
        return SetUp({**options, **self._callback()}, found.parameters())

    def submit(self, scenario: Scenario, exchange: Exchange) -> str | CompletedRun:
        """One execution; see `Target.submit`. Only an asynchronous one is not over with its answer."""
        job, path, body = str(uuid.uuid4()), "/engine/runtime", dict(self._execution)
        wiring = filled(self._wiring, scenario.values)
        if self._mode == "runtime":
            body |= {"workflow_wiring": wiring, "job_id": job}
        else:
            path, body = self._request(wiring, job)
        answer = exchange(HttpRequest("POST", path, orjson.dumps(body), _JSON))
        if self._mode == "async" and answer.status // 100 == 2:
            return job
        if answer.status == _RUNTIME_ERROR:
            return CompletedRun(job, FAILED, f"HTTP 500 · {error_text(answer)}", self._task)
        if answer.status // 100 != 2:
            raise RejectedError(answer.status, error_text(answer))
        ended = over(answer, job, task=self._task, empty_s=self._empty_s, expected=self._expected)
        if ended is None:
            raise RejectedError(answer.status, f"not the result of an execution: {error_text(answer)}")
        return ended

    def read_callback(self, body: bytes) -> CompletedRun | None:
        """How an asynchronous execution ended, by what the backend posted; none when it is not that of an execution."""
        try:
            job = str(orjson.loads(body)["job_id"])
        except (ValueError, KeyError, TypeError):
            return None
        return over(HttpAnswer(200, body), job, task=self._task, empty_s=0.0, expected=self._expected)

    def services(self, exchange: Exchange) -> tuple[Service, ...]:
        """The runtime, or the backend and the adapters that it knows; see `Probed.services`."""
        if self._mode == "runtime":
            return (Service("runtime", "/engine/info"),)
        known = [each for each in self._json(exchange, "/adapters/") if isinstance(each, Mapping)]
        adapters = (Service(f"adapter {each.get('id')}", f"{each['url']}/info") for each in known if each.get("url"))
        return (Service("backend", f"{self._api}/adapters/"), *adapters)

    # --- requests -----------------------------------------------------------------------------------------------

    def _request(self, wiring: Mapping[str, Any], job: str) -> tuple[str, dict[str, Any]]:
        group = self._options.get("revision_group", "")
        which = {"revision_group_id": group} if group else {"id": self._options["id"]}
        verb = "execute-latest" if group else "execute"
        path = f"{self._api}/transformations/{verb}"
        if self._mode == "async":
            path += f"-async?{urlencode({'callback_url': self._options['callback_url']})}"
        return path, {**which, "wiring": wiring, "run_pure_plot_operators": False, "job_id": job}

    def _hello(self, exchange: Exchange, path: str) -> float:
        """Seconds of an exchange that costs the platform nothing."""
        begun = time.perf_counter()
        answer = exchange(HttpRequest("GET", path))
        taken_s = time.perf_counter() - begun
        if answer.status in {401, 403}:
            raise TargetUnreachableError(f"GET {path} is refused: {answer.status} {error_text(answer)}", _AUTH_HINT)
        if answer.status // 100 != 2:
            what = "a runtime" if self._mode == "runtime" else "a backend"
            raise TargetUnreachableError(
                f"GET {path} answered {answer.status} {error_text(answer)}",
                f"is --host the address of {what} of hetida designer, and --mode right?",
            )
        return taken_s

    def _stored(self, exchange: Exchange) -> Any:
        """The transformation as the backend has it; uploaded if it does not."""
        group = self._options.get("revision_group", "")
        if group:
            return self._latest(exchange, group)
        given = self._options["id"]
        answer = exchange(HttpRequest("GET", f"{self._api}/transformations/{quote(given)}"))
        if answer.status == 404 and self._package is not None:
            self._upload(exchange, f"/transformations/{quote(given)}", self._package)
            return orjson.loads(self._package)
        if answer.status in {404, 422}:
            raise ConfigError(
                f"the backend has no transformation {given}: {error_text(answer)}",
                "look up --transformation in hetida designer, or give the exported file",
            )
        return self._parsed(answer, f"GET /transformations/{given}")

    def _latest(self, exchange: Exchange, group: str) -> Any:
        """The newest released revision of a group, as the backend would choose it."""
        listed = self._json(exchange, f"/transformations/?{urlencode({'revision_group_id': group})}")
        released = [
            each
            for each in (listed if isinstance(listed, list) else ())
            if each.get("revision_group_id") == group and each.get("state") == "RELEASED"
        ]
        if not released:
            raise ConfigError(
                f"the backend has no released revision in the group {group}", "release one, or give --transformation ID"
            )
        return max(released, key=lambda each: str(each.get("released_timestamp") or ""))

    def _upload(self, exchange: Exchange, path: str, package: bytes) -> None:
        answer = exchange(HttpRequest("PUT", f"{self._api}{path}?update_component_code=False", package, _JSON))
        if answer.status in {400, 422}:
            raise ConfigError(f"the backend refuses the transformation: {error_text(answer)}", "mend the file")
        self._parsed(answer, f"PUT {path}")

    def _json(self, exchange: Exchange, path: str) -> Any:
        return self._parsed(exchange(HttpRequest("GET", self._api + path)), f"GET {path.partition('?')[0]}")

    def _parsed(self, answer: HttpAnswer, where: str) -> Any:
        if answer.status // 100 != 2:
            hint = _AUTH_HINT if answer.status in {401, 403} else "is the backend healthy, and of a known version?"
            raise TargetUnreachableError(f"{where} answered {answer.status} {error_text(answer)}", hint)
        try:
            return orjson.loads(answer.body)
        except ValueError:
            raise TargetUnreachableError(
                f"{where} answered {error_text(answer)} where hetida designer answers JSON",
                "is --host the backend (often http://…/hdapi), and not a login page or another service?",
            ) from None

    def _callback(self) -> Mapping[str, str]:
        """Where the backend shall call back; a free port of this machine if both are on it."""
        if self._mode != "async":
            return {}
        given = self._options.get("callback_url", "")
        if given:
            if urlsplit(given).scheme != "http" or not urlsplit(given).port:
                raise ConfigError(f"--callback-url: '{given}' has no port", "write it as http://me.example:9090")
            return {"callback_url": given, "callback_listen": f"0.0.0.0:{urlsplit(given).port}"}  # asked for
        if urlsplit(self._host).hostname not in _LOOPBACK:
            raise ConfigError(
                "the backend must be able to call this machine back",
                f"give --callback-url, as http://{os.uname().nodename}:9090",
            )
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            listen = f"127.0.0.1:{probe.getsockname()[1]}"
        return {"callback_url": f"http://{listen}", "callback_listen": listen}
