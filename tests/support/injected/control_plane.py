"""Faults of the API server, the database, the workflow controller and etcd."""

from collections.abc import Callable

from harness.model import Outcome
from harness.model.phases import CACHED, LIST_SECONDS, MYSQL_CONNECTIONS, MYSQL_ERRORS, MYSQL_MOST_CONNECTIONS
from tests.support.injected.loads import steady
from tests.support.timelines import GIB, Story, burst


def api_throttled() -> Story:
    story = burst(120, pool=12, slots=20)
    story.records = [r for r in story.records if type(r).__name__ != "Submission"]
    for seq in range(120):
        story.submit(seq, lag=0.0004 * seq, service=max(0.03, (seq - 10) / 5) + 0.03)
    return story


def api_errors() -> Story:
    story = steady()
    for seq in range(80, 100):
        story.submit(seq, due=2.0 * seq, outcome=Outcome.REJECTED, status=503, error="upstream connect error")
    story.intended = 100
    return story


def db(message: str) -> Story:
    story = steady()
    for seq in range(80, 110):
        story.submit(seq, due=2.0 * seq, outcome=Outcome.REJECTED, status=500, error=message)
    story.intended = 110
    return story


def crowded(story: Story, refused: float = 2.0, instance: str = "mysql:9104", since: int = 60) -> Story:
    """A database that refuses so many connections a second for half a minute, by its exporter's counters."""
    for second in range(-90, 151, 15):
        for error, rate in (("max_connections", refused * (since <= second < since + 30)), ("internal", 0.1)):
            story.sample(float(second), MYSQL_ERRORS, rate, error=error, instance=instance)
        story.sample(float(second), MYSQL_CONNECTIONS, 151.0 if since <= second < since + 30 else 20.0)
        story.sample(float(second), MYSQL_MOST_CONNECTIONS, 151.0)
    return story


def quota() -> Story:
    story = steady()
    words = 'pods "x-1" is forbidden: exceeded quota: compute, requested: requests.cpu=1, used: requests.cpu=20, limited: requests.cpu=20'
    story.event(20.0, "Task", "prepare", "PENDING", words, run="run-0010", type="Warning")
    return story


def waiting(target: str, message: str) -> Story:
    """Workflows wait before their first pod, and say why."""
    story = steady(first=lambda seq: 5.0 if 10 <= seq < 20 else 0.5)
    story.target = target
    for seq in range(10, 20):
        story.event(20.0 + seq, "Task", "", "PENDING", message, run=f"run-{seq:04d}", type="Warning")
    return story


def piling_up() -> Story:
    """The number of finished workflows only grows."""
    story = steady()
    for second in range(0, 60, 15):
        for phase, count in (("Succeeded", 9_000 + second), ("Failed", 300), ("Running", 20)):
            story.sample(float(second), "argo_workflows", float(count), phase=phase)
    return story


def controller(
    *, token_s: float | None = None, queued_s: float = 0.5, busy: float = 1.0, updates: float = 1.0, grows: bool = True
) -> Story:
    """A slow controller, and what its own metrics say: of an idle one by default."""
    story = backlog() if grows else steady(gap=lambda _: 7.0)
    for second in range(15, 165, 15):
        if token_s is not None:
            story.sample(second, "argo_client_wait_s", token_s, quantile="0.5")
        story.sample(second, "argo_queue_wait_s", queued_s, queue_name="workflow_queue", quantile="0.5")
        story.sample(second, "argo_working_workers", busy, queue_name="workflow_queue")
        labels = {"kind": "workflows", "verb": "Update", "status_code": "200"}
        story.sample(second, "argo_k8s_requests_per_s", updates, **labels)
        labels = {"kind": "pods", "verb": "Create", "status_code": "201"}
        story.sample(second, "argo_k8s_requests_per_s", 1.2 * updates, **labels)
    return story


def webhook() -> Story:
    """Pods are created late; the API server takes long for them, and for nothing else."""
    story = steady(gap=lambda _: 5.0)
    for second in range(15, 165, 15):
        for kind, verb, seconds in (("pods", "Create", 5.0), ("workflows", "Update", 0.05), ("events", "Create", 0.05)):
            story.sample(second, "argo_k8s_request_s", seconds, quantile="0.5", kind=kind, verb=verb)
    return story


def told(story: Story, arguments: str) -> Story:
    """The same with the arguments and variables of the controller's pod."""
    story.event(0.0, "Platform", "workflow-controller", "Arguments", arguments, namespace="kubeflow")
    return story


def backlog() -> Story:
    """A controller that can't keep up."""
    return steady(gap=lambda seq: 0.3 + seq / 5, first=lambda seq: 0.5 + seq / 8)


def etcd(last: float, quota: float | None = 2.0 * GIB, first: float | None = None) -> Story:
    """The size of the cluster's etcd, from `first` to `last` bytes within the test."""
    story = steady()
    for k in range(11):
        size = last if first is None else first + (last - first) * k / 10
        story.sample(15.0 * k, "etcd_db_bytes", size)
        if quota is not None:
            story.sample(15.0 * k, "etcd_quota_bytes", quota)
    return story


def listed(takes: Callable[[int], float]) -> Story:
    """Healthy runs on a platform whose list requests take `takes(second)` seconds."""
    story = steady(80)
    for second in range(5, 80, 15):
        story.sample(float(second), LIST_SECONDS, takes(second), endpoint="ListRuns")
    return story


def cached() -> Story:
    """The task details of every third run report a task from the cache."""
    story = steady(60)
    for seq in range(0, 60, 3):
        story.event(90.0, "Task", "train", CACHED, run=f"run-{seq:04d}")
    return story
