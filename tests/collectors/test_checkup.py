import base64
import json
from email.utils import formatdate
from pathlib import Path

import pytest
import yaml

from harness.collectors import checkup
from harness.collectors.checkup import Check, State
from harness.collectors.collector import ObserverSettings
from harness.collectors.rights import RIGHTS
from harness.model.errors import ConfigError
from tests.support.e2e import wait_for
from tests.support.real_kubernetes import admin
from tests.support.real_parts.kube import allow, token
from tests.support.servers import Served, kubeconfig

NOW_S = 1_800_000_000.0


def jwt(**claims):
    part = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    return f"e30.{part}.signature"


@pytest.mark.parametrize(
    ("token", "state", "said"),
    [
        ("", State.OK, "anonymous"),
        ("opaque", State.OK, "not known"),
        (jwt(sub="me"), State.OK, "not known"),
        (jwt(exp="soon"), State.OK, "not known"),
        (jwt(exp=1e300), State.OK, "not known"),
        (jwt(exp=NOW_S + 86_400), State.OK, "expires at 2027-01-16"),
        (jwt(exp=NOW_S + 600), State.LIMITED, "expires in 10 min"),
        (jwt(exp=NOW_S - 1), State.BROKEN, "expired at 2027-01-15"),
    ],
)
def test_a_tokens_expiry_is_read_and_never_the_token_shown(token, state, said):
    check = checkup.token(token, NOW_S)
    assert check.state is state
    assert said in check.found
    assert not token or token not in check.found + check.cost


def test_a_token_that_is_renewed_may_expire_soon_but_not_have_expired():
    soon, gone = jwt(exp=NOW_S + 600), jwt(exp=NOW_S - 1)
    check = checkup.token(soon, NOW_S, source="the kubeconfig")
    assert (check.state, check.cost) == (State.OK, "")
    assert check.found == "expires in 10 min; a test reads the kubeconfig again before"
    assert checkup.token(gone, NOW_S, source="the kubeconfig").state is State.BROKEN


@pytest.mark.parametrize(
    ("ahead_s", "state", "said"),
    [
        (0.0, State.OK, "agrees"),
        (1.0, State.OK, "agrees"),
        (30.0, State.LIMITED, "+30 s"),
        (-30.0, State.LIMITED, "-3"),
    ],
)
def test_a_clock_is_compared_to_whole_seconds(ahead_s, state, said):
    check = checkup.clock(NOW_S, formatdate(NOW_S + ahead_s, usegmt=True))
    assert check.state is state
    assert said in check.found


@pytest.mark.parametrize("date", ["", "tomorrow"])
def test_a_server_without_a_date_leaves_the_clock_unknown(date):
    assert checkup.clock(NOW_S, date).state is State.LIMITED


def test_the_rights_are_those_of_the_shipped_role():
    documents = yaml.safe_load_all((Path(__file__).parents[2] / "deploy/rbac.yaml").read_text())
    rules = [rule for document in documents for rule in document.get("rules", ())]
    shipped = {
        (group, name, *rule.get("resourceNames", ())): tuple(rule["verbs"])
        for rule in rules
        for group in rule["apiGroups"]
        for name in rule["resources"]
    }
    assert {(r.group, r.resource, *filter(None, [r.only])): r.verbs for r in RIGHTS} == shipped


def test_without_a_cluster_the_reason_is_said(tmp_path):
    found, role = checkup.cluster(ObserverSettings(host="", kubeconfig=str(tmp_path / "none")))
    assert [(check.name, check.state) for check in found] == [("cluster", State.LIMITED)]
    assert "kubeconfig" in found[0].found
    assert role == ""


def test_a_prometheus_that_does_not_answer_costs_its_metrics():
    check = checkup.prometheus(ObserverSettings(host="", prometheus="http://127.0.0.1:9"))
    assert (check.state, check.cost) == (State.LIMITED, "its metrics are not used")
    assert checkup.prometheus(ObserverSettings(host="")).state is State.LIMITED


def test_a_page_of_metrics_is_tried():
    said = 'argo_workflows_workers_busy_count{worker_type="workflow_queue"} 3\n'
    with Served(lambda path, _: (200, said) if path == "/metrics" else (404, "")) as server:
        addresses = [f"{server.url}/metrics", f"{server.url}/elsewhere", "http://127.0.0.1:9/metrics"]
        found = list(
            checkup.pages(ObserverSettings(host="", metrics=tuple(("argo", address) for address in addresses)))
        )
        (wrong,) = checkup.pages(ObserverSettings(host="", metrics=(("mysql", addresses[0]),)))
    assert [check.state for check in found] == [State.OK, State.LIMITED, State.LIMITED]
    assert f"{addresses[0]} has 1 of the profile's" in found[0].found
    assert "404" in found[1].found
    assert wrong == Check("metrics of mysql", State.LIMITED, wrong.found, "is it the page of this profile?")
    with pytest.raises(ConfigError, match="there is no metric profile 'nosuch'"):
        list(checkup.pages(ObserverSettings(host="", metrics=(("nosuch", addresses[0]),))))


def test_a_real_api_server_tells_right_by_right_what_is_missing(real_cluster, tmp_path):
    found, role = checkup.cluster(ObserverSettings(host="", kubeconfig=str(real_cluster.kubeconfig)))
    rights = {check.name: check.state for check in found if check.name.startswith("may")}
    assert len(rights) >= len(RIGHTS) - 1  # Karpenter need not be installed
    assert set(rights.values()) == {State.OK}
    assert role == ""
    assert Check("metrics-server", State.LIMITED, "not installed", found[-2].cost) in found
    kube, subject = admin(real_cluster), {"kind": "ServiceAccount", "name": "reader", "namespace": "checkup"}
    kube.create("/api/v1/namespaces", {"metadata": {"name": "checkup"}})
    reader = kubeconfig(
        tmp_path / "reader", real_cluster.url, token=token(kube, "checkup", "reader"), ca=str(real_cluster.ca)
    )
    allow(kube, "", subject, {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["get", "list"]})
    found, role = checkup.cluster(ObserverSettings(host="", kubeconfig=reader))
    assert {check.name: check.found for check in found}["may get, list, watch nodes"] == "not watch"
    allow(kube, "", subject, *yaml.safe_load(role)["rules"], name="checkup-more")

    def nothing_is_missing():
        return checkup.cluster(ObserverSettings(host="", kubeconfig=reader))[1] == ""

    wait_for(nothing_is_missing, 10)  # the authorizer sees a new role a moment later
