"""The reviews of `kubectl auth`: identity and permissions. Every client is allowed everything."""

from collections.abc import Sequence
from typing import Any

import orjson
from aiohttp import web

from harness.simulator.kube_api.errors import bad_request
from harness.simulator.kube_api.resource import Resource
from harness.simulator.kube_api.writing import read_json

Document = dict[str, Any]
_AUTHORIZATION, _AUTHENTICATION = "authorization.k8s.io", "authentication.k8s.io"
_PROTOBUF = "application/vnd.kubernetes.protobuf"
_USER = {"username": "simulated", "groups": ["system:masters", "system:authenticated"]}


def add_reviews(router: web.UrlDispatcher, resources: Sequence[Resource]) -> None:
    """Serve the reviews of the groups ``authorization.k8s.io`` and ``authentication.k8s.io``."""

    async def access(request: web.Request) -> web.Response:
        review = await _review(request, _AUTHORIZATION, "SelfSubjectAccessReview")
        spec = review.get("spec")
        if spec is not None and not isinstance(spec, dict):
            raise bad_request(f"json: cannot unmarshal {type(spec).__name__} into the field spec")
        if spec is not None and ("resourceAttributes" in spec) == ("nonResourceAttributes" in spec):
            raise bad_request("exactly one of nonResourceAttributes or resourceAttributes must be specified")
        return _made(review, {"allowed": True})

    async def rules(request: web.Request) -> web.Response:
        review = await _review(request, _AUTHORIZATION, "SelfSubjectRulesReview")
        everything = [
            {"verbs": list(each.verbs), "apiGroups": [each.group], "resources": [each.plural]} for each in resources
        ]
        paths = [{"verbs": ["get"], "nonResourceURLs": ["*"]}]
        return _made(review, {"resourceRules": everything, "nonResourceRules": paths, "incomplete": False})

    async def who(request: web.Request) -> web.Response:
        return _made(await _review(request, _AUTHENTICATION, "SelfSubjectReview"), {"userInfo": _USER})

    router.add_post(f"/apis/{_AUTHORIZATION}/v1/selfsubjectaccessreviews", access)
    router.add_post(f"/apis/{_AUTHORIZATION}/v1/selfsubjectrulesreviews", rules)
    router.add_post(f"/apis/{_AUTHENTICATION}/v1/selfsubjectreviews", who)


async def _review(request: web.Request, group: str, kind: str) -> Document:
    """The request's document; of a protobuf message, as sent by `kubectl`, only the kind."""
    body = await request.read()
    if request.content_type == _PROTOBUF:
        if not body.startswith(b"k8s\0") or kind.encode() not in body:
            raise bad_request(f"the object provided is unrecognized (must be of type {kind})")
        return {"kind": kind, "apiVersion": f"{group}/v1"}
    review = read_json(body)
    if not isinstance(review, dict) or review.get("kind", kind) != kind:
        raise bad_request(f"the object provided is unrecognized (must be of type {kind})")
    return {"kind": kind, "apiVersion": f"{group}/v1", **review}


def _made(review: Document, status: Document) -> web.Response:
    document = {**review, "metadata": {"creationTimestamp": None}, "status": status}
    return web.Response(body=orjson.dumps(document), status=201, content_type="application/json")
