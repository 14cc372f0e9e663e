"""Argo Workflows: Workflow objects, created through the Kubernetes API or the Argo server.

A workflow is one run; its name is the run's id. Pipeswarm makes the name, so that a request which arrives twice creates
one workflow: Argo's ``generateName`` would create two.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import yaml

from harness.model.argo.manifest import GROUP_VERSION, RUN_NAME, spec_of, with_parameters
from harness.model.errors import ConfigError
from harness.model.http import Exchange, HttpRequest
from harness.model.options import Option
from harness.model.plan import Plan
from harness.model.scenario import Scenario
from harness.targets.answers import document, error_text
from harness.targets.argo.api import (
    KUBERNETES,
    Paths,
    controller_version,
    create_missing,
    demand_listing,
    find_api,
    read_template,
    try_out,
)
from harness.targets.argo.manifest import (
    NEEDED,
    TEST_LABEL,
    Reference,
    inputs_of,
    parse_reference,
    read_manifests,
    trial_values,
    without_values,
    workflow_name,
)
from harness.targets.argo.runs import COMPLETED, listed_run, tasks_of
from harness.targets.target import Cleanup, ListedRun, Prepared, RejectedError, SetUp, TaskDetail, Watched

__all__ = [
    "CLEANUPS", "DEFAULTS", "EXAMPLE", "HOST_VARIABLE", "INSECURE_VARIABLE", "NAMESPACE_VARIABLE", "OBSERVED_BY",
    "OPTIONS", "TOKEN_VARIABLE", "ArgoTarget", "from_plan", "prepare", "without_values",
]  # fmt: skip

OPTIONS = (
    Option("workflow", "", "manifest of a Workflow (YAML or JSON)", file="yaml"),
    Option(
        "with", "", "templates and ConfigMaps that the workflow needs; missing ones are created",
        repeatable=True, file="yaml",
    ),
    Option("from", "", "template in the cluster instead: workflowtemplate/NAME, clusterworkflowtemplate/NAME, …"),
    Option("service-account", "", "service account of the workflows' pods (default: the manifest's)"),
    Option(
        "shutdown", "terminate", "how --cleanup ends running workflows · terminate: at once · stop: exit handlers run",
        choices=("terminate", "stop"),
    ),
)  # fmt: skip
OBSERVED_BY = ("api",)
DEFAULTS = {"simulate": "demo", "platform-namespace": "argo; kubeflow"}
HOST_VARIABLE = "ARGO_SERVER"
TOKEN_VARIABLE = "ARGO_TOKEN"  # noqa: S105  # the variable's name
NAMESPACE_VARIABLE = "ARGO_NAMESPACE"
INSECURE_VARIABLE = "ARGO_INSECURE_SKIP_VERIFY"
CLEANUPS = (Cleanup.TERMINATE, Cleanup.DELETE)  # Argo archives by its own configuration
# What the simulated platform runs when no workflow is given.
EXAMPLE = Path(__file__).parent.with_name("workflow.yaml")

_BAD_REQUEST, _NOT_FOUND, _CONFLICT = 400, 404, 409
_ENDED_ALREADY = "completed workflow"  # the Argo server's message to a shutdown that comes too late


def prepare(texts: Mapping[str, str], *, simulated: bool) -> Prepared:
    """Read the manifest and check the options; see `Platform.prepare`."""
    if texts["workflow"] and texts["from"]:
        raise ConfigError("--workflow and --from exclude each other", "give one of them")
    options = {
        "namespace": texts["namespace"],
        "service_account": texts["service-account"],
        "shutdown": texts["shutdown"] or "terminate",
    }
    if texts["from"]:
        reference = parse_reference(texts["from"])
        return Prepared(options | {"from": f"{reference.kind}/{reference.name}"}, reference.name)
    if not texts["workflow"] and not simulated:
        raise ConfigError("no workflow to run", "give --workflow FILE, or --from workflowtemplate/NAME")
    path = Path(texts["workflow"]) if texts["workflow"] else EXAMPLE
    manifest, *objects = read_manifests(
        path, [Path(part.strip()) for part in texts.get("with", "").split(";") if part.strip()]
    )
    metadata, spec = manifest.get("metadata") or {}, spec_of(manifest)
    title = str(metadata.get("name") or metadata.get("generateName") or path.stem).rstrip("-")
    options["namespace"] = options["namespace"] or str(metadata.get("namespace") or "")
    kept = {key: metadata[key] for key in ("annotations", "labels") if metadata.get(key)}
    options["workflow"] = orjson.dumps({"metadata": kept, "spec": spec}).decode()
    if objects:
        options["objects"] = orjson.dumps(objects).decode()
    # Of several templates the package's readers could not tell which one runs.
    first = [{**manifest, "kind": "Workflow"}, manifest] if objects and manifest["kind"] in NEEDED else [manifest]
    package = yaml.dump_all([*first, *objects], Dumper=yaml.CSafeDumper, sort_keys=False).encode()
    refers = spec.get("workflowTemplateRef")
    templates = [spec_of(each) for each in objects if refers and each["metadata"].get("name") == refers.get("name")]
    inputs = None if refers and not templates else inputs_of(spec, *templates[:1])
    return Prepared(options, title, inputs, package, inferred_with="--from-workflow-template")


def from_plan(plan: Plan, package: bytes | None = None) -> "ArgoTarget":  # noqa: ARG001  # nothing is uploaded
    """The target of a plan; `target_options` hold the checked options and what `set_up` found."""
    options = {name: str(value) for name, value in plan.target_options.items()}
    return ArgoTarget(options, plan.id, plan.observer.platform_namespaces)


class ArgoTarget:
    """The workflows of one namespace.

    `options`: namespace, service_account, shutdown; from (KIND/NAME) or workflow (JSON: metadata and spec); after
    `set_up` also api ("kubernetes" or "server"), and the workflow. `test` is the plan's id, by which workflows of
    different tests are distinguished. `platform` are the namespaces where Argo's controller may run.
    """

    submits_ahead = True

    def __init__(self, options: Mapping[str, str], test: str = "", platform: tuple[str, ...] = ()) -> None:
        self._options = options
        self._test = test
        self._platform = platform
        self._paths = Paths(options.get("api") or KUBERNETES, options.get("namespace") or "default")
        self._workflow: dict[str, Any] = orjson.loads(options.get("workflow") or "{}")

    def set_up(self, exchange: Exchange) -> SetUp:
        """Find the API and the template, and have a first workflow checked; see `Target.set_up`."""
        api, version = find_api(exchange)
        self._paths = Paths(api, self._paths.namespace)
        create_missing(exchange, self._paths, orjson.loads(self._options.get("objects") or "[]"))
        if self._options.get("from"):
            self._workflow = self._from_template(exchange, parse_reference(self._options["from"]))
        specs = self._workflow["spec"], self._referred(exchange)
        try_out(exchange, self._paths, self._object("pipeswarm-trial", "", trial_values(*specs)))
        demand_listing(exchange, self._paths)
        found = {"api": self._paths.api, "namespace": self._paths.namespace}
        options = {**found, "workflow": orjson.dumps(self._workflow).decode()}
        return SetUp(options, inputs_of(*specs), self._versions(exchange, api, version))

    def versions(self, exchange: Exchange) -> Mapping[str, str]:
        """See `NamesVersions.versions`."""
        return self._versions(exchange, *find_api(exchange))

    def _versions(self, exchange: Exchange, api: str, version: str) -> Mapping[str, str]:
        """Argo's version; the Kubernetes API does not name it, but the controller's image does."""
        if api == KUBERNETES:
            version = controller_version(exchange, self._platform)
        return {"argo": version} if version else {}

    def submit(self, scenario: Scenario, exchange: Exchange) -> str:
        """One Workflow object under a name of our own; see `Target.submit`."""
        name = workflow_name(scenario.run_name)
        answer = exchange(self._paths.creation(self._object(name, scenario.run_name, scenario.values)))
        if answer.status == _CONFLICT:
            raise RejectedError(
                answer.status, f"a workflow {name} exists already, so this request arrived twice: {error_text(answer)}"
            )
        if answer.status // 100 != 2:
            raise RejectedError(answer.status, error_text(answer))
        if ((document(answer) or {}).get("metadata") or {}).get("name") != name:
            raise RejectedError(answer.status, f"not a workflow: {error_text(answer)}")
        return name

    def watched(self) -> Watched:
        """The workflows of this test; see `WatchesRuns.watched`."""
        labels = f"{TEST_LABEL}={self._test}" if self._test else ""
        return Watched(self._paths.workflows, labels, over=f"{COMPLETED}=true", stream=self._paths.stream)

    def read_run(self, found: Mapping[str, Any]) -> ListedRun:
        """See `WatchesRuns.read_run`."""
        return listed_run(found)

    def tasks_in(self, found: Mapping[str, Any]) -> tuple[TaskDetail, ...]:
        """See `WatchesRuns.tasks_in`."""
        return tasks_of(found)

    def clean(self, run: str, how: Cleanup, exchange: Exchange) -> None:
        """Terminate, stop or delete a workflow; see `CleansUp.clean`."""
        if how not in CLEANUPS:
            raise RejectedError(_BAD_REQUEST, f"Argo has no clean-up '{how}': it archives by its own configuration")
        if how is Cleanup.DELETE:
            request = HttpRequest("DELETE", self._paths.workflow(run))
        else:
            request = self._paths.shutdown(run, self._options.get("shutdown", "terminate").capitalize())
        answer = exchange(request)
        if answer.status // 100 == 2 or answer.status == _NOT_FOUND:
            return
        message = error_text(answer)
        if how is Cleanup.DELETE or _ENDED_ALREADY not in message:
            raise RejectedError(answer.status, message)

    def _object(self, name: str, run_name: str, values: Mapping[str, object]) -> dict[str, Any]:
        """The Workflow object of a run."""
        metadata = self._workflow.get("metadata") or {}
        spec = with_parameters(self._workflow["spec"], values)
        if self._options.get("service_account"):
            spec["serviceAccountName"] = self._options["service_account"]
        labels = {**(metadata.get("labels") or {}), **({TEST_LABEL: self._test} if self._test else {})}
        annotations = {**(metadata.get("annotations") or {}), **({RUN_NAME: run_name} if run_name else {})}
        about = {"name": name, "namespace": self._paths.namespace, "labels": labels, "annotations": annotations}
        return {
            "apiVersion": GROUP_VERSION,
            "kind": "Workflow",
            "metadata": {key: value for key, value in about.items() if value},
            "spec": spec,
        }

    def _from_template(self, exchange: Exchange, reference: Reference) -> dict[str, Any]:
        """What is created for ``--from``: a workflow that refers to the template; of a CronWorkflow, what it runs."""
        template = read_template(exchange, self._paths, reference.kind, reference.name)
        if reference.kind == "CronWorkflow":
            return {"spec": spec_of({**template, "kind": reference.kind})}
        of_cluster = {"clusterScope": True} if reference.kind == "ClusterWorkflowTemplate" else {}
        return {"spec": {"workflowTemplateRef": {"name": reference.name, **of_cluster}}}

    def _referred(self, exchange: Exchange) -> Mapping[str, Any]:
        """The specification of the template that the workflow refers to; empty without one."""
        reference = self._workflow["spec"].get("workflowTemplateRef")
        if not reference:
            return {}
        kind = "ClusterWorkflowTemplate" if reference.get("clusterScope") else "WorkflowTemplate"
        return spec_of({**read_template(exchange, self._paths, kind, str(reference["name"])), "kind": kind})
