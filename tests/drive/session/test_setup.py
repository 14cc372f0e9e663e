"""What is refused before the platform is contacted."""

from types import SimpleNamespace

import pytest

from harness.drive.session import setup as run_setup
from harness.model.errors import ConfigError
from harness.model.plan import Plan
from harness.targets import argo
from harness.targets.credentials import Credentials
from harness.targets.target import Cleanup


def set_up(monkeypatch, host, cleanup=Cleanup.NONE, *, with_credentials=True):
    plan = Plan("argo", host, {}, 1, 0, False, {"workflow": '{"spec": {}}'})
    monkeypatch.setattr(run_setup, "plan_load", lambda *_, **__: plan)
    settings = SimpleNamespace(host=host, cleanup=cleanup)
    checked = SimpleNamespace(settings=settings, prepared=SimpleNamespace(package=None))
    return run_setup._set_up(checked, run_setup.RunContext(argo, Credentials(), with_credentials, None, 1))


def test_a_host_that_a_visitor_enters_does_not_open_the_kubeconfig(monkeypatch):
    monkeypatch.setattr(run_setup.kubeconfig, "resolved", lambda _: pytest.fail("the kubeconfig was read"))
    with pytest.raises(ConfigError, match="not for hosts of the web form"):
        set_up(monkeypatch, "kubeconfig", with_credentials=False)


@pytest.mark.parametrize("with_credentials", [True, False])
def test_a_service_that_is_named_without_its_namespace_is_told_as_that(monkeypatch, with_credentials):
    with pytest.raises(ConfigError, match="'kube://ml-pipeline' names no service of a cluster"):
        set_up(monkeypatch, "kube://ml-pipeline", with_credentials=with_credentials)


def test_a_way_to_clean_up_that_the_platform_lacks_is_refused(monkeypatch):
    with pytest.raises(ConfigError, match="argo has no such clean-up") as raised:
        set_up(monkeypatch, "http://127.0.0.1:9", Cleanup.ARCHIVE)
    assert raised.value.hint == "use terminate or delete"
