"""The rights that Pipeswarm's files and commands grant: what their holder could do at most."""

import re

import pytest
import yaml

from harness.collectors.rights import KUBELETS, RIGHTS
from harness.in_cluster.account import account, argo_rules
from tests.support.e2e import ROOT

# Each of these lets its holder run commands, read Secrets, or take on another account.
DANGEROUS = {
    "*", "nodes/proxy", "pods/exec", "pods/attach", "pods/portforward", "pods/proxy", "pods/ephemeralcontainers",
    "services/proxy", "secrets", "serviceaccounts/token", "nodes/exec", "certificatesigningrequests",
}  # fmt: skip
TABLE = (
    (ROOT / "docs" / "observation.md").read_text().partition("### What each right gives away")[2].partition("\n## ")[0]
)
GRANTED = {
    "deploy/rbac.yaml": list(yaml.safe_load_all((ROOT / "deploy/rbac.yaml").read_text())),
    "run-in-cluster": account("load", [right.rule() for right in RIGHTS]),
}


def rules(documents):
    return [rule for document in documents for rule in document.get("rules", ())]


@pytest.mark.parametrize("source", GRANTED)
def test_the_observers_account_may_only_look(source):
    for rule in rules(GRANTED[source]):
        assert DANGEROUS.isdisjoint(rule["resources"])
        assert {"get", "list", "watch"}.issuperset(rule["verbs"])


def test_what_lets_run_commands_is_a_file_of_its_own_that_says_so():
    text = (ROOT / "deploy/rbac-kubelets.yaml").read_text()
    assert rules(yaml.safe_load_all(text)) == [KUBELETS.rule()]
    assert "run commands in every container" in text
    others = [path for path in ROOT.joinpath("deploy").rglob("*.y*ml") if path.name != "rbac-kubelets.yaml"]
    assert not [path for path in others if "nodes/proxy" in path.read_text()]


def test_the_page_says_of_every_right_what_it_gives_away():
    named = set(re.findall(r"`([a-z/]+)`", TABLE))
    of_argo = [rule for kind in ("wftmpl/a", "cwft/a", "cronwf/a") for rule in argo_rules(kind, "delete")]
    granted = {
        name for rule in [*rules(GRANTED["deploy/rbac.yaml"]), KUBELETS.rule(), *of_argo] for name in rule["resources"]
    }
    assert granted <= named
