"""What a plan's requests carry: the token of a kubeconfig, for as long as the test lasts."""

import sys
import time

from harness.collectors.kubernetes import account
from harness.drive.http.clients import client_of
from harness.model.errors import ExitCode
from harness.model.http import HttpAnswer, HttpRequest
from harness.model.plan import Plan
from harness.plan import kubeconfig
from harness.targets import credentials
from harness.targets.credentials import Credentials
from tests.support.servers import kubeconfig as kubeconfig_of
from tests.support.servers import serving, until

# An exec plugin, as kubectl runs it: each login gives another token.
PLUGIN = """
import json, pathlib
count = pathlib.Path(__file__).with_name("logins")
number = int(count.read_text()) + 1 if count.exists() else 1
count.write_text(str(number))
print(json.dumps({
    "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
    "status": {"token": f"token-{number}"},
}))
"""


def test_a_token_of_an_exec_plugin_is_renewed_during_a_test(tmp_path, monkeypatch):
    (tmp_path / "login.py").write_text(PLUGIN)
    tokens, over = [], set()

    def kubernetes(request):
        tokens.append(request.headers["Authorization"])
        return HttpAnswer(401 if tokens[-1] in over else 200, b"{}")

    with serving(kubernetes) as url:
        login = {
            "apiVersion": "client.authentication.k8s.io/v1", "command": sys.executable,
            "args": [str(tmp_path / "login.py")], "interactiveMode": "Never",
        }  # fmt: skip
        monkeypatch.setenv("KUBECONFIG", kubeconfig_of(tmp_path / "config", url, user={"exec": login}))
        monkeypatch.setattr(credentials, "_RUN_AFTER_REFUSAL_S", 0.2)
        plan = kubeconfig.resolved(Plan("argo", "kubeconfig", {}, 1, 0, False, {}, started_at=time.time_ns()))
        client = client_of(plan, Credentials())

        def sent():
            client(HttpRequest("GET", "/version"))
            return tokens[-1]

        first = sent()
        assert first.startswith("Bearer token-")
        over.add(first)
        until(lambda: sent() != first, "the token was renewed")
        client.close()


def test_the_token_of_another_cluster_is_not_given_for_this_one(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("KUBECONFIG", kubeconfig_of(tmp_path / "config", "https://other.example", token="t0ken"))
    assert account.main("token", "", "https://k8s.example") == ExitCode.BAD_CONFIG
    assert "t0ken" not in capsys.readouterr().out
    assert account.main("token", "", "https://other.example") == ExitCode.OK
    assert capsys.readouterr().out == "t0ken\n"
