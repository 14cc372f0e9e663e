"""What the pods of a prepared pipeline carry, held against a real kube-scheduler and the nodes of a real API server."""

import pytest
import yaml
from kubernetes import client

from harness.cli import main
from harness.model.errors import ExitCode
from harness.prepare.changes import prepared
from harness.prepare.settings import Settings, placement_of
from harness.simulator.cluster import Change
from harness.simulator.kube_objects.pods import render_pod
from harness.simulator.kube_objects.snapshots import pod_snapshot
from harness.simulator.platform import Platform
from tests.support.compiled import OLDER, documents
from tests.support.platforms import Journal, pool, profile, submit, upload
from tests.support.real_kubernetes import RealCluster
from tests.support.servers import until

SPOT = "kubernetes.azure.com/scalesetpriority"
TAINT = {"key": SPOT, "value": "spot", "effect": "NoSchedule"}
NAMESPACE = "spot-nodes"


def first_pod(settings, **given):
    """The part of the first step's pod that the scheduler reads, once its pipeline is prepared.

    `given` are the Kubernetes settings that the step had before.
    """
    spec, platform = documents(OLDER)
    platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"]["exec-prepare"] = given
    package = yaml.safe_dump_all(prepared([spec, platform], settings)).encode()
    journal = Journal()
    simulated = Platform(profile(pool("cpu"), pool("spot", spot=True)), 5, journal)
    submit(simulated, upload(simulated, package))
    simulated.loop.run(10)
    made = next(pod for pod in journal.saw(Change.CREATED) if pod.role == "executor")
    shown = render_pod(pod_snapshot(made, ""), str)["spec"]
    return {name: shown[name] for name in ("nodeSelector", "affinity", "tolerations") if name in shown}


def on(placement):
    return Settings(caching=True, placement=placement)


@pytest.fixture(scope="module")
def cluster(real_cluster: RealCluster):
    """A cluster with an ordinary node and a tainted spot node."""
    if not real_cluster.schedules:
        pytest.skip("the folder named by KUBEBUILDER_ASSETS holds no kube-scheduler")
    client.CoreV1Api(real_cluster.client()).create_namespace({"metadata": {"name": NAMESPACE}})
    ours = {"pipeswarm-test": NAMESPACE}
    real_cluster.add_node("ordinary", labels=ours)
    real_cluster.add_node("spotted", labels={**ours, SPOT: "spot"}, memory="8Gi", taints=[TAINT])
    yield real_cluster
    for node in ("ordinary", "spotted"):
        real_cluster.remove_node(node)


def tainted(cluster):
    """Whether the spot node has its taint; if not, it is set."""
    core = client.CoreV1Api(cluster.client())
    taints = core.read_node("spotted").spec.taints or []
    if any(each.key == SPOT for each in taints):
        return True
    core.patch_node("spotted", {"spec": {"taints": [TAINT]}})
    return False


def placed(cluster, name, carried):
    """The node that the scheduler gives such a pod, or its words if there is none."""
    from kubernetes import watch

    core = client.CoreV1Api(cluster.client())
    # Other tests may have nodes in the cluster.
    own = {"nodeSelector": {"pipeswarm-test": NAMESPACE} | carried.get("nodeSelector", {})}
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "10m"}}}
    spec = {"containers": [container], "restartPolicy": "Never", **carried, **own}
    core.create_namespaced_pod(NAMESPACE, {"metadata": {"name": name}, "spec": spec})
    selector = f"metadata.name={name}"
    for event in watch.Watch().stream(core.list_namespaced_pod, NAMESPACE, field_selector=selector, timeout_seconds=30):
        if found := event["object"].spec.node_name:
            return found
        for each in event["object"].status.conditions or ():
            if each.reason == "Unschedulable":
                return each.message
    raise AssertionError("the scheduler said nothing")


def test_a_step_prepared_for_spot_nodes_runs_on_them(cluster):
    assert placed(cluster, "prepared", first_pod(on(placement_of([], [], [], "aks")))) == "spotted"


def test_a_tainted_node_takes_only_what_tolerates_it(cluster):
    assert placed(cluster, "usual", first_pod(Settings(caching=True))) == "ordinary"
    wish = first_pod(on(placement_of([f"{SPOT}=spot"], [], [], "")))
    until(lambda: tainted(cluster), "the taint, which the controllers' own may have replaced")
    assert "1 node(s) had untolerated taint" in placed(cluster, "intolerant", wish)


def test_one_of_several_affinity_terms_is_enough(cluster):
    terms = [{"matchExpressions": [{"key": key, "operator": "Exists"}]} for key in ("no-such-label", SPOT)]
    settings = on(placement_of([], [f"{SPOT}=spot:NoSchedule"], [], ""))
    assert placed(cluster, "either", first_pod(settings, nodeAffinity=terms)) == "spotted"


def test_a_request_above_every_node_of_the_cluster_is_refused(cluster, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    context = yaml.safe_load(cluster.kubeconfig.read_text())["current-context"]
    limits = ["--spot", "aks", "--memory-limit", "20T", "--gpu", "0"]
    common = [str(OLDER), *limits, "--kube-context", context, "-o", str(tmp_path / "out.yaml")]
    assert main(["prepare", *common, "--memory-request", "10T"]) == ExitCode.BAD_CONFIG
    said = " ".join(capsys.readouterr().err.split())
    assert f"is above every node of the cluster '{context}'" in said
    assert not [*tmp_path.iterdir()]
    assert main(["prepare", *common, "--memory-request", "5G", "--quiet"]) == ExitCode.OK
