"""Kubeflow Pipelines, REST API v2beta1.

The pipeline is uploaded once, named by the digest of its content, and runs are started by version reference: about
300 bytes and one request per run, whatever the pipeline's size.
"""

import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson

from harness.model.errors import ConfigError, PipeswarmError
from harness.model.http import Exchange, HttpRequest
from harness.model.options import Option
from harness.model.plan import Plan
from harness.model.scenario import Scenario
from harness.model.units import timestamp
from harness.prepare.options import parse_settings
from harness.targets.answers import JSON
from harness.targets.kfp.api import ROOT, Api, HttpError, error_text
from harness.targets.kfp.listing import TEST_MARK, Place, listed, merged, next_tokens, pack, unpack
from harness.targets.kfp.pipeline import inputs_of, read_pipeline, without_values
from harness.targets.kfp.task_nodes import tasks_of
from harness.targets.scenarios import Input
from harness.targets.target import Cleanup, ListedRun, Prepared, RejectedError, RunPage, SetUp, TaskDetail

__all__ = [
    "DEFAULTS", "EXAMPLE", "FILE_VARIABLES", "HOST_VARIABLE", "OBSERVED_BY", "OPTIONS", "KfpTarget", "from_plan",
    "prepare", "without_values",
]  # fmt: skip

_TENANT_NAMESPACE = Option(
    "tenant-namespace", "",
    "namespace of a tenant: it gets an experiment, and the runs whose scenario names this tenant; repeatable",
    repeatable=True,
)  # fmt: skip
OPTIONS = (
    Option("pipeline", "", "compiled pipeline (IR YAML); uploaded once, then submitted by version", file="yaml"),
    Option(
        "prepare",
        "",
        "changes of the pipeline's steps, as pipeswarm prepare makes them: spot=aks,retries=5",
        parse_settings,
    ),
    Option("pipeline-id", "", "id of an uploaded pipeline, instead of --pipeline"),
    Option("version-id", "", "id of its version (default: the newest)"),
    Option("experiment", "pipeswarm", "experiment of the runs; created if absent"),
    _TENANT_NAMESPACE,
    Option("service-account", "", "service account of the runs' pods"),
    Option("caching", "off", "off: execute every task · keep: allow cached results", choices=("off", "keep")),
)
OBSERVED_BY = ("experiment_id", "tenants")
DEFAULTS = {"simulate": "demo"}
HOST_VARIABLE = "KF_PIPELINES_ENDPOINT"
FILE_VARIABLES = {"token-file": "KF_PIPELINES_SA_TOKEN_PATH", "ca-file": "KF_PIPELINES_SSL_SA_CERTS"}
# What the simulated platform runs when no pipeline is given: compiled from examples/training.py.
EXAMPLE = Path(__file__).parent.with_name("training.yaml")

_LONGEST_NAME = 100  # of a pipeline, without its digest; KFP's database takes 127 characters
_PAGE = 200  # the server's maximum
_ALREADY_EXISTS = 409
_NOT_FOUND = 404
# The server's message, with status 400, when a run to terminate has ended already.
_ALREADY_ENDED = "Row not found"


def prepare(texts: Mapping[str, str], *, simulated: bool) -> Prepared:
    """Read the pipeline and check the options; see `Platform.prepare`."""
    options = {
        "experiment": texts["experiment"] or "pipeswarm",
        "namespace": texts["namespace"],
        "service_account": texts["service-account"],
    }
    tenants = _TENANT_NAMESPACE.read(texts["tenant-namespace"])
    if tenants and texts["namespace"]:
        raise ConfigError("--namespace and --tenant-namespace exclude each other", "give one of them")
    if tenants:
        options["tenants"] = ";".join(tenants)
    if texts["pipeline"] and texts["pipeline-id"]:
        raise ConfigError("--pipeline and --pipeline-id exclude each other", "give one of them")
    if texts["pipeline-id"]:
        if texts["prepare"]:
            raise ConfigError(
                "--prepare changes a pipeline before its upload", "give --pipeline FILE, not --pipeline-id"
            )
        options |= {"pipeline_id": texts["pipeline-id"], "version_id": texts["version-id"]}
        return Prepared(options, texts["pipeline-id"])
    if not texts["pipeline"] and not simulated:
        raise ConfigError("no pipeline to run", "give --pipeline FILE (compiled IR) or --pipeline-id ID")
    path = Path(texts["pipeline"]) if texts["pipeline"] else EXAMPLE
    changes = parse_settings(texts["prepare"])
    pipeline = read_pipeline(path, changes, keep_caching=texts["caching"] == "keep")
    # Kubernetes-native installations of KFP make an object of this name, and of the version, which has the same.
    plain = re.sub(r"[^a-z0-9-]+", "-", pipeline.name.lower())[:_LONGEST_NAME].strip("-") or "pipeline"
    options["pipeline_name"] = f"{plain}-{pipeline.digest[:12]}"
    original = pipeline.original if changes else None
    return Prepared(options, pipeline.name, pipeline.inputs, pipeline.package, original=original)


def from_plan(plan: Plan, package: bytes | None = None) -> "KfpTarget":
    """The target of a plan; `target_options` hold the checked options and the ids that `set_up` found."""
    options = {name: str(value) for name, value in plan.target_options.items()}
    return KfpTarget(options, since=plan.runs_since, package=package, test=plan.id)


class KfpTarget:
    """One KFP installation.

    `options`: experiment, namespace, service_account, pipeline_id, version_id; tenants, the namespaces of tenants;
    pipeline_name when `package` (compiled IR) is to be uploaded; after `set_up` also experiment_id, and the tenants'
    places. Runs created before `since` (UTC ns) belong to other tests in the same experiment and are not listed. `test`
    is the plan's id, which runs carry in their description: those of other tests are listed without their names, since
    tests that repeat scenarios repeat names.
    """

    submits_ahead = True

    def __init__(
        self, options: Mapping[str, str], since: int = 0, package: bytes | None = None, test: str = ""
    ) -> None:
        self._options = options
        self._package = package
        self._since = since
        self._mark = f"{TEST_MARK}{test}" if test else ""
        only = Place(*(options.get(name, "") for name in ("experiment_id", "pipeline_id", "version_id")))
        namespaces = options.get("tenants") or options.get("namespace", "")
        self._places = unpack(options.get("places", "")) or dict.fromkeys(namespaces.split(";"), only)
        own = options.get("pipeline_name", "")
        self._names = {place.pipeline_id: own or place.pipeline_id for place in self._places.values()}
        self._templates = {tenant: self._body_template(place) for tenant, place in self._places.items()}
        self._template = next(iter(self._templates.values()))  # of runs without tenants

    def set_up(self, exchange: Exchange) -> SetUp:
        """Find or create the experiment and the pipeline version, in each namespace; see `Target.set_up`."""
        api = Api(exchange)
        tenants = tuple(filter(None, self._options.get("tenants", "").split(";")))
        release = api.healthz(self._options.get("namespace", ""), tenants)
        found = {name: self._set_up_in(api, name) for name in tenants or (self._options.get("namespace", ""),)}
        place, inputs = next(iter(found.values()))
        places = {"places": pack({name: each for name, (each, _) in found.items()})} if tenants else {}
        return SetUp(place._asdict() | places, inputs, {"kfp": release} if release else {}, tenants)

    def _set_up_in(self, api: Api, namespace: str) -> tuple[Place, tuple[Input, ...]]:
        experiment = _experiment(api, self._options["experiment"], namespace)
        if self._package is not None:
            pipeline = _uploaded(api, self._options["pipeline_name"], namespace, self._package)
            version = _latest_version(api, pipeline)
        else:
            pipeline = self._options["pipeline_id"]
            version = self._options.get("version_id", "") or _latest_version(api, pipeline)
        found = api.get(f"/pipelines/{quote(pipeline)}/versions/{quote(version)}")
        inputs = inputs_of(f"version {version} of pipeline {pipeline}", _spec(found))
        return Place(experiment, pipeline, version), inputs

    def versions(self, exchange: Exchange) -> Mapping[str, str]:
        """See `NamesVersions.versions`."""
        release = Api(exchange).healthz(self._options.get("namespace", ""))
        return {"kfp": release} if release else {}

    def submit(self, scenario: Scenario, exchange: Exchange) -> str:
        """``POST /runs`` by version reference; see `Target.submit`."""
        template = self._templates.get(scenario.tenant, self._template)
        body = template | {"display_name": scenario.run_name, "runtime_config": {"parameters": scenario.values}}
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

        With several tenants one page of each is asked for. A page token carries the order and the filter: KFP 2.17
        rejects a timestamp filter repeated beside it.
        """
        if len(self._places) == 1:
            ((namespace, place),) = self._places.items()
            return RunPage(*self._page(exchange, place.experiment_id, namespace, page))
        asked = next_tokens(page, self._places)
        pages = {
            name: self._page(exchange, self._places[name].experiment_id, name, token) for name, token in asked.items()
        }
        return RunPage(*merged(pages))

    def _page(
        self, exchange: Exchange, experiment: str, namespace: str, token: str
    ) -> tuple[tuple[ListedRun, ...], str]:
        """The runs of one page of an experiment, and the token of the next one."""
        query = {"experiment_id": experiment, "namespace": namespace, "page_size": str(_PAGE)}
        if token:
            query["page_token"] = token
        else:
            query["sort_by"] = "created_at desc"
            query["filter"] = _created_since(self._since) if self._since > 0 else ""
        listing = Api(exchange).get("/runs", query)
        name_of = partial(self._name_of, exchange)
        runs = tuple(listed(run, self._mark, namespace, name_of) for run in listing.get("runs", ()))
        return runs, str(listing.get("next_page_token", ""))

    def _name_of(self, exchange: Exchange, pipeline: str) -> str:
        """The name of an uploaded pipeline, requested once; its id if the server does not return one."""
        if pipeline not in self._names:
            try:
                found = Api(exchange).get(f"/pipelines/{quote(pipeline)}")
            except PipeswarmError:  # it was deleted, or is not ours to read
                found = {}
            self._names[pipeline] = str(found.get("display_name") or pipeline)
        return self._names[pipeline]

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

    def _body_template(self, place: Place) -> dict[str, Any]:
        """What is the same in all submissions to a place."""
        body: dict[str, Any] = {
            "experiment_id": place.experiment_id,
            "pipeline_version_reference": {
                "pipeline_id": place.pipeline_id, "pipeline_version_id": place.version_id,
            },
        }  # fmt: skip
        if self._mark:
            body["description"] = self._mark
        if account := self._options.get("service_account"):
            body["service_account"] = account
        return body


def _filter(operation: str, key: str, **value: str) -> str:
    return json.dumps({"predicates": [{"operation": operation, "key": key, **value}]})


def _created_since(at: int) -> str:
    return _filter("GREATER_THAN_EQUALS", "created_at", timestamp_value=timestamp(at // 10**9))


def _found_or_made(
    api: Api, collection: str, name: str, namespace: str, make: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    """The first object of this name, or a new one. Another client may make it in between: the server answers 409."""
    query = {"filter": _filter("EQUALS", "display_name", string_value=name), "namespace": namespace}
    found = api.get(f"/{collection}", query).get(collection)
    if not found:
        try:
            return make()
        except HttpError as error:
            if error.status != _ALREADY_EXISTS:
                raise
            found = api.get(f"/{collection}", query)[collection]
    return dict(found[0])


def _experiment(api: Api, name: str, namespace: str) -> str:
    """The experiment's id; created if absent."""
    body = {"display_name": name} | ({"namespace": namespace} if namespace else {})
    found = _found_or_made(api, "experiments", name, namespace, lambda: api.post("/experiments", body))
    return str(found["experiment_id"])


def _uploaded(api: Api, name: str, namespace: str, package: bytes) -> str:
    """The id of the pipeline called `name`, which contains its content's digest; uploaded if absent."""
    query = {"name": name, "namespace": namespace}
    found = _found_or_made(api, "pipelines", name, namespace, lambda: api.upload(package, query))
    return str(found["pipeline_id"])


def _spec(version: Mapping[str, Any]) -> Mapping[str, Any]:
    """The IR of a version; together with a platform spec, it is nested one level deeper."""
    spec: Mapping[str, Any] = version.get("pipeline_spec") or {}
    return spec.get("pipeline_spec") or spec


def _latest_version(api: Api, pipeline: str) -> str:
    query = {"sort_by": "created_at desc", "page_size": "1"}
    versions = api.get(f"/pipelines/{quote(pipeline)}/versions", query).get("pipeline_versions")
    if not versions:
        raise ConfigError(f"the pipeline {pipeline} has no version", "upload one, or give --pipeline FILE")
    return str(versions[0]["pipeline_version_id"])
