import pytest

from harness.model.errors import ConfigError
from harness.plan.http_proxy import Proxy, proxy_for

P = "http://proxy.example:3128"
KFP = "https://kfp.example/pipeline"


@pytest.mark.parametrize(
    ("address", "variables", "through"),
    [
        (KFP, {}, None),
        (KFP, {"HTTPS_PROXY": P}, P),
        (KFP, {"HTTP_PROXY": P}, None),
        ("http://kfp.example", {"HTTP_PROXY": P, "HTTPS_PROXY": "http://other.example"}, P),
        (KFP, {"https_proxy": P, "HTTPS_PROXY": "http://other.example"}, P),
        (KFP, {"https_proxy": "", "HTTPS_PROXY": P}, P),
        (KFP, {"HTTPS_PROXY": "proxy.example"}, "http://proxy.example:80"),
        (KFP, {"HTTPS_PROXY": "http://[fd00::1]:8080"}, "http://[fd00::1]:8080"),
        ("https://localhost:8888", {"HTTPS_PROXY": P}, None),
        ("https://kfp.localhost", {"HTTPS_PROXY": P}, None),
        ("http://127.0.0.9", {"HTTP_PROXY": P}, None),
        ("http://[::1]:80", {"HTTP_PROXY": P}, None),
        ("ftp://kfp.example", {"HTTP_PROXY": P, "HTTPS_PROXY": P}, None),
    ],
)
def test_the_variable_of_the_scheme_names_the_proxy_and_this_machine_needs_none(address, variables, through):
    found = proxy_for(address, variables)
    assert (str(found) if found else None) == through


@pytest.mark.parametrize(
    ("entries", "address", "bypassed"),
    [
        ("*", KFP, True),
        ("other.example, kfp.example", KFP, True),
        ("KFP.example", KFP, True),
        (".example", KFP, True),
        ("*.example", KFP, True),
        ("example", KFP, True),
        ("fp.example", KFP, False),
        (",,", KFP, False),
        ("kfp.example:443", KFP, True),
        ("kfp.example:8443", KFP, False),
        ("10.0.0.0/8,.svc", "https://10.96.0.1:6443", True),
        ("10.0.0.0/8", "https://11.0.0.1", False),
        ("10.0.0.1", "https://10.0.0.1", True),
        ("10.0.0.1:6443", "https://10.0.0.1:6443", True),
        ("fd00::/8", "https://[fd00::1]", True),
        ("fd00::1", "https://[fd00::1]", True),
        (".svc", "https://ml-pipeline.kubeflow.svc:8888", True),
    ],
)
def test_what_no_proxy_names_is_reached_directly(entries, address, bypassed):
    assert (proxy_for(address, {"HTTPS_PROXY": P, "NO_PROXY": entries}) is None) is bypassed


def test_the_account_is_for_the_proxy_and_never_shown():
    found = proxy_for(KFP, {"HTTPS_PROXY": "http://me:s%40cret@proxy.example:3128"})
    assert found.headers == {"Proxy-Authorization": "Basic bWU6c0BjcmV0"}
    assert "cret" not in f"{found} {found!r}"
    assert "bWU6" not in f"{found} {found!r}"
    assert Proxy("proxy.example", 80).headers == {}


@pytest.mark.parametrize(
    "text",
    ["socks5://me:secret@proxy:1080", "https://me:secret@proxy", "http://me:secret@[proxy", "http://me:secret@p:x"],
)
def test_what_is_no_http_proxy_is_refused_without_its_password(text):
    with pytest.raises(ConfigError, match="HTTPS_PROXY does not name an HTTP proxy") as raised:
        proxy_for(KFP, {"HTTPS_PROXY": text})
    assert "secret" not in str(raised.value)
