"""New objects of clients: checked and stamped here, made by the model."""

from collections.abc import Callable
from datetime import UTC, datetime
from uuid import uuid4

from harness.simulator.kube_api.actions import Actions
from harness.simulator.kube_api.errors import already_exists, bad_request, invalid
from harness.simulator.kube_api.resource import Manifest, Resource
from harness.simulator.kube_api.store import ObjectStore, ObjectVersion


class Creations:
    """Makes clients' objects by the model's `actions`; `now` is the present in UTC ns."""

    def __init__(self, store: ObjectStore, actions: Actions, now: Callable[[], int]) -> None:
        self._store = store
        self._actions = actions
        self._now = now

    def create(self, resource: Resource, namespace: str, body: Manifest, *, dry: bool = False) -> ObjectVersion:
        """Make a new object; if `dry`, only check it.

        Raises:
            ApiError: 400 for another kind or namespace, 409 for a name that is taken, 422 without a name.
        """
        metadata = body.get("metadata")
        if body.get("kind", resource.kind) != resource.kind or not isinstance(metadata, dict):
            raise bad_request(f"the object provided is unrecognized (must be of type {resource.kind})")
        if metadata.get("namespace", namespace) != namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        name = metadata.get("name") or _generated(metadata.get("generateName"))
        body = {**body, "metadata": {**metadata, "name": name}}
        if not isinstance(name, str) or not name:
            why = "Required value: name or generateName is required"
            raise invalid(resource.group, resource.kind, "", "metadata.name", why, cause="FieldValueRequired")
        if "/" in name or "%" in name:
            why = f"Invalid value: \"{name}\": may not contain '{'/' if '/' in name else '%'}'"
            raise invalid(resource.group, resource.kind, name, "metadata.name", why)
        if self._store.get(resource, namespace, name) is not None:
            raise already_exists(resource, name)
        document = self._stamped(body, namespace)
        _check(resource, document)
        self._actions.make(resource, namespace, document, dry=dry)
        if dry:
            return ObjectVersion(namespace, name, document, 0)
        made = self._store.get(resource, namespace, name)
        assert made is not None
        return made

    def _stamped(self, body: Manifest, namespace: str) -> Manifest:
        """The document with the metadata that a server gives it, and without its type."""
        created = datetime.fromtimestamp(self._now() // 10**9, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        place = {"namespace": namespace} if namespace else {}
        kept = {key: value for key, value in body["metadata"].items() if key != "resourceVersion"}
        content = {key: value for key, value in body.items() if key not in ("apiVersion", "kind")}
        return content | {"metadata": {**kept, **place, "uid": str(uuid4()), "creationTimestamp": created}}


def _generated(prefix: object) -> str:
    """A new name, as long as the API server makes it; "" without a prefix."""
    return f"{prefix[:58]}{uuid4().hex[:5]}" if isinstance(prefix, str) and prefix else ""


def _check(resource: Resource, document: Manifest) -> None:
    """Refuse labels and annotations that are no texts.

    Raises:
        ApiError: 400.
    """
    wrong = ""
    for field in ("labels", "annotations"):
        given = document["metadata"].get(field) or {}
        if not isinstance(given, dict) or not all(isinstance(each, str) for each in given.values()):
            wrong = f"metadata.{field} must be texts by name"
    if wrong:
        kind = resource.kind
        raise bad_request(f'{kind} in version "{resource.version}" cannot be handled as a {kind}: {wrong}')
