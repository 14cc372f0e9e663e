"""Prometheus metrics of the platform's components, by their own names."""

from collections.abc import Mapping

from harness.simulator.platform import Platform
from harness.simulator.prometheus import Histogram, Series, family


def api_server(platform: Platform, calls: Mapping[tuple[str, str], int], durations: Mapping[str, Histogram]) -> str:
    """``ml-pipeline`` on port 8888: gRPC handling and the counters of the run server.

    `calls` are counted by (method, gRPC code), `durations` are seconds by method.
    """
    methods = {"CreateRun": "create", "GetRun": "get", "ListRuns": "list", "DeleteRun": "delete",
               "TerminateRun": "terminate", "RetryRun": "retry", "ArchiveRun": "archive"}  # fmt: skip
    lines = family(
        "grpc_server_handled_total", "counter", "Total number of RPCs completed on the server, regardless of outcome.",
        [
            (_rpc(method) | {"grpc_code": code}, float(count))
            for (method, code), count in sorted(calls.items())
        ],
    )  # fmt: skip
    name = "grpc_server_handling_seconds"
    lines += [f"# HELP {name} Histogram of response latency of gRPC handled by the server.", f"# TYPE {name} histogram"]
    for method, histogram in sorted(durations.items()):
        lines += histogram.lines(name, _rpc(method))
    for method, verb in methods.items():
        count = sum(number for (called, _), number in calls.items() if called == method)
        lines += family(
            f"run_server_{verb}_requests", "counter", f"The total number of {method} requests", [({}, count)]
        )
    runs = len(platform.server.runs)
    lines += family(
        "run_server_run_count", "gauge", "The current number of runs in Kubeflow Pipelines instance", [({}, runs)]
    )
    ended = [run.state for run in platform.server.runs.values() if run.finished is not None]
    for word, state in (("success", "SUCCEEDED"), ("failed", "FAILED")):
        lines += family(
            f"resource_manager_workflow_runs_{word}", "gauge", "The current number of workflows runs",
            [({"profile": ""}, sum(each == state for each in ended))],
        )  # fmt: skip
    return "\n".join(lines) + "\n"


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
    queue = {"queue_name": "workflow_queue"}
    lines = [
        *family("argo_workflows_gauge", "gauge", "Workflows by phase.", _by("phase", phases)),
        *family("argo_workflows_pods_gauge", "gauge", "Pods of workflows by phase.", _by("phase", pods)),
        *family("argo_workflows_queue_depth_gauge", "gauge", "Depth of the queue.", [(queue, controller.queue_depth)]),
        *family(
            "argo_workflows_workers_busy_count", "gauge", "Busy workers.",
            [({"worker_type": "workflow_queue"}, controller.busy)],
        ),
        *family("argo_workflows_is_leader", "gauge", "1 when leading.", [({}, 1)]),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _by(label: str, counts: Mapping[str, float]) -> list[Series]:
    return [({label: value}, count) for value, count in counts.items()]


def seaweedfs(platform: Platform) -> str:
    """SeaweedFS with ``-metricsPort``."""
    store, seconds = platform.store, "SeaweedFS_s3_request_seconds"
    bucket = {"bucket": "mlpipeline"}
    by_code: list[Series] = [
        ({"type": kind, "code": status, **bucket}, count) for (kind, status), count in sorted(store.requests.items())
    ]
    size: Series = ({"collection": "mlpipeline", "type": "normal"}, store.used)
    free = max(0.0, store.capacity - store.used)
    disk = {"all": store.capacity, "used": store.used, "free": free, "avail": free}
    room: list[Series] = [({"name": "/data", "type": kind}, space) for kind, space in disk.items()]
    lines = [
        *family("SeaweedFS_s3_request_total", "counter", "Counter of s3 requests.", by_code),
        f"# HELP {seconds} Bucketed histogram of s3 request processing time.",
        f"# TYPE {seconds} histogram",
        *(
            line
            for kind, each in sorted(store.durations.items())
            for line in each.lines(seconds, {"type": kind, **bucket})
        ),
        *family("SeaweedFS_volumeServer_total_disk_size", "gauge", "Actual disk size used by volumes.", [size]),
        *family("SeaweedFS_volumeServer_resource", "gauge", "Server resource usage.", room),
    ]
    return "\n".join(lines) + "\n"


def minio(platform: Platform) -> str:
    """MinIO's cluster metrics, version 2 (``/minio/v2/metrics/cluster``)."""
    store, server = platform.store, {"server": "127.0.0.1:9000"}
    apis = {"PUT": "putobject", "GET": "getobject"}
    asked: dict[str, float] = {}
    failed: dict[str, float] = {}
    for (kind, status), count in sorted(store.requests.items()):
        asked[apis[kind]] = asked.get(apis[kind], 0.0) + count
        if status != "200":
            failed[apis[kind]] = failed.get(apis[kind], 0.0) + count
    room: list[Series] = [(server, max(0.0, store.capacity - store.used))]
    first_bytes: list[Series] = [
        ({**server, "api": apis[kind], "le": bound}, count)
        for kind, each in sorted(store.durations.items())
        for bound, count in each.buckets()
    ]
    lines = [
        *family("minio_s3_requests_total", "counter", "Total number S3 requests", _by("api", asked)),
        *family("minio_s3_requests_errors_total", "counter", "S3 requests with errors", _by("api", failed)),
        *family("minio_s3_requests_5xx_errors_total", "counter", "S3 requests with 5xx errors", _by("api", failed)),
        *family(
            "minio_s3_requests_ttfb_seconds_distribution", "gauge", "Distribution of time to first byte", first_bytes
        ),
        *family("minio_cluster_capacity_usable_total_bytes", "gauge", "Usable capacity", [(server, store.capacity)]),
        *family("minio_cluster_capacity_usable_free_bytes", "gauge", "Free of the usable capacity", room),
    ]
    return "\n".join(lines) + "\n"


def mysqld(platform: Platform) -> str:
    """MySQL behind a mysqld_exporter, whose own question is one of those that it counts."""
    database = platform.server.database
    lines = [
        *family("mysql_up", "gauge", "Whether the MySQL server is up.", [({}, 1)]),
        *family(
            "mysql_global_status_threads_connected", "gauge", "Generic metric from SHOW GLOBAL STATUS.",
            [({}, database.connected)],
        ),
        *family(
            "mysql_global_status_threads_running", "gauge", "Generic metric from SHOW GLOBAL STATUS.",
            [({}, database.held + 1)],
        ),
        *family(
            "mysql_global_status_queries", "counter", "Generic metric from SHOW GLOBAL STATUS.",
            [({}, database.answered)],
        ),
        *family(
            "mysql_global_status_connection_errors_total", "counter", "Total number of MySQL connection errors.",
            [({"error": "max_connections"}, database.refused)],
        ),
        *family(
            "mysql_global_variables_max_connections", "gauge", "Generic gauge metric from SHOW GLOBAL VARIABLES.",
            [({}, database.limit)],
        ),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def cluster_autoscaler(platform: Platform) -> str:
    """cluster-autoscaler's own."""
    nodes = platform.cluster.nodes.values()
    ready = sum(node.ready is not None for node in nodes)
    states = _by("state", {"ready": ready, "notStarted": len(nodes) - ready})
    blocked = sum(len(pods) for _, pods in platform.cluster.scheduler.blocked())
    lines = [
        *family("cluster_autoscaler_nodes_count", "gauge", "Number of nodes in cluster.", states),
        *family("cluster_autoscaler_unschedulable_pods_count", "gauge", "Unschedulable pods.", [({}, blocked)]),
    ]
    return "\n".join(lines) + "\n"
