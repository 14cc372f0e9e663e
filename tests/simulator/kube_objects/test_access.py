"""Who may use a served platform: at the Kubernetes API everybody, and what metrics_server leaves out."""

from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from harness.simulator.profile.file import parse_profile
from tests.support.skipping import skippable


def test_a_platform_without_metrics_server_has_neither_it_nor_its_types() -> None:
    with skippable(parse_profile("metrics_server: false", "the profile", "bare")) as platform:
        with pytest.raises(HTTPError, match="404"):
            urlopen(f"{platform.url}/apis/metrics.k8s.io/v1beta1/pods")
        with urlopen(f"{platform.url}/api/v1/namespaces/kube-system/pods") as answer:
            assert b"metrics-server" not in answer.read()
