"""Requests to a real Kubernetes API as plain JSON: what takes the place of kubelets makes many."""

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import urllib3

Manifest = dict[str, Any]
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"  # lists of conditions and containers are merged by name
_WATCH_S = 5
_UNAVAILABLE = 503
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


def crd(kind: str, scope: str = "Namespaced") -> Manifest:
    """The definition of one of Argo's types, which takes any content."""
    singular = kind.lower()
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{singular}s.argoproj.io"},
        "spec": {
            "group": "argoproj.io",
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": f"{singular}s", "singular": singular},
            "scope": scope,
            "versions": [{"name": "v1alpha1", "served": True, "storage": True, "schema": schema}],
        },
    }
