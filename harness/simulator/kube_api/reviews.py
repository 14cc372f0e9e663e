"""Reviews of identity and permissions, as `kubectl auth` asks for them."""

from functools import partial
from typing import Any

import orjson
from aiohttp import web

from harness.simulator.kube_api.access import Access
from harness.simulator.kube_api.errors import bad_request
from harness.simulator.kube_api.rbac import Attempt, User, rules_of
from harness.simulator.kube_api.resource import Resource
from harness.simulator.kube_api.writing import read_json

Document = dict[str, Any]
_AUTHORIZATION, _AUTHENTICATION = "authorization.k8s.io", "authentication.k8s.io"
_PROTOBUF = "application/vnd.kubernetes.protobuf"
# The fields of the messages that clients send as protobuf, by number (k8s.io/api/authorization/v1/generated.proto).
_SPEC, _RESOURCE, _PATH = 2, 1, 2
_RESOURCE_FIELDS = ("namespace", "verb", "group", "version", "resource", "subresource", "name")
_PATH_FIELDS = ("path", "verb")


def _type(kind: str, group: str = _AUTHORIZATION, *, namespaced: bool = False) -> Resource:
    """A type whose objects are only answers."""
    return Resource(
        group, "v1", f"{kind.lower()}s", kind, namespaced, render=lambda _: {}, labels=lambda _: {},
        fields=lambda _: {}, verbs=("create",),
    )  # fmt: skip


REVIEWS = (
    _type("LocalSubjectAccessReview", namespaced=True),
    _type("SelfSubjectAccessReview"),
    _type("SelfSubjectRulesReview"),
    _type("SubjectAccessReview"),
    _type("SelfSubjectReview", _AUTHENTICATION),
)


def add_reviews(router: web.UrlDispatcher, access: Access) -> None:
    """Serve the reviews of the groups ``authorization.k8s.io`` and ``authentication.k8s.io``."""
    answers = {
        "LocalSubjectAccessReview": _other,
        "SelfSubjectAccessReview": _own,
        "SelfSubjectRulesReview": _rules,
        "SubjectAccessReview": _other,
        "SelfSubjectReview": _identity,
    }

    async def answer(request: web.Request, *, resource: Resource) -> web.Response:
        review = await _review(request, resource)
        spec = review.get("spec") or {}
        if not isinstance(spec, dict):
            raise bad_request(f"json: cannot unmarshal {type(spec).__name__} into the field spec")
        status = answers[resource.kind](access, access.user(request), spec)
        document = {**review, "metadata": {}, "status": status}
        return web.Response(body=orjson.dumps(document), status=201, content_type="application/json")

    for each in REVIEWS:
        place = "namespaces/{namespace}/" if each.namespaced else ""
        router.add_post(f"/apis/{each.api_version}/{place}{each.plural}", partial(answer, resource=each))


def _own(access: Access, user: User, spec: Document) -> Document:
    """Whether the client may do something."""
    return _judged(access, user, spec)


def _other(access: Access, _: User, spec: Document) -> Document:
    """Whether another user may do something."""
    groups = spec.get("groups") or []
    if not isinstance(groups, list) or not (spec.get("user") or groups):
        raise bad_request("at least one of user or group must be specified")
    return _judged(access, User(str(spec.get("user", "")), tuple(map(str, groups))), spec)


def _judged(access: Access, user: User, spec: Document) -> Document:
    about, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if (about is None) == (path is None):
        raise bad_request("exactly one of nonResourceAttributes or resourceAttributes must be specified")
    given = path if about is None else about
    if not isinstance(given, dict) or not all(isinstance(each, str | dict) for each in given.values()):
        raise bad_request("json: cannot unmarshal the attributes of the review")
    names = _PATH_FIELDS if about is None else _RESOURCE_FIELDS
    known = {name: str(given.get(name, "")) for name in names if name != "version"}
    why = access.why(user, Attempt(**known))
    return {"allowed": False} if why is None else {"allowed": True, **({"reason": why} if why else {})}


def _rules(access: Access, user: User, spec: Document) -> Document:
    """What the client may do in a namespace."""
    rules = rules_of(access.store, user, str(spec.get("namespace", "")))
    return {
        "resourceRules": [each for each in rules if "resources" in each],
        "nonResourceRules": [each for each in rules if "nonResourceURLs" in each],
        "incomplete": False,
    }


def _identity(_: Access, user: User, spec: Document) -> Document:
    """Who the client is."""
    del spec
    return {"userInfo": {"username": user.name, "groups": list(user.groups)}}


async def _review(request: web.Request, resource: Resource) -> Document:
    """The request's document, from JSON or, as `kubectl` sends it, from a protobuf message."""
    body, kind = await request.read(), resource.kind
    typed = {"kind": kind, "apiVersion": resource.api_version}
    if request.content_type == _PROTOBUF:
        if not body.startswith(b"k8s\0") or kind.encode() not in body:
            raise bad_request(f"the object provided is unrecognized (must be of type {kind})")
        return typed | {"spec": _spec_of(kind, body.removeprefix(b"k8s\0"))}
    review = read_json(body)
    if not isinstance(review, dict) or review.get("kind", kind) != kind:
        raise bad_request(f"the object provided is unrecognized (must be of type {kind})")
    return {**typed, **review}


def _spec_of(kind: str, envelope: bytes) -> Document:
    """The spec in a message ``k8s.io.apimachinery.pkg.runtime.Unknown``, whose second field is the object."""
    spec = _fields(_fields(_fields(envelope).get(2, b"")).get(_SPEC, b""))
    if kind == "SelfSubjectRulesReview":
        return {"namespace": spec.get(1, b"").decode()}
    found: Document = {}
    for number, name, names in (
        (_RESOURCE, "resourceAttributes", _RESOURCE_FIELDS),
        (_PATH, "nonResourceAttributes", _PATH_FIELDS),
    ):
        if number in spec:
            values = _fields(spec[number])
            found[name] = {each: values.get(index, b"").decode() for index, each in enumerate(names, start=1)}
    return found


def _fields(message: bytes) -> dict[int, bytes]:
    """The fields of a protobuf message by number, if all have a length.

    Raises:
        ApiError: 400: others, or a message that ends too early.
    """
    found: dict[int, bytes] = {}
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        length, at = _varint(message, at)
        if key & 7 != 2 or at + length > len(message):
            raise bad_request("couldn't read the protobuf message")
        found[key >> 3], at = message[at : at + length], at + length
    return found


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """The number at a position, and the position after it."""
    value = shift = 0
    while at < len(message):
        byte, at = message[at], at + 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    raise bad_request("couldn't read the protobuf message")
