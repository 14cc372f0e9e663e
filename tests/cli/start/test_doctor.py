import json

import pytest

from harness.cli import main
from tests.support.servers import Served, unsigned


@pytest.fixture(autouse=True)
def nowhere(tmp_path, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.delenv("KF_PIPELINES_ENDPOINT", raising=False)
    monkeypatch.chdir(tmp_path)


def checks(capsys):
    return {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}


def test_without_a_platform_it_looks_at_the_rest(capsys, tmp_path):
    assert main(["doctor", "--json"]) == 0
    found = checks(capsys)
    assert [*found] == ["Python", "cores", "open files", "disk", "token", "platform", "cluster", "Prometheus"]
    assert "KF_PIPELINES_ENDPOINT" in found["platform"]["found"]
    assert found["cluster"]["state"] == "limited"
    assert not [*tmp_path.iterdir()]


def test_a_platform_of_processes_needs_no_address(capsys):
    assert main(["doctor", "--target", "command", "--json"]) == 0
    assert checks(capsys)["platform"]["state"] == "ok"


def test_dask_in_kubernetes_needs_an_address_and_on_this_machine_none(capsys):
    assert main(["doctor", "--target", "dask_tenants", "--json"]) == 0
    assert checks(capsys)["platform"]["found"] == "runs are processes of the load test"
    assert main(["doctor", "--target", "dask_tenants", "--option", "cluster=kube", "--json"]) == 0
    platform = checks(capsys)["platform"]
    assert (platform["state"], platform["found"]) == ("limited", "no address: give --host")
    given = ["--option", "cluster=kube", "--host", "http://127.0.0.1:9", "--json"]
    assert main(["doctor", "--target", "dask_tenants", *given]) in {0, 5}
    assert "http://127.0.0.1:9" in checks(capsys)["platform"]["found"]


def test_a_platform_that_does_not_answer_ends_with_5(capsys):
    assert main(["doctor", "--host", "http://127.0.0.1:9", "--json"]) == 5
    assert checks(capsys)["platform"]["state"] == "broken"


def test_an_address_that_is_none_is_bad_configuration_and_gets_an_example(capsys):
    assert main(["doctor", "--host", "ftp://kfp.example"]) == 2
    shown = capsys.readouterr().out
    assert "invalid platform: 'ftp://kfp.example' is not an http(s) address" in shown
    assert "→ write it as https://kfp.example/pipeline" in shown


def test_an_option_that_the_platform_refuses_is_refused(capsys):
    assert main(["doctor", "--target", "dask_tenants", "--option", "cluster=nonsense"]) == 2
    assert "--option: cluster: 'nonsense' is not a choice" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--token-file", "--cookie-file", "--ca-file", "--client-certificate"])
def test_a_missing_file_is_bad_configuration_and_not_an_unreachable_platform(option, capsys):
    with Served(lambda *_: (200, {})) as server:
        assert main(["doctor", "--host", server.url.replace("http", "https"), option, "none.txt", "--json"]) == 2
    found = checks(capsys)
    assert found["platform"]["state"] == "invalid"
    assert "none.txt" in found["platform"]["found"]
    assert {"disk", "cluster"} < {*found}  # the rest is looked at all the same


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            ["--option", "experiment=x"],
            "kfp has no option 'experiment' for observations\n  → did you mean 'experiment_id'",
        ),
        (
            ["--target", "argo", "--option", "x=y"],
            "--option: argo has no option 'x' for observations\n  → options: api",
        ),
        (["--target", "dask_tenants", "--option", "clutser=kube"], "did you mean 'cluster'?"),
        (["--collector-option", "x=y"], "--collector-option x: no collector has this option"),
    ],
)
def test_an_unknown_option_is_refused_with_the_nearest_one(given, said, capsys):
    assert main(["doctor", *given]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(("given", "asked"), [((), {"argo"}), (("--insecure",), {"argo", "prometheus"})])
def test_the_variable_of_argos_command_leaves_argos_certificate_unchecked_and_no_other(
    given, asked, tmp_path, monkeypatch, capsys
):
    with Served(lambda *_: (200, {})) as argo, Served(lambda *_: (200, {})) as prometheus:
        servers = {"argo": argo, "prometheus": prometheus}
        for server in servers.values():
            server.secure(unsigned(tmp_path))
        monkeypatch.setenv("ARGO_SERVER", argo.url.removeprefix("http://"))
        monkeypatch.setenv("ARGO_INSECURE_SKIP_VERIFY", "true")
        main(["doctor", "--target", "argo", "--prometheus", prometheus.url.replace("http", "https"), "--json", *given])
        assert {name for name, server in servers.items() if server.asked} == asked
    assert ("certificate" in checks(capsys)["Prometheus"]["found"]) is ("prometheus" not in asked)
