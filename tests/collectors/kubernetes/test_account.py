"""What an account is told that may not use a service of the cluster."""

import re
from pathlib import Path

import pytest

from harness.collectors.kubernetes import account
from harness.model.errors import ConfigError
from harness.targets.kube_service import KubeService

LOAD = Path(__file__).parents[3] / "docs" / "load.md"


@pytest.mark.parametrize("missing", [{"get"}, {"create"}, {"get", "create"}])
def test_a_refused_account_is_told_the_verbs_that_the_docs_name(monkeypatch, missing):
    monkeypatch.setattr(account, "may", lambda client, verb, *where, **named: verb not in missing)
    with pytest.raises(ConfigError) as refused:
        account._demand_proxy(None, KubeService.parse("kube://kubeflow/ml-pipeline:8888"))
    said = str(refused.value)
    assert all(verb in said.splitlines()[0] for verb in missing)
    documented = re.search(
        r"needs ([^;]*?) on\s+`services/proxy`.*?;[^.]* need ([^.]*)\.", LOAD.read_text("utf-8"), re.DOTALL
    )
    needed, for_clean_up = (set(re.findall("`([a-z]+)`", part)) for part in documented.groups())
    assert f"the verbs {' and '.join(sorted(needed, reverse=True))} on services/proxy" in said
    assert all(verb in said.rpartition("clean-ups")[2] for verb in for_clean_up)
