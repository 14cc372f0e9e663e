import pytest

from harness.model.errors import ConfigError
from harness.targets.credentials import Credentials, for_folder
from harness.targets.kube_service import KubeService, path_of, same_origin

KFP = "kube://kubeflow/ml-pipeline-ui:80"


@pytest.mark.parametrize(
    ("host", "proxied"),
    [
        (KFP, "/api/v1/namespaces/kubeflow/services/http:ml-pipeline-ui:80/proxy"),
        ("kube://hetida/https:backend:web/hdapi", "/api/v1/namespaces/hetida/services/https:backend:web/proxy/hdapi"),
    ],
)
def test_a_service_is_behind_the_api_servers_proxy(host, proxied):
    service = KubeService.parse(host)
    assert str(service) == host
    assert service.proxied == proxied


@pytest.mark.parametrize(
    "host",
    [
        "kube://", "kube://kubeflow", "kube://kubeflow/", "kube:///x", "kube://a/b/../../secrets", "kube://a/b/%2e%2e",
        "kube://a/b:80:81", "kube://a/b?x=1", "kube://A/b", "kube://a@b/c", "kube://a/ftp:b:1", "kube://a/b\n",
    ],
)  # fmt: skip
def test_what_names_no_service_is_refused_with_an_example(host):
    with pytest.raises(ConfigError, match="names no service of a cluster") as raised:
        KubeService.parse(host)
    assert "kube://kubeflow/ml-pipeline-ui:80" in raised.value.hint


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ("kube://kubeflow/ml-pipeline-ui", True),
        ("kube://kubeflow/ml-pipeline", False),
        ("kube://team/ml-pipeline-ui", False),
        ("https://kubeflow/ml-pipeline-ui", False),
        ("kube://kubeflow", False),
    ],
)
def test_a_service_is_an_origin_whichever_port_is_named(other, same):
    assert same_origin(KFP, other) is same
    if not same:
        with pytest.raises(ConfigError, match="what the kubeconfig proves is not sent"):
            for_folder(KFP, other, Credentials())


def test_the_path_of_an_address_is_that_of_the_platform():
    assert (path_of(KFP), path_of("kube://a/b:1/hdapi"), path_of("https://a/hdapi/")) == ("", "hdapi", "hdapi")
