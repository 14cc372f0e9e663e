"""Writes by clients: delete, evict, patch, scale. Checked here, carried out by the model."""

from collections.abc import Callable, Mapping
from typing import Any
from uuid import uuid4

import orjson

from harness.model.units import timestamp
from harness.simulator.kube_api import errors
from harness.simulator.kube_api.actions import Actions
from harness.simulator.kube_api.listing import number
from harness.simulator.kube_api.patches import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, apply_patch, difference
from harness.simulator.kube_api.resource import Manifest, Resource
from harness.simulator.kube_api.store import ObjectStore, ObjectVersion

Document = dict[str, Any]

PROTOBUF = "application/vnd.kubernetes.protobuf"
_PROPAGATIONS = ("Foreground", "Background", "Orphan")
# Fields owned by the server: writing them is not an error but has no effect.
_SERVER_OWNED = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid")


class Target:
    """The object of a client's write.

    Raises:
        ApiError: 404: no such object.
    """

    def __init__(self, store: ObjectStore, resource: Resource, namespace: str, name: str) -> None:
        stored = store.get(resource, namespace, name)
        if stored is None:
            raise errors.not_found(resource, name)
        self.store = store
        self.resource = resource
        self.namespace = namespace
        self.name = name
        self.version = stored

    def document(self) -> Document:
        """The object as seen by clients."""
        document: Document = orjson.loads(self.version.encoded(self.resource))
        return {"kind": self.resource.kind, "apiVersion": self.resource.api_version, **document}

    def now(self) -> ObjectVersion:
        """The object after the write: its current or its last state."""
        current = self.store.get(self.resource, self.namespace, self.name)
        if current is not None:
            return current
        later = self.store.changes(self.resource.plural, self.version.version, self.store.version)
        return next((each.after for each in later if each.after.key == self.version.key and each.deleted), self.version)


def delete(target: Target, actions: Actions, query: Mapping[str, str], options: Document) -> ObjectVersion | None:
    """Delete an object; returns its last state if the type's deletes do, otherwise none.

    Raises:
        ApiError: 409 for an unmet precondition, 422 for an unknown propagation policy.
    """
    resource, name = target.resource, target.name
    policy = options.get("propagationPolicy") or query.get("propagationPolicy")
    if policy and policy not in _PROPAGATIONS:
        allowed = ", ".join(f'"{propagation}"' for propagation in (*_PROPAGATIONS, "nil"))
        why = f'Unsupported value: "{policy}": supported values: {allowed}'
        raise errors.invalid(
            "meta.k8s.io", "DeleteOptions", "", "propagationPolicy", why, cause="FieldValueNotSupported"
        )
    _check_preconditions(target, options.get("preconditions") or {})
    actions.delete(resource.plural, target.namespace, name, _grace(query, options))
    return target.now() if resource.returns_deleted else None


def _check_preconditions(target: Target, preconditions: Mapping[str, str]) -> None:
    metadata = target.document()["metadata"]
    for field, label, advice in (
        ("uid", "UID", "The object might have been deleted and then recreated"),
        ("resourceVersion", "ResourceVersion", "The object might have been modified"),
    ):
        asked, recorded = preconditions.get(field), metadata.get(field, "")
        if asked and asked != recorded:
            why = (
                f"the {label} in the precondition ({asked}) does not match the {label} in record ({recorded}). {advice}"
            )
            raise errors.precondition_failed(target.resource, target.name, why)


def _grace(query: Mapping[str, str], options: Document) -> float | None:
    seconds = options.get("gracePeriodSeconds")
    if seconds is None and "gracePeriodSeconds" in query:
        seconds = number(query, "gracePeriodSeconds")
    if seconds is None:
        return None
    if not isinstance(seconds, int):
        raise errors.bad_request("gracePeriodSeconds is not a whole number of seconds")
    return float(max(0, seconds))


def evict(target: Target, actions: Actions, query: Mapping[str, str], eviction: Document) -> Document:
    """Evict a pod; returns the `Status` of success.

    Raises:
        ApiError: 400 for a body of another kind or name; or from the model.
    """
    if eviction.get("kind") not in (None, "Eviction"):
        raise errors.bad_request("the object provided is unrecognized (must be of type Eviction)")
    if eviction.get("metadata", {}).get("name") not in (None, target.name):
        raise errors.bad_request("name in URL does not match name in Eviction object")
    options = eviction.get("deleteOptions") or {}
    actions.evict(target.namespace, target.name, _grace(query, options))
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def patch(target: Target, actions: Actions, content_type: str, body: bytes) -> ObjectVersion:
    """Apply one of the three kinds of patch to an object.

    Raises:
        ApiError: 400, 409, 415, 422.
    """
    if content_type == STRATEGIC_PATCH and target.resource.custom:
        raise errors.unsupported_media_type(f"{JSON_PATCH}, {MERGE_PATCH}")
    before = target.document()
    after = apply_patch(content_type, before, read_json(body))
    resource, name = target.resource, target.name
    metadata = after.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("name") != name:
        given = metadata.get("name", "") if isinstance(metadata, dict) else ""
        raise errors.bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")
    if metadata.get("namespace") not in (None, "", target.namespace):
        raise errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if metadata.get("resourceVersion") not in (None, "", before["metadata"]["resourceVersion"]):
        raise errors.stale(resource, name)
    if metadata.get("uid") not in (None, "", before["metadata"].get("uid")):
        why = f'Invalid value: "{metadata["uid"]}": field is immutable'
        raise errors.invalid(resource.group, resource.kind, name, "metadata.uid", why)
    asked = difference(_writable(before), _writable(after))
    if asked:
        actions.patch(resource.plural, target.namespace, name, asked)
    return target.now()


def _writable(document: Document) -> Document:
    """The part of an object that clients can write; the status is the model's."""
    metadata = {key: value for key, value in document["metadata"].items() if key not in _SERVER_OWNED}
    rest = {key: value for key, value in document.items() if key not in ("apiVersion", "kind", "metadata", "status")}
    return {"metadata": metadata, **rest}


def scale_of(target: Target) -> Document:
    """The `Scale` of an object: desired and current replicas."""
    document = target.document()
    metadata = document["metadata"]
    wanted = document.get("spec", {})
    selector = wanted.get("selector", {}).get("matchLabels", {})
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    status: Document = {"replicas": document.get("status", {}).get("replicas", 0)}
    if selector:
        status["selector"] = ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in kept if key in metadata},
        "spec": {"replicas": wanted["replicas"]} if wanted.get("replicas") else {},
        "status": status,
    }


def scale(target: Target, actions: Actions, content_type: str | None, body: bytes) -> Document:
    """Set the replicas by a patch of type `content_type`, or by a new `Scale` if that is none; returns the new `Scale`.

    Raises:
        ApiError: 400, 409, 415, 422.
    """
    before, sent = scale_of(target), read_json(body)
    after = sent if content_type is None else apply_patch(content_type, before, sent)
    resource, name = target.resource, target.name
    if not isinstance(after, dict) or after.get("metadata", {}).get("name") != name:
        given = after.get("metadata", {}).get("name", "") if isinstance(after, dict) else ""
        raise errors.bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")
    if after["metadata"].get("resourceVersion") not in (None, "", before["metadata"]["resourceVersion"]):
        raise errors.stale(resource, name)
    replicas = after.get("spec", {}).get("replicas", 0)
    if not isinstance(replicas, int) or replicas < 0:
        why = f"Invalid value: {replicas}: must be greater than or equal to 0"
        raise errors.invalid("autoscaling", "Scale", name, "spec.replicas", why)
    if replicas != before["spec"].get("replicas", 0):
        actions.patch(resource.plural, target.namespace, name, {"spec": {"replicas": replicas}})
    return scale_of(Target(target.store, resource, target.namespace, name))


def read_json(body: bytes) -> Any:
    """The parsed body of a write.

    Raises:
        ApiError: 400: not JSON.
    """
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise errors.bad_request(f"couldn't get version/kind; json parse error: {error}") from error


def read_object(body: bytes, content_type: str = "application/json") -> Document:
    """The parsed body of a write that has to be an object.

    Raises:
        ApiError: 400: not JSON, or not an object; 415: protobuf, which kubectl sends for objects that it makes itself.
    """
    if content_type == PROTOBUF:
        raise errors.unsupported_media_type("application/json")
    document = read_json(body)
    if not isinstance(document, dict):
        raise errors.bad_request("the body is not an object")
    return document


def read_options(body: bytes, content_type: str) -> Document:
    """The optional body of a delete or an eviction.

    Raises:
        ApiError: 400: not a JSON object, or a dry run; 415: another content type.
    """
    if not body:
        return {}
    if content_type not in ("application/json", "application/octet-stream"):
        raise errors.unsupported_media_type("application/json")
    options = read_object(body)
    if options.get("dryRun"):
        raise errors.no_dry_run()
    return options


# --- new objects of clients: checked and stamped here, made by the model ---------------------------------------------


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
            raise errors.bad_request(f"the object provided is unrecognized (must be of type {resource.kind})")
        if metadata.get("namespace", namespace) != namespace:
            raise errors.bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )
        name = metadata.get("name") or _generated(metadata.get("generateName"))
        body = {**body, "metadata": {**metadata, "name": name}}
        if not isinstance(name, str) or not name:
            why = "Required value: name or generateName is required"
            raise errors.invalid(resource.group, resource.kind, "", "metadata.name", why, cause="FieldValueRequired")
        if "/" in name or "%" in name:
            why = f"Invalid value: \"{name}\": may not contain '{'/' if '/' in name else '%'}'"
            raise errors.invalid(resource.group, resource.kind, name, "metadata.name", why)
        if self._store.get(resource, namespace, name) is not None:
            raise errors.already_exists(resource, name)
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
        created = timestamp(self._now() // 10**9)
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
        raise errors.bad_request(f'{kind} in version "{resource.version}" cannot be handled as a {kind}: {wrong}')
