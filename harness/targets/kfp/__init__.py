"""Kubeflow Pipelines, REST API v2beta1.

The pipeline is uploaded once, named by the digest of its content, and runs are started by version reference: about
300 bytes and one request per run, whatever the pipeline's size.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson

from harness.model.errors import ConfigError
from harness.model.http import Exchange, HttpRequest
from harness.model.options import Option
from harness.model.phases import CANCELED, FAILED, SKIPPED, SUCCEEDED
from harness.model.plan import Plan
from harness.model.scenario import Scenario
from harness.targets.kfp.api import JSON, ROOT, Api, HttpError, error_text
from harness.targets.kfp.pipeline import inputs_of, read_pipeline, without_values
from harness.targets.kfp.tasks import instant, tasks_of
from harness.targets.target import Cleanup, ListedRun, Prepared, RejectedError, RunPage, SetUp, TaskDetail

__all__ = [
    "DEFAULTS", "EXAMPLE", "HOST_VARIABLE", "OPTIONS", "KfpTarget", "from_plan", "prepare", "without_values",
]  # fmt: skip

OPTIONS = (
    Option("pipeline", "", "compiled pipeline (IR YAML); uploaded once, then submitted by version", file="yaml"),
    Option("pipeline-id", "", "id of an uploaded pipeline, instead of --pipeline"),
    Option("version-id", "", "id of its version (default: the newest)"),
    Option("experiment", "pipeswarm", "experiment of the runs; created if absent"),
    Option("service-account", "", "service account of the runs' pods"),
    Option("caching", "off", "off: execute every task · keep: allow cached results", choices=("off", "keep")),
)
DEFAULTS = {"simulate": "demo"}
HOST_VARIABLE = "KF_PIPELINES_ENDPOINT"
# What the simulated platform runs when no pipeline is given: compiled from examples/training.py.
EXAMPLE = Path(__file__).parent.with_name("training.yaml")

_PAGE = 200  # the server's maximum
_ALREADY_EXISTS = 409
_NOT_FOUND = 404
# The server's message, with status 400, when a run to terminate has ended already.
_ALREADY_ENDED = "Row not found"
_TERMINAL = frozenset({SUCCEEDED, FAILED, CANCELED, SKIPPED})
_CANCELING = "CANCELING"
_UNKNOWN = "RUNTIME_STATE_UNSPECIFIED"
_MAX_SKEW_NS = 120 * 10**9  # the platform's clock may be behind ours


def prepare(texts: Mapping[str, str], *, simulated: bool) -> Prepared:
    """Read the pipeline and check the options; see `Platform.prepare`."""
    options = {
        "experiment": texts["experiment"] or "pipeswarm",
        "namespace": texts["namespace"],
        "service_account": texts["service-account"],
    }
    if texts["pipeline"] and texts["pipeline-id"]:
        raise ConfigError("--pipeline and --pipeline-id exclude each other", "give one of them")
    if texts["pipeline-id"]:
        options |= {"pipeline_id": texts["pipeline-id"], "version_id": texts["version-id"]}
        return Prepared(options, texts["pipeline-id"])
    if not texts["pipeline"] and not simulated:
        raise ConfigError("no pipeline to run", "give --pipeline FILE (compiled IR) or --pipeline-id ID")
    path = Path(texts["pipeline"]) if texts["pipeline"] else EXAMPLE
    pipeline = read_pipeline(path, keep_caching=texts["caching"] == "keep")
    options["pipeline_name"] = f"{pipeline.name}-{pipeline.digest[:12]}"
    return Prepared(options, pipeline.name, pipeline.inputs, pipeline.package)


def from_plan(plan: Plan, package: bytes | None = None) -> "KfpTarget":
    """The target of a plan; `target_options` hold the checked options and the ids that `set_up` found."""
    options = {name: str(value) for name, value in plan.target_options.items()}
    return KfpTarget(options, since=plan.started_at, package=package)


class KfpTarget:
    """One KFP installation.

    `options`: experiment, namespace, service_account, pipeline_id, version_id; pipeline_name when `package` (compiled
    IR) is to be uploaded; after `set_up` also experiment_id. Runs created before `since` (UTC ns) belong to other tests
    in the same experiment and are not listed.
    """

    def __init__(self, options: Mapping[str, str], since: int = 0, package: bytes | None = None) -> None:
        self._options = options
        self._package = package
        self._since = since
        self._template = self._body_template()

    def set_up(self, exchange: Exchange) -> SetUp:
        """Find or create the experiment and the pipeline version; see `Target.set_up`."""
        api = Api(exchange)
        namespace = self._options.get("namespace", "")
        api.healthz(namespace)
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
        answer = exchange(HttpRequest("POST", f"{ROOT}/runs", orjson.dumps(body), JSON))
        if answer.status // 100 != 2:
            raise RejectedError(answer.status, error_text(answer))
        try:
            run = orjson.loads(answer.body)["run_id"]
        except (ValueError, KeyError, TypeError):
            run = None
        if not isinstance(run, str) or not run:
            raise RejectedError(answer.status, f"not a run: {error_text(answer)}")
        return run

    def list_runs(self, exchange: Exchange, page: str = "") -> RunPage:
        """``GET /runs`` of the experiment, 200 per page, newest first; see `ListsRuns.list_runs`.

        A page token carries the order and the filter: KFP 2.17 rejects a timestamp filter repeated beside it.
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
            query["filter"] = _created_since(self._since - _MAX_SKEW_NS) if self._since > _MAX_SKEW_NS else ""
        listing = Api(exchange).get("/runs", query)
        runs = tuple(_listed(run) for run in listing.get("runs", ()))
        return RunPage(runs, listing.get("next_page_token", ""))

    def read_tasks(self, exchange: Exchange, run: str) -> tuple[TaskDetail, ...]:
        """``GET /runs/{id}`` with its task details; see `DescribesTasks.read_tasks`."""
        return tasks_of(Api(exchange).get(f"/runs/{quote(run)}"))

    def clean(self, run: str, how: Cleanup, exchange: Exchange) -> None:
        """Terminate, archive or delete a run; see `CleansUp.clean`."""
        path = f"{ROOT}/runs/{quote(run)}"
        request = HttpRequest("DELETE", path) if how is Cleanup.DELETE else HttpRequest("POST", f"{path}:{how}")
        answer = exchange(request)
        if answer.status // 100 == 2 or answer.status == _NOT_FOUND:
            return
        message = error_text(answer)
        if how is not Cleanup.TERMINATE or _ALREADY_ENDED not in message:
            raise RejectedError(answer.status, message)

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


def _filter(operation: str, key: str, **value: str) -> str:
    return json.dumps({"predicates": [{"operation": operation, "key": key, **value}]})


def _created_since(at: int) -> str:
    stamp = datetime.fromtimestamp(at // 10**9, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return _filter("GREATER_THAN_EQUALS", "created_at", timestamp_value=stamp)


def _by_name(name: str, namespace: str) -> dict[str, str]:
    return {"filter": _filter("EQUALS", "display_name", string_value=name), "namespace": namespace}


def _experiment(api: Api, name: str, namespace: str) -> str:
    """The experiment's id; created if absent. Another client may create it in between: the server answers 409."""
    query = _by_name(name, namespace)
    found = api.get("/experiments", query).get("experiments")
    if not found:
        body = {"display_name": name} | ({"namespace": namespace} if namespace else {})
        try:
            found = [api.post("/experiments", body)]
        except HttpError as error:
            if error.status != _ALREADY_EXISTS:
                raise
            found = api.get("/experiments", query)["experiments"]
    return str(found[0]["experiment_id"])


def _uploaded(api: Api, name: str, namespace: str, package: bytes) -> str:
    """The id of the pipeline called `name`, which contains its content's digest; uploaded if absent."""
    query = _by_name(name, namespace)
    found = api.get("/pipelines", query).get("pipelines")
    if not found:
        try:
            found = [api.upload(package, {"name": name, "namespace": namespace})]
        except HttpError as error:
            if error.status != _ALREADY_EXISTS:
                raise
            found = api.get("/pipelines", query)["pipelines"]
    return str(found[0]["pipeline_id"])


def _spec(version: Mapping[str, Any]) -> Mapping[str, Any]:
    """The IR of a version; with a platform spec beside it, it is nested one level deeper."""
    spec: Mapping[str, Any] = version.get("pipeline_spec") or {}
    return spec.get("pipeline_spec") or spec


def _latest_version(api: Api, pipeline: str) -> str:
    query = {"sort_by": "created_at desc", "page_size": "1"}
    versions = api.get(f"/pipelines/{quote(pipeline)}/versions", query).get("pipeline_versions")
    if not versions:
        raise ConfigError(f"the pipeline {pipeline} has no version", "upload one, or give --pipeline FILE")
    return str(versions[0]["pipeline_version_id"])


def _listed(run: Mapping[str, Any]) -> ListedRun:
    """A run whose state KFP does not know yet is PENDING: the first report has not come."""
    reported = str(run.get("state") or _UNKNOWN)
    ended = reported in _TERMINAL
    state = CANCELED if reported == FAILED and _was_terminated(run) else reported
    return ListedRun(
        id=str(run["run_id"]),
        name=str(run.get("display_name", "")),
        state="PENDING" if state == _UNKNOWN else state,
        created_at=instant(run.get("created_at")) or 0,
        ended_at=instant(run.get("finished_at")) if ended else None,
        error=str((run.get("error") or {}).get("message", "")),
        reported_at=_reported_at(run, reported) if ended else None,
    )


def _was_terminated(run: Mapping[str, Any]) -> bool:
    """Whether a FAILED run failed because it was terminated: CANCELING precedes its end.

    A retried run runs again after that; then its end is its own.
    """
    states = [str(each.get("state") or "") for each in run.get("state_history") or ()]
    return next((state for state in reversed(states) if state != FAILED), "") == _CANCELING


def _reported_at(run: Mapping[str, Any], state: str) -> int | None:
    """When the API server learned of a state: the persistence agent's reports timestamp the run's history.

    A retried run has reached the same state before; the last time counts.
    """
    reports = [each.get("update_time") for each in run.get("state_history") or () if each.get("state") == state]
    return instant(reports[-1]) if reports else None
