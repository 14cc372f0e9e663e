"""Bodies of requests that are nested deeply: the served platform refuses them, and goes on."""

from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.support.e2e import shared_platform

__all__ = ["shared_platform"]
NAMESPACE = "/api/v1/namespaces/kubeflow"
PATHS = [
    ("POST", "/apis/v2beta1/runs"), ("POST", "/apis/v2beta1/experiments"), ("POST", f"{NAMESPACE}/configmaps"),
    ("POST", "/apis/argoproj.io/v1alpha1/namespaces/kubeflow/workflows"),
    ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
    ("PATCH", f"{NAMESPACE}/configmaps/workflow-controller-configmap"),
    ("PUT", f"{NAMESPACE}/configmaps/workflow-controller-configmap"),
]  # fmt: skip


def nested(levels, closed):
    deep = b'{"a":' * levels
    return b'{"metadata":{"name":"x","annotations":' + deep + (b"1" + b"}" * levels if closed else b"") + b"}}"


@pytest.mark.parametrize("levels", [300, 900, 100_000])
@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize(("method", "path"), PATHS)
def test_a_deep_body_is_refused_as_the_clients_fault(shared_platform, method, path, levels, closed):
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    request = Request(f"{shared_platform.url}{path}", nested(levels, closed), {"Content-Type": kind}, method=method)
    try:
        with urlopen(request, timeout=60) as answer:
            status = answer.status
    except HTTPError as error:
        with error:
            status = error.code
    assert 200 <= status < 500
    with urlopen(f"{shared_platform.url}/apis/v2beta1/healthz") as answer:
        assert answer.status == 200
