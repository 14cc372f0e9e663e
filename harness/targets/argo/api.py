"""Calls to Argo Workflows, through the Kubernetes API or the Argo server: paths, bodies, and every error explained.

Source of the paths: https://argo-workflows.readthedocs.io/en/latest/swagger/ and the Kubernetes API's conventions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import orjson

from harness.model.argo.manifest import GROUP_VERSION
from harness.model.errors import ConfigError, TargetUnreachableError
from harness.model.http import LONG_ANSWER, Exchange, HttpAnswer, HttpRequest
from harness.targets.answers import JSON, demand_access, document, error_text, hint_for, refusal_hint
from harness.targets.kube_service import is_unserved

MERGE_PATCH = {"content-type": "application/merge-patch+json"}
KUBERNETES, SERVER = "kubernetes", "server"
_VERSION = "/api/v1/version"  # of an Argo server
_CONTROLLER = "workflow-controller"  # the Deployment in Argo's and KFP's manifests; a Helm chart puts its name in front
_LONGEST_VERSION = 100
_ROOT = f"/apis/{GROUP_VERSION}"
_HOST_HINT = (
    "give --host kubeconfig for the cluster of your kubeconfig, or the address of a Kubernetes API or of an Argo server"
)
_FOUND, _CREATED, _UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND, _CONFLICT = 200, 201, 401, 403, 404, 409
_SIMULATED = "the simulated platform"
# The plurals of the kinds that --from names, in either API.
_PLURALS = {
    "WorkflowTemplate": ("workflowtemplates", "workflow-templates"),
    "ClusterWorkflowTemplate": ("clusterworkflowtemplates", "cluster-workflow-templates"),
    "CronWorkflow": ("cronworkflows", "cron-workflows"),
}


@dataclass(frozen=True, slots=True)
class Paths:
    """Where the workflows of a namespace are. `api` is "kubernetes" or "server"."""

    api: str
    namespace: str

    @property
    def workflows(self) -> str:
        """The collection of workflows."""
        place = quote(self.namespace)
        return f"{_ROOT}/namespaces/{place}/workflows" if self.api == KUBERNETES else f"/api/v1/workflows/{place}"

    @property
    def stream(self) -> str:
        """The changes of workflows; "" where the collection serves them."""
        return "" if self.api == KUBERNETES else f"/api/v1/workflow-events/{quote(self.namespace)}"

    def workflow(self, name: str) -> str:
        """One workflow."""
        return f"{self.workflows}/{quote(name)}"

    def templates(self, kind: str) -> str:
        """The collection of the templates of a kind."""
        of_cluster, place = kind == "ClusterWorkflowTemplate", quote(self.namespace)
        of_kubernetes, of_server = _PLURALS[kind]
        if self.api == KUBERNETES:
            return f"{_ROOT}/{of_kubernetes}" if of_cluster else f"{_ROOT}/namespaces/{place}/{of_kubernetes}"
        return f"/api/v1/{of_server}" if of_cluster else f"/api/v1/{of_server}/{place}"

    def creation(self, workflow: Mapping[str, Any]) -> HttpRequest:
        """The request that creates a workflow."""
        body = workflow if self.api == KUBERNETES else {"namespace": self.namespace, "workflow": workflow}
        return HttpRequest("POST", self.workflows, orjson.dumps(body), JSON)

    def trial(self, workflow: Mapping[str, Any]) -> HttpRequest:
        """The request that has a workflow checked and not created."""
        if self.api == KUBERNETES:
            return HttpRequest("POST", f"{self.workflows}?dryRun=All", orjson.dumps(workflow), JSON)
        body = {"namespace": self.namespace, "workflow": workflow}
        return HttpRequest("POST", f"{self.workflows}/lint", orjson.dumps(body), JSON)

    def object(self, manifest: Mapping[str, Any]) -> HttpRequest:
        """The request that creates a template or a ConfigMap.

        Raises:
            ConfigError: an Argo server creates no ConfigMaps.
        """
        kind = str(manifest["kind"])
        if kind != "ConfigMap":
            body = manifest if self.api == KUBERNETES else {"namespace": self.namespace, "template": manifest}
            return HttpRequest("POST", self.templates(kind), orjson.dumps(body), JSON)
        if self.api != KUBERNETES:
            name = manifest["metadata"]["name"]
            raise ConfigError(f"an Argo server can't create the ConfigMap {name}", "create it with kubectl apply")
        path = f"/api/v1/namespaces/{quote(self.namespace)}/configmaps"
        return HttpRequest("POST", path, orjson.dumps(manifest), JSON)

    def shutdown(self, name: str, how: str) -> HttpRequest:
        """The request that ends a running workflow; `how` is Terminate or Stop."""
        if self.api == KUBERNETES:
            return HttpRequest("PATCH", self.workflow(name), orjson.dumps({"spec": {"shutdown": how}}), MERGE_PATCH)
        body = {"namespace": self.namespace, "name": name}
        return HttpRequest("PUT", f"{self.workflow(name)}/{how.lower()}", orjson.dumps(body), JSON)


def find_api(exchange: Exchange) -> tuple[str, str]:
    """Which API the host serves, "kubernetes" or "server", and the version that it names; "" where it names none.

    Raises:
        TargetUnreachableError: neither, or it refuses to say.
    """
    answer = exchange(HttpRequest("GET", _ROOT))
    _refuse_strangers(answer, f"GET {_ROOT}")
    found = document(answer) or {}
    if answer.status == _FOUND and "resources" in found:
        return KUBERNETES, ""
    if found.get("kind") == "Status" and answer.status == _NOT_FOUND and not is_unserved(error_text(answer)):
        raise TargetUnreachableError(
            "this Kubernetes cluster has no Argo Workflows: it does not serve argoproj.io/v1alpha1", _HOST_HINT
        )
    answer = exchange(HttpRequest("GET", _VERSION))
    _refuse_strangers(answer, f"GET {_VERSION}")
    if answer.status == _FOUND and "version" in (found := document(answer) or {}):
        return SERVER, str(found["version"] or "")[:_LONGEST_VERSION]
    raise TargetUnreachableError(
        f"GET {_VERSION} answered {answer.status} {error_text(answer)}: this is neither a Kubernetes API nor "
        "an Argo server",
        hint_for(error_text(answer), _HOST_HINT),
    )


def controller_version(exchange: Exchange, namespaces: tuple[str, ...]) -> str:
    """The tag of the workflow controller's image, else its digest; "" where its Deployment may not be read."""
    for namespace in namespaces:
        path = f"/apis/apps/v1/namespaces/{quote(namespace)}/deployments"
        answer = exchange(HttpRequest("GET", path, most_bytes=LONG_ANSWER))
        if answer.status == _FOUND:
            for image in _controller_images(document(answer) or {}):
                named, _, digest = image.rpartition("/")[2].partition("@")
                if version := named.partition(":")[2] or digest:
                    return version[:_LONGEST_VERSION]
    return ""


def _controller_images(deployments: Mapping[str, Any]) -> list[str]:
    try:
        return [
            str(container["image"])
            for item in deployments["items"]
            if str(item["metadata"]["name"]).endswith(_CONTROLLER)
            for container in item["spec"]["template"]["spec"]["containers"]
        ]
    except (KeyError, TypeError):  # not the answer of a Kubernetes API
        return []


def _refuse_strangers(answer: HttpAnswer, where: str) -> None:
    demand_access(answer, where, error_text, _access_hint)


def _access_hint(said: str) -> str:
    hint = refusal_hint(said, "PIPESWARM_TOKEN or ARGO_TOKEN")
    return f"{hint}; for a cluster of your kubeconfig give --host kubeconfig"


def read_template(exchange: Exchange, paths: Paths, kind: str, name: str) -> dict[str, Any]:
    """A template by kind and name.

    Raises:
        ConfigError: there is none, or it may not be read.
        TargetUnreachableError: the answer is not that of the API.
    """
    path = f"{paths.templates(kind)}/{quote(name)}"
    answer = exchange(HttpRequest("GET", path))
    place = "" if kind == "ClusterWorkflowTemplate" else f" in the namespace {paths.namespace}"
    if answer.status == _NOT_FOUND:
        raise ConfigError(f"there is no {kind} {name}{place}", _known(exchange, paths, kind))
    if answer.status == _FORBIDDEN:
        raise ConfigError(f"{kind} {name} may not be read: {error_text(answer)}", _grant("verb get", _PLURALS[kind][0]))
    return demand(answer, f"GET {path}")


def _known(exchange: Exchange, paths: Paths, kind: str) -> str:
    answer = exchange(HttpRequest("GET", paths.templates(kind), most_bytes=LONG_ANSWER))
    items = (document(answer) or {}).get("items") or ()
    names = ", ".join(sorted(str(item["metadata"]["name"]) for item in items))
    return f"there are: {names}" if names else f"create it with kubectl apply, or look it up: kubectl get {kind}"


def create_missing(exchange: Exchange, paths: Paths, objects: Sequence[Mapping[str, Any]]) -> None:
    """Create the templates and ConfigMaps that workflows need; those that exist stay as they are.

    Raises:
        ConfigError: one is refused.
    """
    for each in objects:
        request = paths.object(each)
        answer = exchange(request)
        if answer.status // 100 != 2 and answer.status != _CONFLICT:
            what = f"{each['kind']} {each['metadata']['name']}"
            raise ConfigError(
                f"{what} can't be created: {error_text(answer)}", "create it yourself, or leave --with out"
            )


def try_out(exchange: Exchange, paths: Paths, workflow: Mapping[str, Any]) -> None:
    """Have a workflow checked as the platform would check it at its creation; nothing is created.

    Raises:
        ConfigError: the account may not create workflows, or this one is refused.
        TargetUnreachableError: the answer is not that of the API.
    """
    request = paths.trial(workflow)
    answer = exchange(request)
    if answer.status == _FORBIDDEN:
        raise ConfigError(
            f"no workflow may be created in the namespace {paths.namespace}: {error_text(answer)}",
            _grant("verb create", "workflows"),
        )
    if answer.status // 100 == 4 and answer.status != _UNAUTHORIZED:
        text = error_text(answer)
        if _SIMULATED in text:  # which is not what Argo says
            raise ConfigError(
                f"the simulated platform refuses the workflow: {text}", "docs/simulator.md: what it models"
            )
        raise ConfigError(f"Argo refuses the workflow: {text}", "correct the manifest; argo lint checks it, too")
    demand(answer, f"{request.method} {request.path.partition('?')[0]}")


def demand_listing(exchange: Exchange, paths: Paths) -> None:
    """Check that the account may list workflows: without this, the observer would see no run end.

    Raises:
        ConfigError: it may not.
    """
    limit = "limit" if paths.api == KUBERNETES else "listOptions.limit"
    answer = exchange(HttpRequest("GET", f"{paths.workflows}?{limit}=1"))
    if answer.status == _FORBIDDEN:
        raise ConfigError(
            f"the ends of workflows in the namespace {paths.namespace} can't be observed: {error_text(answer)}",
            _grant("verbs list and watch", "workflows"),
        )


def _grant(verbs: str, plural: str) -> str:
    return f"grant the account the {verbs} on the resource {plural} (apiGroup argoproj.io) in a Role or ClusterRole"


def demand(answer: HttpAnswer, where: str) -> dict[str, Any]:
    """The object in a successful answer; `where` names the request in errors.

    Raises:
        TargetUnreachableError: it is an error, or not JSON.
    """
    _refuse_strangers(answer, where)
    if answer.status not in {_FOUND, _CREATED}:
        raise TargetUnreachableError(f"{where} answered {answer.status} {error_text(answer)}", _HOST_HINT)
    found = document(answer)
    if not found:
        raise TargetUnreachableError(f"{where} answered {error_text(answer)} instead of JSON", _HOST_HINT)
    return found
