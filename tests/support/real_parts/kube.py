"""Requests to a real Kubernetes API as plain JSON: what takes the place of kubelets makes many."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import urllib3

from tests.support.servers import until

Manifest = dict[str, Any]
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"  # lists of conditions and containers are merged by name
_WATCH_S = 5
_CONFLICT, _UNAVAILABLE = 409, 503
_AWAY_S, _ATTEMPTS = 0.5, 120  # between attempts of a patient one, and how many


class RefusedError(Exception):
    """The API server refused a request; `str` is its message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Kube:
    """The API server at `url`, as the account of a token. Shared by threads.

    A `patient` one waits for a server that is away, as a kubelet does.
    """

    def __init__(self, url: str, token: str, ca: Path, *, patient: bool = False) -> None:
        self._attempts = _ATTEMPTS if patient else 1
        self._url = url
        self._headers = {"Authorization": f"Bearer {token}"}
        self._http = urllib3.PoolManager(ca_certs=str(ca), maxsize=8, retries=False)

    def get(self, path: str) -> Manifest:
        """An object or a list."""
        return self._ask("GET", path)

    def create(self, path: str, manifest: Manifest) -> Manifest:
        """The object as the server made it.

        Raises:
            RefusedError: it was not created.
        """
        return self._ask("POST", path, manifest)

    def patch(self, path: str, patch: Manifest, kind: str = MERGE) -> Manifest:
        """The object after a patch."""
        return self._ask("PATCH", path, patch, kind)

    def delete(self, path: str) -> None:
        """Delete an object, or all of a collection."""
        self._ask("DELETE", path)

    def _ask(self, method: str, path: str, body: Manifest | None = None, kind: str = "application/json") -> Manifest:
        headers = {**self._headers, "Content-Type": kind}
        sent = None if body is None else json.dumps(body)
        answer = self._answered(method, self._url + path, body=sent, headers=headers)
        if answer.status // 100 != 2:
            raise RefusedError(answer.status, _message(answer.data.decode()))
        found: Manifest = json.loads(answer.data)
        return found

    def _answered(self, method: str, url: str, **what: Any) -> urllib3.BaseHTTPResponse:
        """The answer; a patient one asks again while nobody answers, or the server still starts."""
        for _ in range(self._attempts - 1):
            try:
                answer = self._http.request(method, url, timeout=20.0, **what)
                if answer.status != _UNAVAILABLE:
                    return answer
            except urllib3.exceptions.HTTPError:
                pass
            threading.Event().wait(_AWAY_S)
        return self._http.request(method, url, timeout=20.0, **what)

    def follow(self, path: str, see: Callable[[str, Manifest], None], over: threading.Event) -> None:
        """Tell all changes of a collection from now on, ADDED, MODIFIED or DELETED, until it is over.

        After a gap, a patient one tells what is there as MODIFIED.
        """
        version = self.get(f"{path}?limit=1")["metadata"]["resourceVersion"]
        while not over.is_set():
            try:
                version = self._watch(path, version, see, over)
            except (urllib3.exceptions.HTTPError, RefusedError):
                if self._attempts == 1:
                    raise
                if over.wait(_AWAY_S):
                    return
                there = self.get(path)
                version = there["metadata"]["resourceVersion"]
                for each in there["items"]:
                    see("MODIFIED", each)

    def _watch(self, path: str, version: str, see: Callable[[str, Manifest], None], over: threading.Event) -> str:
        query = f"watch=1&resourceVersion={version}&timeoutSeconds={_WATCH_S}"
        answer = self._http.request(
            "GET", f"{self._url}{path}?{query}", headers=self._headers, preload_content=False, timeout=20.0
        )
        for line in _lines(answer):
            change = json.loads(line)
            if change["type"] == "ERROR":
                raise RefusedError(change["object"]["code"], change["object"]["message"])
            version = change["object"]["metadata"]["resourceVersion"]
            see(change["type"], change["object"])
            if over.is_set():
                break
        answer.release_conn()
        return version


def _message(text: str) -> str:
    try:
        return str(json.loads(text)["message"])
    except (ValueError, LookupError):
        return text  # of what is not an object of the API


def _lines(answer: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    held = b""
    for chunk in answer.stream(2**16, decode_content=True):
        *lines, held = (held + chunk).split(b"\n")
        yield from lines


TYPES = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ANYTHING: Manifest = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def crd(
    kind: str, scope: str = "Namespaced", *, api: str = "argoproj.io/v1alpha1", schema: Manifest = ANYTHING
) -> Manifest:
    """The definition of a type, by default one of Argo's, which takes any content."""
    singular = kind.lower()
    group, version = api.split("/")
    served = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": kind, "listKind": f"{kind}List", "plural": f"{singular}s", "singular": singular}
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{singular}s.{group}"},
        "spec": {"group": group, "names": names, "scope": scope, "versions": [served]},
    }  # fmt: skip


def add_types(kube: Kube, *definitions: Manifest) -> None:
    """Let the cluster know these types, if it does not; returns once it serves them."""
    for each in definitions:
        try:
            kube.create(TYPES, each)
        except RefusedError as error:
            if error.status != _CONFLICT:
                raise
    until(lambda: all(_served(kube, each["spec"]) for each in definitions), "the API server serves the types")


def _served(kube: Kube, spec: Manifest) -> bool:
    try:
        return bool(kube.get(f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}?limit=1"))
    except RefusedError:
        return False


@contextmanager
def types(kube: Kube, *definitions: Manifest) -> Iterator[None]:
    """The cluster knows these types for as long: other tests see one without them."""
    add_types(kube, *definitions)
    try:
        yield
    finally:
        for each in definitions:
            kube.delete(f"{TYPES}/{each['metadata']['name']}")


def allow(kube: Kube, namespace: str, subject: Manifest, *rules: Manifest, name: str = "") -> None:
    """Grant a user or an account these rights in a namespace, or everywhere, by a role with its name or another one."""
    place, kind = (f"/namespaces/{namespace}", "role") if namespace else ("", "clusterrole")
    path, named = f"/apis/rbac.authorization.k8s.io/v1{place}/{kind}", {"metadata": {"name": name or subject["name"]}}
    kube.create(f"{path}s", {**named, "rules": list(rules)})
    role = {"kind": "Role" if namespace else "ClusterRole", "name": name or subject["name"]}
    reference = {"apiGroup": "rbac.authorization.k8s.io", **role}
    kube.create(f"{path}bindings", {**named, "roleRef": reference, "subjects": [subject]})


def token(kube: Kube, namespace: str, account: str) -> str:
    """A token of a service account, which is made if it is not there."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    with suppress(RefusedError):
        kube.create(path, {"metadata": {"name": account}})
    return str(kube.create(f"{path}/{account}/token", {"spec": {}})["status"]["token"])
