"""A small KFP API that turns each CreateRun into a Workflow of a real Kubernetes API. Its answers are as recorded.

It answers what a load test and its observer ask: health, experiments, pipelines, versions, runs with their tasks.
"""

import base64
import json
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import yaml

from tests.support.real_parts.argo import ARGO, workflow_of
from tests.support.real_parts.kube import Kube, Manifest
from tests.support.real_parts.kubelet_reports import stamp
from tests.support.real_parts.run_nodes import Task

_ROOT = "/apis/v2beta1"
_NEVER, _NOT_YET = "1970-01-01T00:00:00Z", "0001-01-01T00:00:00Z"
_MISMATCH = (
    "page token does not match the supplied sort by and/or filtering criteria. Either specify the same criteria or "
    "leave the latter empty if page token is specified"
)
_INVALID, _MISSING, _EXISTS, _UNKNOWN = (400, 3), (404, 5), (409, 6), (501, 12)  # HTTP status, gRPC code
Answer = tuple[int, Any]


def _refusal(kind: tuple[int, int], cause: str, failed: str = "") -> Answer:
    status, code = kind
    details = [{"@type": "type.googleapis.com/google.rpc.Status", "code": code, "message": cause}]
    return status, {"code": code, "message": f"{failed}{cause}", "details": details}


@dataclass
class KfpApi:
    """The API, and the runs it has created: one namespace, one user.

    Attributes:
        runs: all that were created, by id, as the API shows them.
        workflows: name of each run's workflow.
    """

    kube: Kube
    namespace: str
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)
    workflows: dict[str, str] = field(default_factory=dict)
    _experiments: dict[str, dict[str, Any]] = field(default_factory=dict)
    _pipelines: dict[str, dict[str, Any]] = field(default_factory=dict)
    _specs: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    _tasks: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)  # by run and node
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def report(self, run: str, workflow: str, status: Manifest) -> None:
        """Take in a workflow's status, as the persistence agent sends it."""
        with self._lock:
            shown = self.runs[run]
            self.workflows[run] = workflow
            state = str(status["phase"]).upper()
            if shown["state"] != state:
                shown["state"] = state
                shown["state_history"].append({"update_time": stamp(), "state": state})
            shown["finished_at"] = status["finishedAt"] or _NEVER
            tasks = self._tasks.setdefault(run, {})
            for node in status["nodes"].values():
                tasks[node["id"]] = _task(shown, node, tasks.get(node["id"]))
            shown["run_details"] = {"task_details": sorted(tasks.values(), key=lambda each: str(each["task_id"]))}

    def answer(self, method: str, path: str, query: Mapping[str, str], body: bytes) -> Answer:
        """Status and document."""
        if path == "/metrics":
            return 200, self._metrics()
        parts = path.removeprefix(_ROOT).strip("/").split("/")
        with self._lock:
            match method, parts:
                case method, ["runs", run]:
                    return self._run(method, run)
                case "GET", _:
                    return self._get(parts, query)
                case "POST", ["experiments"]:
                    return self._create_experiment(json.loads(body))
                case "POST", ["pipelines", "upload"]:
                    return self._upload(query["name"], body)
                case "POST", ["runs"]:
                    return self._create_run(json.loads(body))
        return _refusal(_UNKNOWN, f"{method} {path} is not part of the rehearsal")

    def _get(self, parts: list[str], query: Mapping[str, str]) -> Answer:
        match parts:
            case ["healthz"]:
                return 200, {"commit_sha": "unknown", "tag_name": "unknown", "multi_user": False}
            case ["experiments"]:
                return 200, _found("experiments", self._experiments, query)
            case ["pipelines"]:
                return 200, _found("pipelines", self._pipelines, query)
            case ["pipelines", name, "versions"] if name in self._pipelines:
                return 200, {"pipeline_versions": [self._version(name)], "total_size": 1}
            case ["pipelines", name, "versions", _] if name in self._pipelines:
                return 200, self._version(name)
            case ["runs"]:
                return self._list(query)
        return _refusal(_MISSING, f"{'/'.join(parts)} not found")

    def _create_experiment(self, given: Mapping[str, Any]) -> Answer:
        name = str(given["display_name"])
        if any(each["display_name"] == name for each in self._experiments.values()):
            return _refusal(_EXISTS, f"Failed to create a new experiment. The name {name} already exists")
        made = {
            "experiment_id": str(uuid.uuid4()), "display_name": name, "created_at": stamp(),
            "storage_state": "AVAILABLE", "last_run_created_at": _NEVER,
        }  # fmt: skip
        self._experiments[made["experiment_id"]] = made
        return 200, made

    def _upload(self, name: str, body: bytes) -> Answer:
        if any(each["display_name"] == name for each in self._pipelines.values()):
            return 409, {"error_message": "Failed to create a pipeline and a pipeline version"}
        content = body.split(b"\r\n\r\n", 1)[1].rsplit(b"\r\n--", 1)[0]
        made = {"pipeline_id": str(uuid.uuid4()), "display_name": name, "name": name, "created_at": stamp()}
        self._pipelines[made["pipeline_id"]] = made
        self._specs[made["pipeline_id"]] = next(iter(yaml.safe_load_all(content)))
        return 200, made

    def _version(self, pipeline: str) -> Mapping[str, Any]:
        version = str(uuid.uuid5(uuid.NAMESPACE_URL, pipeline))
        return self._pipelines[pipeline] | {"pipeline_version_id": version, "pipeline_spec": self._specs[pipeline]}

    def _create_run(self, given: Mapping[str, Any]) -> Answer:
        pipeline = given["pipeline_version_reference"]["pipeline_id"]
        if pipeline not in self._specs:
            return _refusal((500, 13), f"Pipeline {pipeline} not found")
        spec, now = self._specs[pipeline], stamp()
        run = {
            "experiment_id": given["experiment_id"], "run_id": str(uuid.uuid4()),
            "display_name": given["display_name"], "storage_state": "AVAILABLE",
            "pipeline_version_reference": given["pipeline_version_reference"],
            "runtime_config": given["runtime_config"], "service_account": "pipeline-runner", "created_at": now,
            "scheduled_at": now, "finished_at": _NEVER, "state": "PENDING",
            "state_history": [{"update_time": now, "state": "PENDING"}],
        }  # fmt: skip
        self.runs[run["run_id"]] = run  # before its workflow: the controller may be quick
        name = spec["pipelineInfo"]["name"]
        workflow = workflow_of(run["run_id"], name, run["display_name"], tasks_of(spec))
        self.kube.create(f"{ARGO}/namespaces/{self.namespace}/workflows", workflow)
        return 200, run

    def _run(self, method: str, run: str) -> Answer:
        if run not in self.runs:
            return _refusal(_MISSING, f"Run {run} not found")
        if method == "DELETE":
            del self.runs[run]
            return 200, {}
        return 200, self.runs[run]

    def _list(self, query: Mapping[str, str]) -> Answer:
        """A page, newest first. With a token, a timestamp filter or another order is refused."""
        token = query.get("page_token", "")
        if token and (query.get("filter") or query.get("sort_by")):
            return _refusal(_INVALID, _MISMATCH, "Failed to create list options: Invalid input error: ")
        since, begin = "", 0
        if token:
            since, begin = json.loads(base64.b64decode(token))
        elif query.get("filter"):
            since = json.loads(query["filter"])["predicates"][0]["timestamp_value"]
        own = [run for run in self.runs.values() if run["experiment_id"] == query["experiment_id"]]
        newer = sorted((run for run in own if run["created_at"] >= since), key=_newest_first, reverse=True)
        end = begin + int(query["page_size"])
        more = base64.b64encode(json.dumps([since, end]).encode()).decode()
        page = {"runs": newer[begin:end], "total_size": len(newer)} | ({"next_page_token": more} if newer[end:] else {})
        return 200, page if newer else {}

    def _metrics(self) -> str:
        """KFP's own count of runs, and Argo's of workflows by phase, under the names of KFP 2.17 and Argo 4."""
        states = [str(run["state"]).capitalize() for run in self.runs.values()]
        by_phase = "".join(
            f'argo_workflows_gauge{{phase="{phase}"}} {states.count(phase)}\n'
            for phase in ("Pending", "Running", "Succeeded", "Failed")
        )
        return f"run_server_create_requests {len(states)}\n{by_phase}"


def tasks_of(spec: Mapping[str, Any]) -> tuple[Task, ...]:
    """The tasks of compiled IR, each after those that it waits for; a flat graph of containers."""
    tasks, executors = spec["root"]["dag"]["tasks"], spec["deploymentSpec"]["executors"]
    found: dict[str, Task] = {}
    while len(found) < len(tasks):
        for name, task in tasks.items():
            after = tuple(task.get("dependentTasks", ()))
            if name not in found and all(each in found for each in after):
                label = spec["components"][task["componentRef"]["name"]]["executorLabel"]
                container = executors[label]["container"]
                wanted = container.get("resources", {})
                cpu, memory = str(wanted.get("cpuRequest", 0)), wanted.get("memoryRequest", 0)
                found[name] = Task(name, after, container["image"], cpu, f"{memory * 10**9:.0f}")
    return tuple(found.values())


def _newest_first(run: Mapping[str, Any]) -> tuple[str, str]:
    return str(run["created_at"]), str(run["run_id"])


def _found(kind: str, known: Mapping[str, dict[str, Any]], query: Mapping[str, str]) -> dict[str, Any]:
    named = json.loads(query["filter"])["predicates"][0]["string_value"]
    found = [each for each in known.values() if each["display_name"] == named]
    return {kind: found, "total_size": len(found)} if found else {}


def _task(run: Mapping[str, Any], node: Manifest, known: Mapping[str, Any] | None) -> dict[str, Any]:
    """The entry of a workflow's node among a run's task details."""
    state = str(node["phase"]).upper()
    history = list(known["state_history"]) if known else []
    if not history or history[-1]["state"] != state:
        history.append({"update_time": stamp(), "state": state})
    children = [{"pod_name": each} for each in node.get("children", ())]
    return {
        "run_id": run["run_id"], "task_id": known["task_id"] if known else str(uuid.uuid4()),
        "display_name": node["displayName"], "create_time": run["created_at"], "start_time": node["startedAt"],
        "end_time": node["finishedAt"] or _NOT_YET, "state": state, "state_history": history,
    } | ({"child_tasks": children} if children else {})  # fmt: skip


@contextmanager
def serving(api: KfpApi) -> Iterator[str]:
    """Serve the API on the loopback interface; yields its address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            parts, size = urlsplit(self.path), int(self.headers.get("Content-Length") or 0)
            status, document = api.answer(self.command, parts.path, dict(parse_qsl(parts.query)), self.rfile.read(size))
            text = document if isinstance(document, str) else json.dumps(document)
            self.send_response(status)
            self.send_header("Content-Type", "text/plain" if isinstance(document, str) else "application/json")
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        do_POST = do_DELETE = do_GET  # noqa: N815  # the standard library's names

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the standard library's name
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="kfp", daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
