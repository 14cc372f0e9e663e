"""A Kubernetes API with Argo's types, or an Argo server, as an exchange: as much of both as a target calls.

Messages and codes are those of a real kube-apiserver 1.36; those of the server follow its published interface.
"""

import json
from urllib.parse import parse_qs, urlsplit

from harness.model.http import HttpAnswer
from harness.targets import argo

API = "/apis/argoproj.io/v1alpha1"
DEFAULTS = {"workflow": "", "from": "", "service-account": "", "shutdown": "terminate", "namespace": ""}
MANIFEST = """
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {generateName: nightly-, labels: {team: a}}
spec:
  entrypoint: main
  arguments:
    parameters:
      - {name: url}
      - {name: rows, value: 7}
      - {name: size, value: small, enum: [small, large]}
      - {name: fast, default: true}
      - {name: note, valueFrom: {configMapKeyRef: {name: c, key: k}}}
  templates: [{name: main, container: {image: a}}]
"""


def prepared(tmp_path, text=MANIFEST, **texts):
    path = tmp_path / "wf.yaml"
    path.write_text(text)
    return argo.prepare({**DEFAULTS, "workflow": str(path), **texts}, simulated=False)


def template(name, kind="WorkflowTemplate", **spec):
    spec = {"entrypoint": "main", "templates": [{"name": "main", "container": {"image": "a"}}], **spec}
    return {
        "metadata": {"name": name},
        "kind": kind,
        "spec": {"workflowSpec": spec} if kind == "CronWorkflow" else spec,
    }


class Argo:
    """Keeps what was created. `server` makes it an Argo server; `refusal` is (status, message) for creations, `unlisted` for lists.

    `deployments` are the answers to their listing, by namespace; elsewhere it is refused.
    """

    def __init__(self, *templates, server=False, refusal=None, unlisted=None, deployments=()):
        self.deployments = dict(deployments)
        self.templates = {(each["kind"].lower() + "s", each["metadata"]["name"]): each for each in templates}
        self.server = server
        self.refusal = refusal
        self.unlisted = unlisted
        self.workflows = {}
        self.asked = []

    def __call__(self, request):
        url = urlsplit(request.path)
        body = json.loads(request.body) if request.body else {}
        self.asked.append((request.method, url.path, body))
        if self.server:
            return self._serve(request.method, url.path, body)
        if url.path == API:
            return answer(200, {"kind": "APIResourceList", "resources": []})
        if url.path.startswith("/apis/apps/v1/namespaces/"):
            return self.deployments.get(url.path.split("/")[5], status(403, "deployments.apps is forbidden"))
        if url.path.endswith("/configmaps"):
            return self._create(body, dry=False)
        if not url.path.startswith(API):
            return status(404, "the server could not find the requested resource")
        if request.method == "GET" and url.path.endswith("/workflows"):
            return self._list()
        *_, plural, name = url.path.removeprefix(API).split("/") if request.method != "POST" else (url.path, "")
        if request.method == "POST":
            return self._create(body, dry="dryRun" in parse_qs(url.query))
        if plural == "workflows":
            return self._change(request.method, name, body)
        return self._template(plural, name)

    def _serve(self, method, path, body):
        parts = path.removeprefix("/api/v1/").split("/")
        if parts == ["version"]:
            return answer(200, {"version": "v3.7.0"})
        if parts[0] == "workflows" and method == "POST":
            return self._create(body["workflow"], dry=parts[-1] == "lint")
        if parts[0] == "workflows" and method == "GET":
            return self._list()
        if parts[0] == "workflows":
            return self._change(method, parts[2], {"spec": {"shutdown": parts[-1].capitalize()}})
        if parts[0] in {"workflow-templates", "cluster-workflow-templates", "cron-workflows"}:
            place = 1 if parts[0].startswith("cluster") else 2
            return self._template(parts[0].replace("-", ""), parts[place] if len(parts) > place else parts[0])
        return HttpAnswer(200, b"<!doctype html><title>Argo</title>")

    def _create(self, workflow, *, dry):
        name = workflow["metadata"]["name"]
        if self.refusal:
            return status(*self.refusal)
        if name in self.workflows:
            return status(409, f'workflows.argoproj.io "{name}" already exists')
        if not dry:
            self.workflows[name] = workflow
        return answer(200 if self.server else 201, workflow)

    def _list(self):
        return status(*self.unlisted) if self.unlisted else answer(200, {"items": list(self.workflows.values())})

    def _change(self, method, name, body):
        if name not in self.workflows:
            return status(404, f'workflows.argoproj.io "{name}" not found')
        if method == "DELETE":
            return answer(200, self.workflows.pop(name))
        self.workflows[name]["spec"] |= body["spec"]
        return answer(200, self.workflows[name])

    def _template(self, plural, name):
        if (plural, name) in self.templates:
            return answer(200, self.templates[plural, name])
        if name.replace("-", "") in {"workflowtemplates", "clusterworkflowtemplates", "cronworkflows"}:
            return answer(200, {"items": list(self.templates.values())})
        return status(404, f'{plural}.argoproj.io "{name}" not found')


def answer(code, body):
    return HttpAnswer(code, json.dumps(body).encode(), {"content-type": "application/json"})


def status(code, message):
    return answer(code, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code})
