"""Tenants with Dask clusters in Kubernetes: whole sessions against the simulated operator, in simulated time."""

import orjson
import pytest

from harness.model.errors import ConfigError, TargetUnreachableError
from harness.model.http import HttpAnswer, HttpRequest
from harness.model.phases import COMPUTING, FAILED, QUEUED, SUCCEEDED
from harness.model.scenario import Scenario
from harness.simulator.engine.distributions import fixed
from harness.simulator.profile import Kubelet
from harness.targets.completed_run import CompletedRun
from harness.targets.dask_tenants import OPTIONS, own_host, prepare
from harness.targets.dask_tenants.kube import KubeTenants, quota_first, refusal
from harness.targets.dask_tenants.objects import Recipe, cluster_name, resources_of
from harness.targets.scenarios import Input, InputType
from harness.targets.target import PROCESSES, RejectedError
from tests.support.dask_platform import DaskPlatform
from tests.support.platforms import pool

INPUTS = (
    Input("width", InputType.INTEGER, required=False, default=2),
    Input("tasks", InputType.INTEGER, required=False, default=4),
    Input("task_s", InputType.DOUBLE, required=False, default=10.0),
    Input("variation", InputType.DOUBLE, required=False, default=0.0),
)
QUICK = Kubelet(start=fixed(2.0), pull_overhead_s=0.0, pull_bytes_per_s=1e15, termination_s=2.0)
QUOTA = (
    'pods "a-stage" is forbidden: exceeded quota: team-a-limits, requested: pods=1, used: pods=4, limited: pods=4'
)  # fmt: skip


def tenants(platform: DaskPlatform, limit_s: float = 900.0, resources: str = "cpu=1") -> KubeTenants:
    recipe = Recipe("image", resources_of(resources), ("dask-worker",), "t1", 900)
    return KubeTenants(recipe, "default", "", INPUTS, limit_s, clock=platform.now, pause=platform.pause)


def session(platform: DaskPlatform, exchange=None, limit_s: float = 900.0, **values) -> CompletedRun:
    given = Scenario("1", "Wide one", values, {}, "team-a")
    return tenants(platform, limit_s).submit(given, exchange or platform)


def lengths(run: CompletedRun) -> dict[str, float]:
    return {part.task: part.seconds for part in run.parts}


def test_a_session_starts_scales_computes_and_closes_in_its_tenants_namespace():
    platform = DaskPlatform(pool(cpu=64.0), kubelet=QUICK)
    run = session(platform, width=2)
    assert (run.state, run.error) == (SUCCEEDED, "")
    assert [(part.task, part.phase) for part in run.parts] == [
        ("wait for the scheduler", QUEUED), ("wait for the first worker", QUEUED), ("wait for all workers", QUEUED),
        ("compute", COMPUTING), ("close", COMPUTING),
    ]  # fmt: skip
    assert lengths(run)["compute"] == pytest.approx(2.0 + 2 * 10.0, abs=1.1)  # its pod's start, and two rounds
    assert lengths(run)["close"] == pytest.approx(2.0, abs=1.1)
    assert sum(lengths(run).values()) == pytest.approx(platform.now())
    writes = [(each.method, each.path.partition("?")[0]) for each in platform.asked if each.method != "GET"]
    root = "/apis/kubernetes.dask.org/v1/namespaces/team-a"
    assert writes == [
        ("POST", f"{root}/daskclusters"), ("POST", f"{root}/daskautoscalers"), ("POST", "/api/v1/namespaces/team-a/pods"),
        ("DELETE", f"{root}/daskclusters/{run.run}"),
    ]  # fmt: skip
    assert platform.objects("Pod", "team-a") == {}


def test_a_scenario_without_a_tenant_runs_in_the_default_namespace():
    platform = DaskPlatform(pool(cpu=64.0), kubelet=QUICK)
    tenants(platform).submit(Scenario("1", "a", {}, {}), platform)
    assert "/namespaces/default/" in platform.asked[0].path


def test_a_session_that_takes_too_long_is_closed_and_says_what_its_pods_lack():
    platform = DaskPlatform(pool(cpu=3.0), kubelet=QUICK)
    run = session(platform, limit_s=60.0, width=4)
    assert run.state == FAILED
    assert run.error.startswith("it was not over after 60 s (--answer-timeout) and was closed: worker: 0/1 nodes")
    assert "1 Insufficient cpu" in run.error
    assert platform.objects("DaskCluster") == {}
    assert [part.task for part in run.parts][-2:] == ["wait for all workers", "close"]


def test_a_worker_that_dies_while_it_computes_is_remarked():
    platform = DaskPlatform(pool(cpu=64.0), kubelet=QUICK)

    def exchange(request: HttpRequest) -> HttpAnswer:
        answer = platform(request)
        if request.method == "POST" and request.path.endswith("/pods"):
            cluster = platform.platform.cluster
            worker = next(pod for pod in cluster.pods.values() if pod.role == "worker")
            platform.platform.loop.after(5.0, cluster.kubelet.delete, worker, 0.0)
        return answer

    run = session(platform, exchange, width=2)
    assert (run.state, run.error) == (SUCCEEDED, "1 of 2 workers died while they computed")


def test_a_stage_that_fails_is_a_failed_run_with_its_last_words():
    platform = DaskPlatform(pool(cpu=64.0), kubelet=QUICK)

    def exchange(request: HttpRequest) -> HttpAnswer:
        answer = platform(request)
        if request.method == "POST" and request.path.endswith("/pods"):
            cluster = platform.platform.cluster
            stage = next(pod for pod in cluster.pods.values() if pod.role == "stage")
            words = (stage, 1, "Error", "MemoryError: Unable to allocate")
            platform.platform.loop.after(5.0, cluster.kubelet.finish, *words)
        return answer

    run = session(platform, exchange)
    assert (run.state, run.error) == (FAILED, "the stage failed: exit code 1: MemoryError: Unable to allocate")
    assert platform.objects("DaskCluster") == {}


def status(code: int, message: str) -> HttpAnswer:
    return HttpAnswer(code, orjson.dumps({"kind": "Status", "message": message}))


def test_a_quota_that_refuses_the_cluster_is_named_and_nothing_is_closed():
    platform = DaskPlatform(pool(cpu=64.0))
    asked = []

    def exchange(request: HttpRequest) -> HttpAnswer:
        asked.append(request.method)
        return status(403, QUOTA)

    with pytest.raises(
        RejectedError, match=r"^namespace team-a: the quota team-a-limits is used up: .*used: pods=4"
    ) as error:
        session(platform, exchange)
    assert error.value.status == 403
    assert asked == ["POST"]


@pytest.mark.parametrize("refused", ["/daskautoscalers", "/pods"])
def test_a_quota_that_refuses_the_rest_fails_the_run_by_name_and_closes_the_cluster(refused):
    platform = DaskPlatform(pool(cpu=64.0), kubelet=QUICK)

    def exchange(request: HttpRequest) -> HttpAnswer:
        if request.method == "POST" and request.path.endswith(refused):
            return status(403, QUOTA)
        return platform(request)

    run = session(platform, exchange)
    assert run.state == FAILED
    assert run.error.startswith("namespace team-a: the quota team-a-limits is used up: ")
    assert platform.objects("DaskCluster") == {}


def test_a_quota_that_keeps_pods_from_being_created_is_named_at_the_end():
    platform = DaskPlatform(pool(cpu=64.0))
    failing = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": QUOTA}

    def exchange(request: HttpRequest) -> HttpAnswer:
        if request.method == "GET" and "/pods?" in request.path:
            return HttpAnswer(200, b'{"items": []}')
        if request.method == "GET" and "/deployments?" in request.path:
            return HttpAnswer(200, orjson.dumps({"items": [{"metadata": {}, "status": {"conditions": [failing]}}]}))
        return platform(request)

    run = session(platform, exchange, limit_s=30.0)
    assert run.state == FAILED
    assert "and was closed: the quota team-a-limits is used up: " in run.error


@pytest.mark.parametrize("busy", [429, 500, 503])
def test_a_server_too_busy_to_list_pods_is_asked_again(busy):
    platform = DaskPlatform(pool(cpu=64.0), kubelet=QUICK)
    looks = []

    def exchange(request: HttpRequest) -> HttpAnswer:
        if request.method == "GET":
            looks.append(request)
            if len(looks) == 2:
                return status(busy, "busy")
        return platform(request)

    assert session(platform, exchange).state == SUCCEEDED


def test_an_abandoned_session_still_deletes_its_cluster():
    platform = DaskPlatform(pool(cpu=64.0), kubelet=QUICK)

    def exchange(request: HttpRequest) -> HttpAnswer:
        if request.method == "GET":
            raise TargetUnreachableError("no answer before the test was ended")
        return platform(request)

    with pytest.raises(TargetUnreachableError):
        session(platform, exchange)
    assert platform.asked[-1].method == "DELETE"
    assert platform.objects("DaskCluster") == {}


@pytest.mark.parametrize("values", [{"width": 0}, {"tasks": 0}, {"task_s": -1.0}, {"variation": 1.5}])
def test_impossible_values_are_refused_before_anything_is_sent(values):
    platform = DaskPlatform()
    with pytest.raises(RejectedError):
        session(platform, **values)
    assert platform.asked == []


def test_set_up_finds_the_operator_and_has_all_namespaces_observed():
    platform = DaskPlatform()
    found = tenants(platform).set_up(platform)
    assert found.options == {"own_namespace": "default", "namespace": ""}


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (status(404, "page not found"), "the Dask Kubernetes operator is not there"),
        (HttpAnswer(200, b'{"resources": [{"name": "daskclusters"}]}'), "the Dask Kubernetes operator is not there"),
        (HttpAnswer(200, b"<html>"), "the Dask Kubernetes operator is not there"),
        (status(403, "forbidden"), "is refused: 403 forbidden"),
    ],
)
def test_set_up_says_what_is_missing(answer, why):
    with pytest.raises(TargetUnreachableError, match=why):
        tenants(DaskPlatform()).set_up(lambda _: answer)


def test_a_refusal_says_what_to_do():
    assert "kubectl create namespace" in refusal(status(404, 'namespaces "x" not found'), "DaskCluster", "x")
    assert "grant the account" in refusal(status(403, "forbidden: User a cannot create"), "pods", "x")
    assert refusal(status(500, "broken"), "pods", "x") == "broken"
    # A real API server's answer where its quota controller has not discovered the type yet.
    young = 'daskclusters.kubernetes.dask.org "a" is forbidden: status unknown for quota: small, resources: count/d'
    said = refusal(status(403, young), "DaskCluster", "x")
    assert said == f"namespace x: the quota small has not been counted yet, try again in minutes: {young}"
    assert quota_first("other") == "other"


@pytest.mark.parametrize(
    "text", ["cpu", "cpu=", "cpu=many", "cpu=0", "cpu=1,cpu=2", "=1", "cpu=-1", "a b=1", "cpu=1;memory=1"]
)
def test_resources_that_are_none_are_refused(text):
    with pytest.raises(ConfigError, match="--resources"):
        resources_of(text)


def test_clusters_have_names_that_the_operator_takes():
    for run_name in ("1-wide", "Ünïcode / ../..", "x" * 200, ""):
        name = cluster_name(run_name)
        assert len(name) <= 53
        assert name == name.lower()
        assert name.replace("-", "").isalnum()
    assert cluster_name("a") != cluster_name("a")


def test_only_local_clusters_have_an_address_of_their_own():
    texts = {"namespace": "", **{each.name: str(each.default) for each in OPTIONS}}
    assert own_host(texts) == PROCESSES
    assert own_host(texts | {"cluster": "kube"}) == ""
    kept = prepare(texts | {"cluster": "kube"}, simulated=True).options
    assert (kept["cluster"], kept["resources"]) == ("kube", "cpu=1,memory=2Gi")
    with pytest.raises(ConfigError, match="--worker-command"):
        prepare(texts | {"cluster": "kube", "worker-command": " "}, simulated=True)
