from dataclasses import replace

import pytest
import yaml

from harness.collectors.rights import RIGHTS
from harness.in_cluster.account import account, argo_rules
from harness.in_cluster.inputs import Inputs
from harness.in_cluster.manifests import ClusterTest, belongings, job, owned
from tests.support.e2e import ROOT

TEST = ClusterTest(
    name="pipeswarm-a", run="a", namespace="load", image="i:1", target="kfp",
    inputs=Inputs(("--runs", "5")), account="observer",
)  # fmt: skip


def pod_of(manifest):
    return manifest["spec"]["template"]["spec"]


def container(manifest, name):
    return next(each for each in pod_of(manifest)["containers"] if each["name"] == name)


def kinds(manifests):
    return [each["kind"] for each in manifests]


def test_a_test_without_files_and_workers_is_one_job():
    assert belongings(TEST) == []
    assert [each["name"] for each in pod_of(job(TEST))["containers"]] == ["load", "run-folder"]


def test_text_is_sent_as_text_and_anything_else_as_base64():
    (files,) = belongings(replace(TEST, inputs=Inputs((), {"a.csv": "ä".encode(), "b.csv": b"\xff"})))
    assert files["data"] == {"a.csv": "ä"}
    assert files["binaryData"] == {"b.csv": "/w=="}
    assert files["metadata"]["namespace"] == "load"


def test_options_of_the_user_do_not_move_the_run_folder():
    inputs = Inputs(("--run-name", "A b"))
    command = container(job(replace(TEST, inputs=inputs)), "load")["command"]
    assert command.index("A b") < command.index("a")
    assert command[-1] == "a"


def test_only_the_secret_object_has_the_secret():
    test = replace(TEST, workers=3, secret="s" * 32)
    made = [*belongings(test), job(test)]
    holding = [each["kind"] for each in made if "s" * 32 in yaml.safe_dump(each)]
    assert holding == ["Secret"]


def test_workers_find_their_master_by_its_service():
    test = replace(TEST, workers=3, secret="s" * 32)
    secret, service, workers = belongings(test)
    assert kinds([secret, service, workers]) == ["Secret", "Service", "Job"]
    labels = job(test)["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    assert not service["spec"]["selector"].items() <= workers["spec"]["template"]["metadata"]["labels"].items()
    command = container(workers, "worker")["command"]
    assert command[command.index("--master-host") + 1] == service["metadata"]["name"]
    assert (workers["spec"]["parallelism"], workers["spec"]["completions"]) == (3, 3)
    master = container(job(test), "load")["command"]
    assert master[master.index("--expect-workers") + 1] == "3"


def test_the_token_of_kubeflow_is_mounted_where_it_is_read_in_every_load_generator():
    test = replace(TEST, workers=1, secret="s" * 32, kubeflow_token=True)
    for manifest, name in ((job(test), "load"), (belongings(test)[-1], "worker")):
        command = container(manifest, name)["command"]
        file = command[command.index("--token-file") + 1]
        mounted = [each["mountPath"] for each in container(manifest, name)["volumeMounts"] if each["name"] == "token"]
        assert file == f"{mounted[0]}/token"
        assert "token" in [each["name"] for each in pod_of(manifest)["volumes"]]


def test_what_is_mounted_is_a_volume_of_the_pod():
    inputs = Inputs((), {"a.csv": b"a"}, {"/fetched/b": "s3://b/b"})
    test = replace(TEST, inputs=inputs, volume="claim", workers=1, secret="s" * 32, kubeflow_token=True)
    for manifest in (job(test), belongings(test)[-1]):
        volumes = [each["name"] for each in pod_of(manifest)["volumes"]]
        mounts = {mount["name"] for each in pod_of(manifest)["containers"] for mount in each["volumeMounts"]}
        assert set(volumes) == mounts
        assert len(volumes) == len(mounts)
    runs = next(each for each in pod_of(job(test))["volumes"] if each["name"] == "runs")
    assert runs["persistentVolumeClaim"] == {"claimName": "claim"}


def test_no_container_runs_as_root_or_gains_rights():
    for manifest in (job(TEST), belongings(replace(TEST, workers=1, secret="s" * 32))[-1]):
        assert pod_of(manifest)["securityContext"]["runAsNonRoot"] is True
        for each in pod_of(manifest)["containers"]:
            assert each["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def test_what_belongs_to_a_job_is_removed_with_it():
    manifest = owned({"metadata": {"name": "x"}}, {"name": "j", "uid": "1"})
    assert manifest["metadata"]["ownerReferences"] == [
        {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "1"}
    ]


def test_the_account_may_do_what_the_published_role_allows():
    def rights(rules):
        return {
            (group, resource, verb, *rule.get("resourceNames", ()))
            for rule in rules for group in rule["apiGroups"] for resource in rule["resources"] for verb in rule["verbs"]
        }  # fmt: skip

    made = account("load", [right.rule() for right in RIGHTS])
    published = list(yaml.safe_load_all((ROOT / "deploy/rbac.yaml").read_text()))
    assert kinds(made) == kinds(published)
    assert rights(made[1]["rules"]) == rights(published[1]["rules"])
    assert made[1]["metadata"] == published[1]["metadata"]
    assert made[2]["subjects"][0]["namespace"] == made[0]["metadata"]["namespace"] == "load"


@pytest.mark.parametrize(
    ("reference", "cleanup", "granted"),
    [
        ("", "none", {"workflows": ["create"], "workflowtemplates": ["get"]}),
        ("cronwf/nightly", "terminate", {"workflows": ["create", "patch"], "cronworkflows": ["get"]}),
        ("wftmpl/a", "delete", {"workflows": ["create", "patch", "delete"], "workflowtemplates": ["get"]}),
    ],
)
def test_a_test_of_argo_may_create_workflows_beside_its_job_and_clean_them_up_as_it_was_told(
    reference, cleanup, granted
):
    role, binding = belongings(replace(TEST, rules=argo_rules(reference, cleanup)))
    assert {rule["resources"][0]: rule["verbs"] for rule in role["rules"]} == granted
    assert all(rule["apiGroups"] == ["argoproj.io"] for rule in role["rules"])
    assert {each["metadata"]["namespace"] for each in (role, binding)} == {"load"}
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "observer", "namespace": "load"}]
