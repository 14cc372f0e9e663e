"""What other tools' variables mean here."""

from argparse import Namespace

import pytest

from harness.model.errors import ConfigError
from harness.plan import environment
from harness.targets import argo, kfp
from harness.targets.credentials import Credentials


@pytest.mark.parametrize(
    ("variables", "host"),
    [
        ({}, ""),
        ({"ARGO_SERVER": "argo.example:443"}, "https://argo.example:443"),
        ({"ARGO_SERVER": "127.0.0.1:2746", "ARGO_SECURE": "false"}, "http://127.0.0.1:2746"),
        ({"ARGO_SERVER": "127.0.0.1:2746", "ARGO_SECURE": "0"}, "http://127.0.0.1:2746"),
        ({"ARGO_SERVER": "127.0.0.1:2746", "ARGO_SECURE": "True"}, "https://127.0.0.1:2746"),
        ({"ARGO_SERVER": "one.example", "ARGO_BASE_HREF": "/argo/"}, "https://one.example/argo"),
    ],
)
def test_argos_server_is_read_as_its_own_command_does(monkeypatch, variables, host):
    for name in ("ARGO_SERVER", "ARGO_SECURE", "ARGO_BASE_HREF"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert environment.platform_host("ARGO_SERVER") == host


@pytest.mark.parametrize(
    ("skips", "host", "insecure", "checked"),
    [
        ("true", "https://argo.example", False, False), ("true", "https://other.example", False, True),
        ("false", "https://argo.example", False, True), ("1", "https://argo.example", False, True),
        ("", "https://argo.example", False, True), ("", "https://argo.example", True, False),
    ],
)  # fmt: skip
def test_certificates_go_unchecked_at_argos_server_only_if_its_own_command_skips_them(
    monkeypatch, skips, host, insecure, checked
):
    for name in ("ARGO_SECURE", "ARGO_BASE_HREF"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ARGO_SERVER", "argo.example")
    monkeypatch.setenv("ARGO_INSECURE_SKIP_VERIFY", skips)
    assert environment.verifies_tls(Namespace(insecure=insecure), argo, host) is checked
    assert environment.verifies_tls(Namespace(), kfp, "")


@pytest.mark.parametrize(
    ("ours", "theirs", "token"),
    [(None, "Bearer abc", "abc"), (None, "abc", "abc"), ("own", "Bearer abc", "own"), ("", "Bearer abc", "")],
)
def test_our_own_token_comes_before_that_of_the_platforms_tools(monkeypatch, ours, theirs, token):
    monkeypatch.delenv("PIPESWARM_TOKEN", raising=False)
    if ours is not None:  # an empty one says that this process gets none
        monkeypatch.setenv("PIPESWARM_TOKEN", ours)
    monkeypatch.setenv("ARGO_TOKEN", theirs)
    monkeypatch.delenv("PIPESWARM_CREDENTIALS", raising=False)
    assert environment.credentials(Namespace(), argo) == Credentials(token)


def test_a_process_that_is_handed_credentials_looks_for_no_others(monkeypatch, tmp_path):
    monkeypatch.setenv("PIPESWARM_TOKEN", "found")
    monkeypatch.setenv("KF_PIPELINES_SA_TOKEN_PATH", str(tmp_path / "token"))
    given = Credentials("mine", headers=(("kubeflow-userid", "me"),), authorities="ca.pem")
    for handed in (given, Credentials()):
        monkeypatch.setenv(*next(iter(environment.handing(handed).items())))
        assert environment.credentials(Namespace(), kfp) == handed


def test_files_that_the_sdk_reads_are_read_unless_options_name_others(monkeypatch):
    monkeypatch.delenv("PIPESWARM_TOKEN", raising=False)
    monkeypatch.setenv("KF_PIPELINES_SA_TOKEN_PATH", "its/token")
    monkeypatch.setenv("KF_PIPELINES_SSL_SA_CERTS", "its/ca.pem")
    assert environment.credentials(Namespace(), kfp) == Credentials(token_file="its/token", authorities="its/ca.pem")
    options = Namespace(token_file="my/token", header="kubeflow-userid: me; x-team: a", client_certificate="me.pem")
    assert environment.credentials(options, kfp) == Credentials(
        token_file="my/token", headers=(("kubeflow-userid", "me"), ("x-team", "a")), certificate="me.pem",
        authorities="its/ca.pem",
    )  # fmt: skip


def test_a_key_without_its_certificate_is_refused():
    with pytest.raises(ConfigError, match="--client-key belongs to a certificate"):
        environment.credentials(Namespace(client_key="key.pem"), None)
