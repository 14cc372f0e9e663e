"""The Python client of Kubernetes against the API."""

from typing import Any

import pytest
from kubernetes import client, watch
from kubernetes.client import ApiException

from tests.support.kube_cluster import Server, metadata, pod


@pytest.fixture
def core(server: Server) -> client.CoreV1Api:
    return client.CoreV1Api(server.client())


def _names(found: Any) -> list[str]:
    return [each.metadata.name for each in found.items]


def _events(core: client.CoreV1Api, **options: Any) -> list[tuple[str, str]]:
    options = {"timeout_seconds": 1, **options}
    stream = watch.Watch().stream(core.list_namespaced_pod, "default", **options)
    return [(each["type"], each["object"].metadata.name) for each in stream]


def test_everything_is_listed_typed(core: client.CoreV1Api, server: Server) -> None:
    assert _names(core.list_node()) == ["node-0", "node-1"]
    assert _names(core.list_pod_for_all_namespaces()) == ["p0", "p1", "p2", "p3", "p4"]
    assert _names(core.list_persistent_volume_claim_for_all_namespaces()) == ["store"]
    (event,) = core.list_event_for_all_namespaces().items
    assert (event.reason, event.involved_object.name, event.count) == ("FailedScheduling", "p0", 3)
    custom = client.CustomObjectsApi(server.client())
    (workflow,) = custom.list_cluster_custom_object("argoproj.io", "v1alpha1", "workflows")["items"]
    assert (workflow["kind"], workflow["status"]["phase"]) == ("Workflow", "Running")


def test_metrics_are_read_and_not_watched(server: Server) -> None:
    api = client.CustomObjectsApi(server.client())
    (usage,) = api.list_cluster_custom_object("metrics.k8s.io", "v1beta1", "nodes")["items"]
    assert usage["usage"] == {"cpu": "250m", "memory": "512Mi"}
    with pytest.raises(ApiException) as refusal:
        api.list_cluster_custom_object("metrics.k8s.io", "v1beta1", "nodes", watch=True)
    assert refusal.value.status == 405


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 7])
def test_the_pages_of_a_list_are_one_state(core: client.CoreV1Api, server: Server, limit: int) -> None:
    page = core.list_namespaced_pod("default", limit=limit)
    names, version = _names(page), page.metadata.resource_version
    server.do(lambda cluster: cluster.add("pods", pod("p00")))
    server.do(lambda cluster: cluster.store.delete("pods", "default", "p4"))
    while page.metadata._continue:
        assert page.metadata.remaining_item_count == 5 - len(names)
        page = core.list_namespaced_pod("default", limit=limit, _continue=page.metadata._continue)
        assert page.metadata.resource_version == version
        names += _names(page)
    assert names == ["p0", "p1", "p2", "p3", "p4"]
    assert _names(core.list_namespaced_pod("default")) == ["p0", "p00", "p1", "p2", "p3"]


def test_selectors_narrow_lists_and_pages(core: client.CoreV1Api) -> None:
    assert _names(core.list_namespaced_pod("default", label_selector="app in (x),i!=3")) == ["p1"]
    assert _names(core.list_namespaced_pod("default", field_selector="spec.nodeName=node-1")) == ["p1", "p3"]
    page = core.list_namespaced_pod("default", label_selector="app=y", limit=2)
    assert _names(page) == ["p0", "p2"]
    assert page.metadata.remaining_item_count is None
    page = core.list_namespaced_pod("default", label_selector="app=y", limit=2, _continue=page.metadata._continue)
    assert _names(page) == ["p4"]
    assert not page.metadata._continue


def test_a_watch_begins_with_existing_objects_and_ends_at_its_timeout(core: client.CoreV1Api) -> None:
    assert _events(core) == [("ADDED", f"p{index}") for index in range(5)]


def test_a_watch_resumes_from_the_version_of_a_list(core: client.CoreV1Api, server: Server) -> None:
    version = core.list_namespaced_pod("default").metadata.resource_version
    server.do(lambda cluster: cluster.add("pods", pod("p5")))
    server.do(lambda cluster: cluster.add("pods", pod("p5", phase="Running")))
    server.do(lambda cluster: cluster.store.delete("pods", "default", "p5"))
    server.do(lambda cluster: cluster.add("pods", pod("elsewhere", "kubeflow")))
    expected = [("ADDED", "p5"), ("MODIFIED", "p5"), ("DELETED", "p5")]
    assert _events(core, resource_version=version) == expected
    assert _events(core, resource_version=str(int(version) + 1)) == expected[1:]


def test_a_watch_reports_changes_while_it_is_open(core: client.CoreV1Api, server: Server) -> None:
    seen = []
    stream = watch.Watch()
    for event in stream.stream(core.list_namespaced_pod, "default", field_selector="metadata.name=p9"):
        seen.append((event["type"], event["object"].status.phase))
        if event["type"] == "DELETED":
            stream.stop()
        elif event["object"].status.phase == "Pending":
            server.do(lambda cluster: cluster.add("pods", pod("p9", phase="Running")))
        else:
            server.do(lambda cluster: cluster.store.delete("pods", "default", "p9"))
        if len(seen) == 1:
            assert seen == [("ADDED", "Pending")]
    assert seen == [("ADDED", "Pending"), ("MODIFIED", "Running"), ("DELETED", "Running")]


@pytest.fixture(autouse=True)
def _a_pod_for_the_open_watch(request: pytest.FixtureRequest, server: Server) -> None:
    if request.node.name == "test_a_watch_reports_changes_while_it_is_open":
        server.do(lambda cluster: cluster.add("pods", pod("p9")))


def test_entering_and_leaving_a_selection_look_like_creation_and_deletion(
    core: client.CoreV1Api, server: Server
) -> None:
    version = server.cluster.store.version
    for phase in ("Running", "Running", "Succeeded"):
        server.do(lambda cluster, phase=phase: cluster.add("pods", pod("p0", phase=phase)))
    selected = {"resource_version": str(version), "field_selector": "status.phase=Running"}
    stream = watch.Watch().stream(core.list_namespaced_pod, "default", timeout_seconds=1, **selected)
    events = [
        (each["type"], each["object"].status.phase, int(each["object"].metadata.resource_version)) for each in stream
    ]
    assert events == [
        ("ADDED", "Running", version + 1),
        ("MODIFIED", "Running", version + 2),
        ("DELETED", "Running", version + 3),  # the last state that was selected, at the version of the change
    ]


def test_bookmarks_are_sent_on_request(core: client.CoreV1Api, server: Server) -> None:
    server.do(lambda cluster: cluster.add("nodes", {"metadata": metadata("late"), "status": {}}))
    stream = watch.Watch().stream(
        core.list_namespaced_pod,
        "default",
        timeout_seconds=3,
        allow_watch_bookmarks=True,
        resource_version=str(server.cluster.store.version - 1),
    )
    marks = [each for each in stream if each["type"] == "BOOKMARK"]
    # The bookmark names the newest version although no pod has changed.
    assert [each["raw_object"]["metadata"]["resourceVersion"] for each in marks] == [str(server.cluster.store.version)]
    assert marks[0]["raw_object"]["kind"] == "Pod"


def test_initial_events_can_be_streamed_and_end_with_a_bookmark(core: client.CoreV1Api) -> None:
    stream = watch.Watch().stream(
        core.list_namespaced_pod,
        "default",
        timeout_seconds=1,
        allow_watch_bookmarks=True,
        send_initial_events=True,
        resource_version_match="NotOlderThan",
    )
    events = [(each["type"], each["raw_object"]["metadata"]) for each in stream]
    assert [kind for kind, _ in events][:6] == ["ADDED"] * 5 + ["BOOKMARK"]
    assert events[5][1]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_a_pod_is_deleted_with_grace_and_then_at_once(core: client.CoreV1Api, server: Server) -> None:
    ending = core.delete_namespaced_pod("p0", "default", grace_period_seconds=7)
    assert ending.metadata.deletion_grace_period_seconds == 7
    assert core.read_namespaced_pod("p0", "default").metadata.deletion_timestamp is not None
    core.delete_namespaced_pod("p0", "default", body=client.V1DeleteOptions(grace_period_seconds=0))
    assert [each[4] for each in server.cluster.asked if each[0] == "delete"] == [7.0, 0.0]
    with pytest.raises(ApiException) as missing:
        core.read_namespaced_pod("p0", "default")
    assert missing.value.status == 404


def test_a_dry_run_is_refused_and_changes_nothing(core: client.CoreV1Api, server: Server) -> None:
    for tried in (
        lambda: core.delete_namespaced_pod("p0", "default", dry_run="All"),
        lambda: core.delete_namespaced_pod("p0", "default", body=client.V1DeleteOptions(dry_run=["All"])),
        lambda: core.patch_node("node-0", {"spec": {"unschedulable": True}}, dry_run="All"),
    ):
        with pytest.raises(ApiException, match="does not try changes"):
            tried()
    assert server.cluster.asked == []


def test_a_node_is_cordoned_and_removed(core: client.CoreV1Api, server: Server) -> None:
    assert core.patch_node("node-0", {"spec": {"unschedulable": True}}).spec.unschedulable
    assert _names(core.list_node(field_selector="spec.unschedulable=true")) == ["node-0"]
    assert server.cluster.asked == [("patch", "nodes", "", "node-0", {"spec": {"unschedulable": True}})]
    assert not core.patch_node("node-0", {"spec": {"unschedulable": None}}).spec.unschedulable
    assert core.delete_node("node-0").status == "Success"
    assert _names(core.list_node()) == ["node-1"]


def test_an_eviction_may_be_refused(core: client.CoreV1Api, server: Server) -> None:
    eviction = client.V1Eviction(metadata=client.V1ObjectMeta(name="p0", namespace="default"))
    core.create_namespaced_pod_eviction("p0", "default", eviction)
    assert core.read_namespaced_pod("p0", "default").metadata.deletion_timestamp is not None
    server.do(lambda cluster: cluster.guarded.add("p1"))
    eviction.metadata.name = "p1"
    with pytest.raises(ApiException) as refusal:
        core.create_namespaced_pod_eviction("p1", "default", eviction)
    assert refusal.value.status == 429


def test_a_deployment_is_scaled(server: Server) -> None:
    apps = client.AppsV1Api(server.client())
    scale = apps.read_namespaced_deployment_scale("web", "default")
    assert (scale.spec.replicas, scale.status.replicas, scale.status.selector) == (2, 2, "app=web")
    scale.spec.replicas = 5
    assert apps.replace_namespaced_deployment_scale("web", "default", scale).spec.replicas == 5
    patched = apps.patch_namespaced_deployment_scale("web", "default", {"spec": {"replicas": 0}})
    assert not patched.spec.replicas
    replicas = [each[4] for each in server.cluster.asked]
    assert replicas == [{"spec": {"replicas": 5}}, {"spec": {"replicas": 0}}]


def test_a_write_over_an_unseen_version_conflicts(core: client.CoreV1Api) -> None:
    seen = core.read_node("node-0").metadata.resource_version
    core.patch_node("node-0", {"metadata": {"labels": {"a": "b"}}})
    with pytest.raises(ApiException) as refusal:
        core.patch_node("node-0", {"metadata": {"resourceVersion": seen}, "spec": {"unschedulable": True}})
    assert refusal.value.status == 409


def test_status_and_server_fields_in_a_write_have_no_effect(core: client.CoreV1Api, server: Server) -> None:
    core.patch_node("node-0", {"status": {"capacity": None}, "metadata": {"creationTimestamp": None}})
    assert server.cluster.asked == []
    assert core.read_node("node-0").status.capacity["cpu"] == "4"
