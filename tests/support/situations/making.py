"""What makes a situation: objects that hold workflows back, and things that happen while a test runs."""

import base64
import json
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from harness.model.http import HttpAnswer, HttpRequest
from tests.support.certificates import certified
from tests.support.real_parts.kube import RefusedError
from tests.support.servers import serving, until
from tests.support.situations.situation import Place

Act = Callable[[Place], None]
_HANDS = 8


def after(seconds: float, *acts: Act) -> Act:
    """Do it that long after the first pod ran; nothing once the test is over."""

    def act(place: Place) -> None:
        while not place.pods("Running"):
            if not place.wait(0.2):
                return
        if place.wait(seconds):
            together(*acts)(place)

    return act


def together(*acts: Act) -> Act:
    """One after the other."""

    def act(place: Place) -> None:
        for each in acts:
            each(place)

    return act


def pause(seconds: float) -> Act:
    """Let time pass, also where the test ends meanwhile."""

    def act(_: Place) -> None:
        threading.Event().wait(seconds)

    return act


def quota(**hard: str) -> Act:
    """A ResourceQuota; it counts once the controllers have taken note of it."""

    def act(place: Place) -> None:
        named = {key.replace("_", "."): value for key, value in hard.items()}
        place.create("resourcequotas", {"metadata": {"name": "tight"}, "spec": {"hard": named}})
        there = f"{place.path}/resourcequotas/tight"
        until(lambda: place.kube.get(there).get("status", {}).get("used"), "the quota is in force")

    return act


def limit_range(place: Place) -> None:
    """Containers may have a quarter of a core at most."""
    limits = [
        {"type": "Container", "max": {"cpu": "250m"}, "default": {"cpu": "100m"}, "defaultRequest": {"cpu": "50m"}}
    ]
    place.create("limitranges", {"metadata": {"name": "small-steps"}, "spec": {"limits": limits}})


def claim(place: Place) -> None:
    """A claim that no provisioner takes."""
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    place.create("persistentvolumeclaims", {"metadata": {"name": "data"}, "spec": {**asked, "storageClassName": ""}})


def taint(*numbers: int) -> Act:
    """Let these nodes take only what tolerates training."""

    def act(place: Place) -> None:
        taints = [{"key": "sku", "value": "training", "effect": "NoSchedule"}]
        for number in numbers:
            place.kube.patch(f"/api/v1/nodes/{place.nodes[number]}", {"spec": {"taints": taints}})

    return act


def settings(name: str, **data: str) -> Act:
    """A ConfigMap."""

    def act(place: Place) -> None:
        place.create("configmaps", {"metadata": {"name": name}, "data": data})

    return act


def lose_node(place: Place) -> None:
    """The last node falls silent."""
    place.kubelet.silent.add(place.nodes[-1])
    place.cluster.lose_node(place.nodes[-1])


def delete_node(place: Place) -> None:
    """The last node is deleted while its pods run."""
    place.kubelet.silent.add(place.nodes[-1])
    place.cluster.remove_node(place.nodes[-1])


def preempt(place: Place) -> None:
    """Others' pods of higher priority take the nodes."""
    try:
        place.kube.create("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "urgent"}, "value": 1000})
    except RefusedError as error:
        if error.status != 409:
            raise
    for number in range(6):
        asked = {"requests": {"cpu": "1500m"}}
        container = {"name": "main", "image": "serving", "resources": asked}
        pod = {"metadata": {"name": f"serving-{number}", "annotations": {"kubelet.test/runs-s": "15"}}}
        place.create(
            "pods",
            {**pod, "spec": {"priorityClassName": "urgent", "restartPolicy": "Never", "containers": [container]}},
        )


def kill_controller(place: Place) -> None:
    """The controller is killed."""
    place.controller.kill()


def start_controller(place: Place) -> None:
    """The controller starts again."""
    place.controller.start()


def restart_controller(*given: str) -> Act:
    """The controller is rolled out with these arguments."""
    return lambda place: place.controller.restart(given)


def stop_api(place: Place) -> None:
    """The API server ends."""
    place.cluster.stop_api()


def start_api(place: Place) -> None:
    """The API server is back."""
    place.cluster.start_api()


def compact(place: Place) -> None:
    """Etcd forgets all former versions."""
    place.cluster.compact()


def finished_workflows(count: int) -> Act:
    """Workflows of earlier days that nobody removed."""

    def act(place: Place) -> None:
        done = {
            "phase": "Succeeded",
            "startedAt": "2026-11-20T10:00:00Z",
            "finishedAt": "2026-11-20T10:00:30Z",
            "progress": "1/1",
        }
        labels = {"workflows.argoproj.io/completed": "true", "workflows.argoproj.io/phase": "Succeeded"}

        def create(number: int) -> None:
            node = {"id": f"old-{number}", "name": f"old-{number}", "displayName": f"old-{number}", "type": "Pod",
                    "templateName": "main", **done}  # fmt: skip
            place.create("workflows", {
                "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
                "metadata": {"name": f"old-{number}", "labels": labels},
                "spec": {"entrypoint": "main", "templates": [{"name": "main", "container": {"image": "x"}}]},
                "status": {**done, "nodes": {f"old-{number}": node}},
            }, "argoproj.io/v1alpha1")  # fmt: skip

        with ThreadPoolExecutor(_HANDS) as hands:
            list(hands.map(create, range(count)))

    return act


def fill_etcd(place: Place) -> None:
    """Fill the database until it refuses."""
    for number in range(1000):
        try:
            place.create("configmaps", {"metadata": {"name": f"bulk-{number}"}, "data": {"x": "x" * 500_000}})
        except RefusedError as error:
            if "exceeded" in str(error):
                return
            raise


def webhook(answers_after_s: float, timeout_s: int) -> Act:
    """An admission webhook that is asked about each pod of a workflow."""

    def act(place: Place) -> None:
        def review(request: HttpRequest) -> HttpAnswer:
            time.sleep(answers_after_s)
            response = {"uid": json.loads(request.body)["request"]["uid"], "allowed": True}
            answer = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
            return HttpAnswer(200, json.dumps(answer).encode(), {"content-type": "application/json"})

        certificate, key = certified(place.folder, "localhost")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        url = place.stack.enter_context(serving(review, context))
        _register(place, f"{url}/validate", Path(certificate), timeout_s)

    return act


def _register(place: Place, url: str, certificate: Path, timeout_s: int) -> None:
    path, name = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", f"policy-{place.namespace}"
    chosen = {"matchExpressions": [{"key": "workflows.argoproj.io/workflow", "operator": "Exists"}]}
    authority = base64.b64encode(certificate.read_bytes()).decode()
    rule: Mapping[str, Any] = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "resources": ["pods"],
        "operations": ["CREATE"],
    }
    place.kube.create(path, {
        "metadata": {"name": name},
        "webhooks": [{
            "name": "policy.example.org", "clientConfig": {"url": url, "caBundle": authority}, "rules": [rule],
            "objectSelector": chosen, "failurePolicy": "Fail", "timeoutSeconds": timeout_s, "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }],
    })  # fmt: skip
    place.stack.callback(place.kube.delete, f"{path}/{name}")
