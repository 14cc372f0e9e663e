"""Prometheus metrics of the platform's components, under the names that the components themselves use."""

from collections import Counter
from collections.abc import Mapping

from harness.model.exposition import Family, Histogram, Series, written
from harness.simulator.platform import Platform

_RUN_CALLS = ("create", "get", "list", "delete", "terminate", "retry", "archive")
_STATUS = "Generic metric from SHOW GLOBAL STATUS."


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


def workflow_controller(platform: Platform) -> str:
    """Argo's controller on port 9090, names of 3.6 and later."""
    controller = platform.controller
    phases = {"Pending": controller.pending, "Running": controller.running, "Succeeded": 0, "Failed": 0, "Error": 0}
    for workflow in controller.workflows.values():
        if workflow.over:
            phases[workflow.phase] += 1
    pods = {"Pending": 0, "Running": 0}
    for pod in platform.cluster.pods.values():
        if pod.role and pod.phase in pods:
            pods[pod.phase] += 1
    queue, workers = {"queue_name": "workflow_queue"}, {"worker_type": "workflow_queue"}
    return written([
        ("argo_workflows_gauge", "gauge", "Workflows by phase.", _by("phase", phases)),
        ("argo_workflows_pods_gauge", "gauge", "Pods of workflows by phase.", _by("phase", pods)),
        ("argo_workflows_queue_depth_gauge", "gauge", "Depth of the queue.", [(queue, controller.queue.depth)]),
        ("argo_workflows_workers_busy_count", "gauge", "Busy workers.", [(workers, controller.queue.busy)]),
        ("argo_workflows_is_leader", "gauge", "1 when leading.", [({}, 1)]),
    ])  # fmt: skip


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
    refused: Series = ({"error": "max_connections"}, database.refused)
    return written([
        ("mysql_up", "gauge", "Whether the MySQL server is up.", [({}, 1)]),
        ("mysql_global_status_threads_connected", "gauge", _STATUS, [({}, database.connected)]),
        ("mysql_global_status_threads_running", "gauge", _STATUS, [({}, database.held + 1)]),
        ("mysql_global_status_queries", "counter", _STATUS, [({}, database.answered)]),
        ("mysql_global_status_connection_errors_total", "counter", "Total number of MySQL connection errors.",
         [refused]),
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
