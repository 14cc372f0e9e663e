"""A simulated cluster with the Dask operator, in simulated time and without HTTP, as an exchange for targets."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson

from harness.model.http import HttpAnswer, HttpRequest
from harness.simulator.engine.calendar import Calendar
from harness.simulator.kube_api import ApiError
from harness.simulator.kube_api.writing import Creations, Target, delete
from harness.simulator.kube_objects.actions import ClusterActions
from harness.simulator.kube_objects.view import KubernetesView
from harness.simulator.platform import Platform
from harness.simulator.profile import Pool
from tests.support.platforms import profile
from tests.support.whole_objects import whole

BEGUN_AT = 1_795_352_400 * 10**9


class DaskPlatform:
    """Answers requests as the API server does; `pause` lets simulated time pass."""

    def __init__(self, *pools: Pool, **settings: Any) -> None:
        view = KubernetesView(Calendar(BEGUN_AT))
        self.platform = Platform(profile(*pools, **settings), 0, view)
        view.follow(self.platform)
        self._actions = ClusterActions(view, lambda: None)
        self._creations = Creations(view.store, self._actions, lambda: BEGUN_AT)
        self._store = view.store
        self.asked: list[HttpRequest] = []

    def now(self) -> float:
        """Simulated seconds."""
        return self.platform.loop.now

    def pause(self, seconds: float) -> None:
        """Let time pass."""
        self.platform.loop.run(self.now() + seconds)

    def create(self, kind: str, namespace: str, document: Mapping[str, Any]) -> Mapping[str, Any]:
        """Create an object; returns what the API shows."""
        resource = next(each for each in self._store.resources if each.kind == kind)
        return self._creations.create(resource, namespace, dict(document)).manifest(resource)

    def patch(self, plural: str, namespace: str, name: str, patch: Mapping[str, Any]) -> None:
        """Change an object as a client's merge patch does."""
        self._actions.patch(plural, namespace, name, patch)

    def delete(self, kind: str, namespace: str, name: str) -> None:
        """Delete an object."""
        resource = next(each for each in self._store.resources if each.kind == kind)
        delete(Target(self._store, resource, namespace, name), self._actions, {}, {})

    def objects(self, kind: str, namespace: str = "") -> dict[str, Any]:
        """The objects of a kind by name, as the API shows them."""
        resource = next(each for each in self._store.resources if each.kind == kind)
        return {each.name: each.manifest(resource) for each in self._store.objects(resource, namespace)}

    def __call__(self, request: HttpRequest) -> HttpAnswer:
        """Answer one request."""
        self.asked.append(request)
        try:
            status, document = self._answer(request)
        except ApiError as error:
            status, document = error.code, error.status
        return HttpAnswer(status, orjson.dumps(document))

    def _answer(self, request: HttpRequest) -> tuple[int, Mapping[str, Any]]:
        url = urlsplit(request.path)
        _, root, *parts = url.path.split("/")
        group, version, rest = ("", parts[0], parts[1:]) if root == "api" else (parts[0], parts[1], parts[2:])
        types = [each for each in self._store.resources if (each.group, each.version) == (group, version)]
        if not rest:
            found = [{"name": each.plural, "kind": each.kind} for each in types]
            return (200, {"kind": "APIResourceList", "resources": found}) if found else (404, {"kind": "Status"})
        _, namespace, plural, *named = rest
        resource = next(each for each in types if each.plural == plural)
        if request.method == "POST":
            made = self._creations.create(resource, namespace, orjson.loads(request.body))
            return 201, whole(made, resource)
        if request.method == "DELETE":
            delete(Target(self._store, resource, namespace, named[0]), self._actions, {}, {})
            return 200, {"kind": "Status", "status": "Success"}
        wanted = dict(
            each.split("=") for each in "".join(parse_qs(url.query).get("labelSelector", [])).split(",") if each
        )
        shown = [each.manifest(resource) for each in self._store.objects(resource, namespace)]
        chosen = [each for each in shown if wanted.items() <= (each["metadata"].get("labels") or {}).items()]
        return 200, {"kind": f"{resource.kind}List", "items": chosen}
