"""Prometheus metrics of the platform's components, under the names that the components themselves use."""

from collections import Counter
from collections.abc import Mapping

from harness.model.live.exposition import Family, Histogram, Series, written
from harness.simulator.platform import Platform
from harness.simulator.workflows.workflow import Workflow

_RUN_CALLS = ("create", "get", "list", "delete", "terminate", "retry", "archive")
_STATUS = "Generic metric from SHOW GLOBAL STATUS."
_ERRORS = ("accept", "internal", "max_connections", "peer_address", "select", "tcpwrap")  # of connections


def api_server(platform: Platform, calls: Mapping[tuple[str, str], int], durations: Mapping[str, Histogram]) -> str:
    """``ml-pipeline`` on port 8888: gRPC handling and the counters of the run server.

    `calls` are counted by (method, gRPC code), `durations` are seconds by method.
    """
    handled: list[Series] = [
        (_rpc(method) | {"grpc_code": code}, count) for (method, code), count in sorted(calls.items())
    ]
    seconds: list[Series] = [(_rpc(method), histogram) for method, histogram in sorted(durations.items())]
    families: list[Family] = [
        ("grpc_server_handled_total", "counter",
         "Total number of RPCs completed on the server, regardless of outcome.", handled),
        ("grpc_server_handling_seconds", "histogram",
         "Histogram of response latency of gRPC handled by the server.", seconds),
    ]  # fmt: skip
    for verb in _RUN_CALLS:
        method = "ListRuns" if verb == "list" else f"{verb.title()}Run"
        count = sum(number for (called, _), number in calls.items() if called == method)
        text = f"The total number of {method} requests"
        families.append((f"run_server_{verb}_requests", "counter", text, [({}, count)]))
    runs = platform.server.runs.values()
    text = "The current number of runs in Kubeflow Pipelines instance"
    families.append(("run_server_run_count", "gauge", text, [({}, len(runs))]))
    ended = Counter(run.state for run in runs if run.finished is not None)
    for word, state in (("success", "SUCCEEDED"), ("failed", "FAILED")):
        series: list[Series] = [({"profile": ""}, ended[state])]
        text = "The current number of workflows runs"
        families.append((f"resource_manager_workflow_runs_{word}", "gauge", text, series))
    return written(families)


def _rpc(method: str) -> dict[str, str]:
    service = next((each for each in ("Experiment", "Pipeline", "Healthz") if each in method), "Run")
    qualified = f"kubeflow.pipelines.backend.api.v2beta1.{service}Service"
    return {"grpc_method": method, "grpc_service": qualified, "grpc_type": "unary"}


# What the controller's counts of requests are called: kind, verb and status.
_REQUESTS = {
    "configmaps get": ("configmaps", "Get", "404"),  # of artifact repositories, which few installations have
    "pods create": ("pods", "Create", "201"),
    "pods create refused": ("pods", "Create", "403"),
    "workflows update": ("workflows", "Update", "200"),
    "workflowtaskresults deletecollection": ("workflowtaskresults", "DeleteCollection", "200"),
}
_EVENTS, _CLEANUP = ("events", "Create", "201"), ("pods", "Patch", "200")
_PHASES = ("Error", "Failed", "Pending", "Running", "Succeeded")
_QUEUES = ("cron_wf_queue", "pod_cleanup_queue", "workflow_archive_queue", "workflow_queue", "workflow_ttl_queue")
_WITH_LIMITER = ("4.1",)  # versions with a metric of the waits for the client's own rate limit


def workflow_controller(platform: Platform) -> str:
    """Argo's controller on port 9090: names, labels and texts of 4.0, and of 4.1 the waits for its client's limit."""
    controller = platform.controller
    queue, client = controller.queue, controller.client
    phases = Counter(map(_phase, controller.workflows.values()))
    pods = Counter(pod.phase for pod in platform.cluster.pods.values() if pod.role)
    depth = {"pod_cleanup_queue": client.cleanup.waiting, "workflow_queue": queue.depth}
    busy = {"pod_cleanup_queue": client.cleanup.busy, "workflow_queue": queue.busy}
    counts = {_REQUESTS[name]: count for name, count in client.counts.items()}
    counts |= {_EVENTS: client.events.sent, _CLEANUP: client.cleanup.sent}
    requests: list[Series] = [
        ({"kind": kind, "status_code": status, "verb": verb}, count)
        for (kind, verb, status), count in sorted(counts.items())
        if count
    ]
    of_workflows = {"queue_name": "workflow_queue"}
    limiter: list[Series] = [({}, client.waits)] if controller.settings.argo in _WITH_LIMITER else []
    return written([
        ("argo_workflows_client_rate_limiter_latency", "histogram",
         "A histogram of the time spent waiting for the client-side rate limiter.", limiter),
        ("argo_workflows_gauge", "gauge", "A gauge of the number of workflows currently in the cluster in each phase",
         _by("phase", {phase: phases[phase] for phase in _PHASES})),
        ("argo_workflows_is_leader", "gauge",
         "Emits 1 if leader, 0 otherwise. Always 1 if leader election is disabled", [({}, 1)]),
        ("argo_workflows_k8s_request_total", "counter",
         "A counter of the number of API requests sent to the Kubernetes API", requests),
        ("argo_workflows_pods_gauge", "gauge",
         "A gauge of the number of workflow created pods currently in the cluster in each phase",
         _by("phase", {phase: pods[phase] for phase in ("Pending", "Running")})),
        ("argo_workflows_queue_adds_count", "counter",
         "A counter of additions to the work queues inside the controller", [(of_workflows, queue.adds)]),
        ("argo_workflows_queue_depth_gauge", "gauge", "A gauge of the current depth of the queues",
         _by("queue_name", depth)),
        ("argo_workflows_queue_duration", "histogram",
         "A histogram of the time events in the queues are taking to be processed", [(of_workflows, queue.work)]),
        ("argo_workflows_queue_latency", "histogram",
         "A histogram of the time events in the queues are taking before they are processed",
         [(of_workflows, queue.waits)]),
        ("argo_workflows_workers_busy_count", "gauge", "A gauge of queue workers that are busy",
         _by("worker_type", {name: busy.get(name, 0) for name in _QUEUES})),
    ])  # fmt: skip


def _phase(workflow: Workflow) -> str:
    if workflow.started is None:
        return "Pending"
    return workflow.phase if workflow.over else "Running"


def _by(label: str, counts: Mapping[str, float]) -> list[Series]:
    return [({label: value}, count) for value, count in counts.items()]


def seaweedfs(platform: Platform) -> str:
    """SeaweedFS started with ``-metricsPort``."""
    store, bucket = platform.store, {"bucket": "mlpipeline"}
    by_code: list[Series] = [
        ({"type": kind, "code": status, **bucket}, count) for (kind, status), count in sorted(store.requests.items())
    ]
    seconds: list[Series] = [({"type": kind, **bucket}, each) for kind, each in sorted(store.durations.items())]
    size: Series = ({"collection": "mlpipeline", "type": "normal"}, store.used)
    disk = {"all": store.capacity, "used": store.used, "free": store.free, "avail": store.free}
    resources: list[Series] = [({"name": "/data", "type": kind}, space) for kind, space in disk.items()]
    return written([
        ("SeaweedFS_s3_request_total", "counter", "Counter of s3 requests.", by_code),
        ("SeaweedFS_s3_request_seconds", "histogram", "Bucketed histogram of s3 request processing time.", seconds),
        ("SeaweedFS_volumeServer_total_disk_size", "gauge", "Actual disk size used by volumes.", [size]),
        ("SeaweedFS_volumeServer_resource", "gauge", "Server resource usage.", resources),
    ])  # fmt: skip


def minio(platform: Platform) -> str:
    """MinIO's cluster metrics, version 2 (``/minio/v2/metrics/cluster``)."""
    store, server = platform.store, {"server": "127.0.0.1:9000"}
    apis = {"PUT": "putobject", "GET": "getobject"}
    asked, failed = Counter[str](), Counter[str]()
    for (kind, status), count in sorted(store.requests.items()):
        asked[apis[kind]] += count
        if status != "200":
            failed[apis[kind]] += count
    first_bytes: list[Series] = [
        ({**server, "api": apis[kind], "le": bound}, count)
        for kind, each in sorted(store.durations.items())
        for bound, count in each.buckets()
    ]
    name, text = "minio_s3_requests_ttfb_seconds_distribution", "Distribution of time to first byte"
    return written([
        ("minio_s3_requests_total", "counter", "Total number S3 requests", _by("api", asked)),
        ("minio_s3_requests_errors_total", "counter", "S3 requests with errors", _by("api", failed)),
        ("minio_s3_requests_5xx_errors_total", "counter", "S3 requests with 5xx errors", _by("api", failed)),
        (name, "gauge", text, first_bytes),
        ("minio_cluster_capacity_usable_total_bytes", "gauge", "Usable capacity", [(server, store.capacity)]),
        ("minio_cluster_capacity_usable_free_bytes", "gauge", "Free of the usable capacity", [(server, store.free)]),
    ])  # fmt: skip


def mysqld(platform: Platform) -> str:
    """MySQL behind a mysqld_exporter, whose own query is one of those that it counts."""
    database = platform.server.database
    errors: list[Series] = [({"error": error}, database.refused * (error == "max_connections")) for error in _ERRORS]
    return written([
        ("mysql_up", "gauge", "Whether the MySQL server is up.", [({}, 1)]),
        ("mysql_global_status_threads_connected", "gauge", _STATUS, [({}, database.connected)]),
        ("mysql_global_status_threads_running", "gauge", _STATUS, [({}, database.held + 1)]),
        ("mysql_global_status_queries", "counter", _STATUS, [({}, database.answered)]),
        ("mysql_global_status_connection_errors_total", "counter", "Total number of MySQL connection errors.",
         errors),
        ("mysql_global_variables_max_connections", "gauge", "Generic gauge metric from SHOW GLOBAL VARIABLES.",
         [({}, database.limit)]),
    ])  # fmt: skip


def cluster_autoscaler(platform: Platform) -> str:
    """The metrics of cluster-autoscaler itself."""
    nodes = platform.cluster.nodes.values()
    ready = sum(node.ready is not None for node in nodes)
    states = _by("state", {"ready": ready, "notStarted": len(nodes) - ready})
    blocked = sum(len(pods) for _, pods in platform.cluster.scheduler.blocked())
    return written([
        ("cluster_autoscaler_nodes_count", "gauge", "Number of nodes in cluster.", states),
        ("cluster_autoscaler_unschedulable_pods_count", "gauge", "Unschedulable pods.", [({}, blocked)]),
    ])  # fmt: skip
