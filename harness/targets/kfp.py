"""Kubeflow Pipelines, REST API v2beta1.

The pipeline is uploaded once, named by the digest of its content, and runs are started by version reference: about
300 bytes and one request a run, whatever the pipeline's size.
"""

import json
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import orjson

from harness.model.errors import ConfigError, TargetUnreachableError
from harness.model.http import Exchange, HttpAnswer, HttpRequest
from harness.model.options import Option
from harness.model.phases import CANCELED, FAILED, SKIPPED, SUCCEEDED
from harness.model.plan import Plan
from harness.model.redaction import Redaction
from harness.model.scenario import Scenario
from harness.targets import kfp_pipeline
from harness.targets.cleaning import Cleanup
from harness.targets.kfp_pipeline import inputs_of, read_pipeline
from harness.targets.kfp_tasks import instant, tasks_of
from harness.targets.target import ListedRun, Prepared, RejectedError, RunPage, SetUp, TaskDetail

_API = "/apis/v2beta1"
_JSON = {"content-type": "application/json"}
_PAGE = 200  # the server's maximum
_ALREADY_EXISTS = 409
_NOT_FOUND = 404
# What the server says, with status 400, when a run that is to be ended is over already.
_NOT_GOING = "Row not found"
_OVER = frozenset({SUCCEEDED, FAILED, CANCELED, SKIPPED})
_MOST_ERROR_TEXT = 500
_MOST_SKEW_NS = 120 * 10**9  # the platform's clock may be behind ours


OPTIONS = (
    Option("pipeline", "", "compiled pipeline (IR YAML); uploaded once, then submitted by version"),
    Option("pipeline-id", "", "id of an uploaded pipeline, instead of --pipeline"),
    Option("version-id", "", "id of its version (default: the newest)"),
    Option("experiment", "pipeswarm", "experiment of the runs; created if absent"),
    Option("service-account", "", "service account of the runs' pods"),
    Option("caching", "off", "off: execute every task · keep: allow cached results", choices=("off", "keep")),
)
DEFAULTS = {"simulate": "demo"}
HOST_VARIABLE = "KF_PIPELINES_ENDPOINT"
# What the simulated platform runs when no pipeline is given: compiled from examples/training.py.
_EXAMPLE = Path(__file__).with_name("training.yaml")


def prepare(texts: Mapping[str, str], *, simulated: bool) -> Prepared:
    """Read the pipeline and check the options; see `Platform.prepare`."""
    options = {
        "experiment": texts["experiment"] or "pipeswarm",
        "namespace": texts["namespace"],
        "service_account": texts["service-account"],
    }
    if texts["pipeline"] and texts["pipeline-id"]:
        raise ConfigError("both --pipeline and --pipeline-id are given", "give one of them")
    if texts["pipeline-id"]:
        options |= {"pipeline_id": texts["pipeline-id"], "version_id": texts["version-id"]}
        return Prepared(options, texts["pipeline-id"])
    if not texts["pipeline"] and not simulated:
        raise ConfigError("there is no pipeline to run", "give --pipeline FILE (compiled IR) or --pipeline-id ID")
    path = Path(texts["pipeline"]) if texts["pipeline"] else _EXAMPLE
    pipeline = read_pipeline(path, keep_caching=texts["caching"] == "keep")
    options["pipeline_name"] = f"{pipeline.name}-{pipeline.digest[:12]}"
    return Prepared(options, pipeline.name, pipeline.inputs, pipeline.package)


def from_plan(plan: Plan, package: bytes | None = None) -> "KfpTarget":
    """The target of a plan; `target_options` hold what the options and `set_up` gave."""
    options = {name: str(value) for name, value in plan.target_options.items()}
    return KfpTarget(options, since=plan.started_at, package=package)


def without_values(document: bytes, redaction: Redaction) -> bytes:
    """See `Redactable.without_values`."""
    return kfp_pipeline.without_values(document, redaction)


class KfpTarget:
    """One KFP installation.

    `options`: experiment, namespace, service_account, pipeline_id, version_id; pipeline_name when `package` (compiled
    IR) is to be uploaded; after `set_up` also experiment_id. Runs created before `since` (UTC ns) are of other tests in
    the same experiment, and not listed.
    """

    def __init__(self, options: Mapping[str, str], since: int = 0, package: bytes | None = None) -> None:
        self._options = options
        self._package = package
        self._since = since
        self._template = self._body_template()

    def set_up(self, exchange: Exchange) -> SetUp:
        """Find or create the experiment and the pipeline version; see `Target.set_up`."""
        api = _Api(exchange)
        api.get("/healthz")
        namespace = self._options.get("namespace", "")
        experiment = _experiment(api, self._options["experiment"], namespace)
        if self._package is not None:
            pipeline = _uploaded(api, self._options["pipeline_name"], namespace, self._package)
            version = _latest_version(api, pipeline)
        else:
            pipeline = self._options["pipeline_id"]
            version = self._options.get("version_id", "") or _latest_version(api, pipeline)
        found = api.get(f"/pipelines/{quote(pipeline)}/versions/{quote(version)}")
        ids = {"experiment_id": experiment, "pipeline_id": pipeline, "version_id": version}
        return SetUp(ids, inputs_of(f"version {version} of pipeline {pipeline}", _spec(found)))

    def submit(self, scenario: Scenario, exchange: Exchange) -> str:
        """``POST /runs`` by version reference; see `Target.submit`."""
        body = self._template | {"display_name": scenario.run_name, "runtime_config": {"parameters": scenario.values}}
        answer = exchange(HttpRequest("POST", f"{_API}/runs", orjson.dumps(body), _JSON))
        if answer.status // 100 != 2:
            raise RejectedError(answer.status, error_text(answer))
        try:
            return str(orjson.loads(answer.body)["run_id"])
        except (ValueError, KeyError, TypeError):
            raise RejectedError(answer.status, f"not a run: {error_text(answer)}") from None

    def list_runs(self, exchange: Exchange, page: str = "") -> RunPage:
        """``GET /runs`` of the experiment, 200 a page, newest first; see `Target.list_runs`.

        A page token carries the order and the filter. KFP 2.17 refuses a timestamp filter repeated beside it.
        """
        query = {
            "experiment_id": self._options["experiment_id"],
            "namespace": self._options.get("namespace", ""),
            "page_size": str(_PAGE),
        }
        if page:
            query["page_token"] = page
        else:
            query["sort_by"] = "created_at desc"
            query["filter"] = _created_since(self._since - _MOST_SKEW_NS) if self._since > _MOST_SKEW_NS else ""
        listing = _Api(exchange).get("/runs", query)
        runs = tuple(_listed(run) for run in listing.get("runs", ()))
        return RunPage(runs, listing.get("next_page_token", ""))

    def read_tasks(self, exchange: Exchange, run: str) -> tuple[TaskDetail, ...]:
        """``GET /runs/{id}`` with its task details; see `Detailing.read_tasks`."""
        return tasks_of(_Api(exchange).get(f"/runs/{quote(run)}"))

    def clean(self, run: str, how: Cleanup, exchange: Exchange) -> None:
        """End, archive or delete a run; see `Cleaning.clean`."""
        path = f"{_API}/runs/{quote(run)}"
        request = HttpRequest("DELETE", path) if how is Cleanup.DELETE else HttpRequest("POST", f"{path}:{how}")
        answer = exchange(request)
        if answer.status // 100 == 2 or answer.status == _NOT_FOUND:
            return
        told = error_text(answer)
        if how is not Cleanup.TERMINATE or _NOT_GOING not in told:
            raise RejectedError(answer.status, told)

    def _body_template(self) -> dict[str, Any]:
        options = self._options
        body: dict[str, Any] = {
            "experiment_id": options.get("experiment_id", ""),
            "pipeline_version_reference": {
                "pipeline_id": options.get("pipeline_id", ""),
                "pipeline_version_id": options.get("version_id", ""),
            },
        }
        if options.get("service_account"):
            body["service_account"] = options["service_account"]
        return body


class _Api:
    """Calls of the set-up and the listing: JSON in, JSON out, every error named."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def get(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        given = urlencode({name: value for name, value in (query or {}).items() if value})
        return self.call(HttpRequest("GET", f"{_API}{path}" + (f"?{given}" if given else "")))

    def post(self, path: str, body: Mapping[str, object]) -> dict[str, Any]:
        return self.call(HttpRequest("POST", f"{_API}{path}", orjson.dumps(body), _JSON))

    def call(self, request: HttpRequest) -> dict[str, Any]:
        answer = self._exchange(request)
        where = f"{request.method} {request.path.partition('?')[0]}"
        if answer.status in {401, 403}:
            raise TargetUnreachableError(
                f"{where} is refused: {answer.status} {error_text(answer)}",
                "give a bearer token with --token-file or the environment variable PIPESWARM_TOKEN",
            )
        if answer.status // 100 == 3:
            raise TargetUnreachableError(
                f"{where} answered {answer.status} and sends us to {answer.headers.get('location', 'nowhere')}",
                "where that is a login page: give a bearer token with --token-file; else it may be the right --host",
            )
        if answer.status == 404 and "/pipelines/" in request.path and _is_json(answer):
            raise ConfigError(f"{where}: {error_text(answer)}", "look up --pipeline-id and --version-id in the KFP UI")
        if answer.status // 100 != 2:
            raise _HttpError(where, answer)
        if not _is_json(answer):
            raise TargetUnreachableError(
                f"{where} answered {error_text(answer)} where KFP answers JSON",
                "is --host the KFP API (often https://…/pipeline), and not a login page or another service?",
            )
        parsed: dict[str, Any] = orjson.loads(answer.body)
        return parsed


class _HttpError(TargetUnreachableError):
    def __init__(self, where: str, answer: HttpAnswer) -> None:
        super().__init__(
            f"{where} answered {answer.status} {error_text(answer)}",
            "is --host the address of a KFP v2beta1 API, and is it healthy?",
        )
        self.status = answer.status


def _is_json(answer: HttpAnswer) -> bool:
    try:
        return isinstance(orjson.loads(answer.body), dict)
    except ValueError:
        return False


def error_text(answer: HttpAnswer) -> str:
    """What an answer says of its error: the message of the API's body, or what kind of page it is instead."""
    try:
        parsed = orjson.loads(answer.body)
        text = str(parsed.get("message") or parsed.get("error") or parsed)
    except (ValueError, AttributeError):
        start = answer.body[:200].lstrip().lower()
        if start.startswith((b"<!doctype", b"<html")):
            return "an HTML page"
        text = answer.body[:_MOST_ERROR_TEXT].decode(errors="replace").strip() or "nothing"
    return text[:_MOST_ERROR_TEXT]


def _equals(name: str) -> str:
    return json.dumps({"predicates": [{"operation": "EQUALS", "key": "display_name", "string_value": name}]})


def _created_since(at: int) -> str:
    stamp = datetime.fromtimestamp(at // 10**9, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return json.dumps(
        {"predicates": [{"operation": "GREATER_THAN_EQUALS", "key": "created_at", "timestamp_value": stamp}]}
    )


def _experiment(api: _Api, name: str, namespace: str) -> str:
    """The experiment's id; created if absent. Another may create it in between, which the server answers with 409."""
    query = {"filter": _equals(name), "namespace": namespace}
    found = api.get("/experiments", query).get("experiments")
    if not found:
        body = {"display_name": name} | ({"namespace": namespace} if namespace else {})
        try:
            found = [api.post("/experiments", body)]
        except _HttpError as error:
            if error.status != _ALREADY_EXISTS:
                raise
            found = api.get("/experiments", query)["experiments"]
    return str(found[0]["experiment_id"])


def _uploaded(api: _Api, name: str, namespace: str, package: bytes) -> str:
    """The id of the pipeline called `name`, which says its content's digest; uploaded if absent."""
    query = {"filter": _equals(name), "namespace": namespace}
    found = api.get("/pipelines", query).get("pipelines")
    if found:
        return str(found[0]["pipeline_id"])
    boundary = secrets.token_hex(16)
    body = b"".join(
        (
            f"--{boundary}\r\n".encode(),
            b'Content-Disposition: form-data; name="uploadfile"; filename="pipeline.yaml"\r\n',
            b"Content-Type: application/yaml\r\n\r\n",
            package,
            f"\r\n--{boundary}--\r\n".encode(),
        )
    )
    named = urlencode({"name": name} | ({"namespace": namespace} if namespace else {}))
    request = HttpRequest(
        "POST",
        f"{_API}/pipelines/upload?{named}",
        body,
        {"content-type": f"multipart/form-data; boundary={boundary}"},
    )
    try:
        return str(api.call(request)["pipeline_id"])
    except _HttpError as error:
        if error.status != _ALREADY_EXISTS:
            raise
        return str(
            api.get("/pipelines", {"filter": _equals(name), "namespace": namespace})["pipelines"][0]["pipeline_id"]
        )


def _spec(version: Mapping[str, Any]) -> Mapping[str, Any]:
    """The IR of a version; with a platform spec beside it, it lies one level deeper."""
    spec: Mapping[str, Any] = version.get("pipeline_spec") or {}
    return spec.get("pipeline_spec") or spec


def _latest_version(api: _Api, pipeline: str) -> str:
    query = {"sort_by": "created_at desc", "page_size": "1"}
    versions = api.get(f"/pipelines/{quote(pipeline)}/versions", query).get("pipeline_versions")
    if not versions:
        raise ConfigError(f"the pipeline {pipeline} has no version", "upload one, or give --pipeline FILE")
    return str(versions[0]["pipeline_version_id"])


def _listed(run: Mapping[str, Any]) -> ListedRun:
    state = str(run.get("state", "PENDING"))
    ended_at = instant(run.get("finished_at"))
    return ListedRun(
        id=str(run["run_id"]),
        name=str(run.get("display_name", "")),
        state=state,
        created_at=instant(run.get("created_at")) or 0,
        ended_at=ended_at if state in _OVER else None,
        error=str((run.get("error") or {}).get("message", "")),
        said_at=_said(run, state) if state in _OVER else None,
    )


def _said(run: Mapping[str, Any], state: str) -> int | None:
    """When the API server learned of a state: its history is stamped by the reports of the persistence agent.

    A run that was tried again has come to the same state before; the last time counts.
    """
    stamps = [each.get("update_time") for each in run.get("state_history") or () if each.get("state") == state]
    return instant(stamps[-1]) if stamps else None
