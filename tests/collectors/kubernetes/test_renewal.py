"""How often an exec plugin of the kubeconfig is asked for a token."""

import base64
import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.collectors.collector import ObserverSettings
from harness.collectors.journal import Journal
from harness.collectors.kubernetes import account
from harness.collectors.kubernetes.account import access
from harness.collectors.kubernetes.kube_api import KubeApi, connect
from harness.collectors.kubernetes.renewal import Renewal
from harness.collectors.source_health import UnreachableError
from harness.store.folder import RunFolder
from tests.support.servers import Served, kubeconfig

BEGUN = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("life_s", "asked_at_s"),
    [(20, [16, 32]), (200, [160, 320]), (3600, [3300, 6600])],
)
def test_a_token_is_renewed_in_the_last_fifth_of_its_life_at_most_five_minutes_before_its_end(
    life_s: int, asked_at_s: list[int]
) -> None:
    now_s = 0

    def after(seconds: int) -> datetime:
        return BEGUN + timedelta(seconds=seconds)

    loader, asked = SimpleNamespace(expiry=after(life_s)), []

    def refresh(_: object) -> None:
        asked.append(now_s)
        loader.expiry = after(now_s + life_s)

    renewal = Renewal(loader, refresh, now=lambda: after(now_s).timestamp())
    for now_s in range(2 * life_s + 1):  # noqa: B007  # the clock
        renewal(None)
    assert asked[:2] == asked_at_s


def test_a_plugin_that_has_nothing_newer_is_asked_every_second_at_most() -> None:
    asked, now_s = [], BEGUN.timestamp()
    renewal = Renewal(SimpleNamespace(expiry=BEGUN), asked.append, now=lambda: now_s)
    for _ in range(100):  # a request each tenth of a second
        now_s += 0.1
        renewal(None)
    assert 9 <= len(asked) <= 10


def test_a_token_without_an_expiry_is_not_renewed() -> None:
    renewal = Renewal(SimpleNamespace(), lambda _: pytest.fail("nothing says that it expires"))
    renewal(None)
    assert renewal.expires_s is None


def test_the_plugin_runs_once_for_many_requests_with_a_token_of_a_minute_and_the_load_is_told_of_its_expiry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls, expires = tmp_path / "calls", datetime.now(UTC).replace(microsecond=0) + timedelta(minutes=1)
    plugin = tmp_path / "plugin.py"
    status = {"token": "t0ken", "expirationTimestamp": expires.strftime("%Y-%m-%dT%H:%M:%SZ")}
    credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    plugin.write_text(f"open({str(calls)!r}, 'a').write('x')\nprint({json.dumps(credential)!r})\n")
    command = {"apiVersion": credential["apiVersion"], "command": sys.executable, "args": [str(plugin)],
               "interactiveMode": "Never"}  # fmt: skip
    with Served(lambda _path, _query: (200, {})) as server, RunFolder.create(tmp_path, "r").recorder() as recorder:
        config = kubeconfig(tmp_path / "config", server.url, user={"exec": command})
        settings = ObserverSettings(host="", kubeconfig=config, kube_requests_per_s=1000.0)
        api = KubeApi(settings, Journal(recorder))
        for _ in range(10):
            api.get("/version")
        assert server.tokens == ["Bearer t0ken"] * 10
        assert calls.read_text() == "x"
        found = access(*connect(kubeconfig=config))
        assert (found.token, found.token_expires_s) == ("t0ken", expires.timestamp())
        monkeypatch.setenv("KUBECONFIG", config)
        assert account.main("token", "x") == 0
    assert [*map(str.strip, capsys.readouterr().out.splitlines())] == ["t0ken", str(expires.timestamp())]


@pytest.mark.attack("Answers and messages of the network")
def test_a_provider_of_the_kubeconfig_is_not_asked_and_its_expired_token_is_named(tmp_path: Path) -> None:
    payload = base64.urlsafe_b64encode(b'{"exp": 1000000000}').decode().rstrip("=")
    with Served(lambda _path, _query: (200, {})) as server:
        given = {"id-token": f"h.{payload}.s", "refresh-token": "r", "client-id": "i", "client-secret": "s",
                 "idp-issuer-url": server.url}  # fmt: skip
        user = {"auth-provider": {"name": "oidc", "config": given}}
        config = kubeconfig(tmp_path / "config", server.url, user=user)
        with pytest.raises(UnreachableError, match="auth-provider has expired; any kubectl command renews it"):
            connect(kubeconfig=config)
        assert server.asked == []
