"""Names of phases, samples and events, as collectors write and the analysis reads them."""

# Phases of a run as a whole (Span.step == "").
RUN = "run"  # from the platform's creation timestamp to its end timestamp

# Pods of other workloads on the nodes that the runs use have no run: Span.run is the workload, Span.step the pod, both
# with their namespace; no run's id contains a slash.


def workload_name(namespace: str, name: str) -> str:
    """The name of something outside the runs, as `Span.run` or `Span.step`: ``team-b/nightly``."""
    return f"{namespace}/{name}"


def is_workload(run: str) -> bool:
    """Whether a `Span.run` names a workload that is no run."""
    return "/" in run


# Phase of a task as the platform reports it (Span.step == the platform's id of the task), for a sample of runs.
TASK = "task"

# Phases of one pod (Span.step == pod name), in the order in which a pod passes them.
UNSCHEDULABLE = "unschedulable"  # no node has room
SCHEDULING = "scheduling"  # waits for the scheduler; a node has room
PULLING = "image pull"
STARTING = "start"  # init containers, sandbox, volumes
RUNNING = "running"
STORING = "storing outputs"  # as far as it can be separated from RUNNING: see `UPLOAD_SECONDS`
SIDECARS = "sidecars"  # its work and Argo's wait have ended, and another container runs on
SERVING = "serving"  # runs for other pods of its run, which do the work: a scheduler or worker of a Dask cluster

# Phases of one execution by a service whose response is the result (Span.step == the execution), in their order.
NETWORK = "network"  # as long as an empty exchange takes
BACKEND = "backend"  # queued and prepared by the backend
QUEUED = "runtime queue"  # in the runtime, while the worker is busy
LOADING = "load data"
COMPUTING = "compute"
SENDING = "send data"

SERVICE_PHASES = (NETWORK, BACKEND, QUEUED, LOADING, COMPUTING, SENDING)
POD_PHASES = (UNSCHEDULABLE, SCHEDULING, PULLING, STARTING, RUNNING, STORING, SIDECARS, SERVING, *SERVICE_PHASES)

# Phases that only the decomposition of a run's wait has.
DISPATCH = "dispatch"  # due, not yet sent: the load generator's lag
SUBMIT = "submit"  # sent, no response yet
CONTROLLER = "controller queue"  # the run has no live pod and needs more
PROVISIONING = "node provisioning"  # unschedulable while a node is being provisioned
PUBLISHING = "publishing"  # all pods have ended, the platform does not report it yet
UNKNOWN = "unknown"

RUN_PHASES = (
    DISPATCH, SUBMIT, CONTROLLER, UNSCHEDULABLE, PROVISIONING, SCHEDULING, PULLING, STARTING, RUNNING, STORING,
    SIDECARS, SERVING, *SERVICE_PHASES, PUBLISHING, UNKNOWN,
)  # fmt: skip
# The furthest first: the phase of a run with pods in several phases.
PRECEDENCE = (
    RUNNING, STORING, SIDECARS, STARTING, PULLING, SCHEDULING, UNSCHEDULABLE, *reversed(SERVICE_PHASES), SERVING,
)  # fmt: skip

# What happened in each.
MEANINGS = {
    DISPATCH: "runs waited for the load generator",
    SUBMIT: "runs waited for the API to accept them",
    CONTROLLER: "runs waited for the controller to create their next pod",
    UNSCHEDULABLE: "pods waited for room on a node",
    PROVISIONING: "pods waited for a new node to become ready",
    SCHEDULING: "pods waited for the scheduler",
    PULLING: "images were pulled",
    STARTING: "containers started",
    RUNNING: "steps ran",
    STORING: "outputs were stored",
    SIDECARS: "steps had ended, and other containers of their pods ran on",
    SERVING: "pods served others, and nothing was computed",
    NETWORK: "requests and responses were in transit",
    BACKEND: "executions waited for the backend to prepare them",
    QUEUED: "executions waited for a worker of the runtime",
    LOADING: "data was loaded from adapters",
    COMPUTING: "operators computed",
    SENDING: "data was sent to adapters",
    PUBLISHING: "runs had finished and the platform had not reported it yet",
    UNKNOWN: "no pods were observed, so the cause is unknown",
}

# Event.kind "Run": Event.reason is one of these, Event.object the run's id.
SUCCEEDED = "SUCCEEDED"
FAILED = "FAILED"
CANCELED = "CANCELED"
SKIPPED = "SKIPPED"
TERMINAL_STATES = frozenset({SUCCEEDED, FAILED, CANCELED, SKIPPED})
LISTED = "Listed"  # of another load's run: Event.message is its pipeline or template, Event.namespace where it runs
REMOVED = "REMOVED"  # the platform lists it no longer, and nothing showed its end

# Event.kind "Platform": a component's version (Event.reason VERSION) when it was first seen, or changed.
PLATFORM = "Platform"
VERSION = "Version"
LIMITS = "Limits"  # Event.reason: how many workflows Argo's controller runs at once, as ``parallelism=50 …``
CONTROLLER_SETTINGS = "workflow-controller-configmap"  # Event.object, and the name of its ConfigMap
# Event.reason: arguments and variables of Argo's controller (Event.object), as ``--qps=50 DEFAULT_REQUEUE_TIME=2s``;
# one whose value stands elsewhere is "?", one that is not set is left out.
ARGUMENTS, WORKFLOW_CONTROLLER = "Arguments", "workflow-controller"
QPS, BURST, WORKFLOW_WORKERS, CLEANUP_WORKERS = "--qps", "--burst", "--workflow-workers", "--pod-cleanup-workers"
REQUEUE_TIME = "DEFAULT_REQUEUE_TIME"
PARALLELISM, NAMESPACE_PARALLELISM = "parallelism", "namespaceParallelism"  # limits on running workflows

WORKFLOW = "Workflow"  # Event.kind: Event.reason is a phase that Argo's controller gave it, or that of its events

# Event.kind "Task": Event.reason is the state of a task that failed, waits or was skipped, or CACHED; Event.object is
# the task's name, Event.message what the platform says about it.
OF_TASK = "Task"
CACHED = "CACHED"

# Event.kind "Pod": Event.reason of why KFP's launcher failed, from its log.
LAUNCHER_ERROR = "LauncherError"

# Event.kind "NodeClaim": Event.reason of a machine that Karpenter claimed, or that did not come (Event.message is why);
# the others are the names of the claim's conditions: Launched, Registered, Initialized.
OF_CLAIM = "NodeClaim"
CLAIM_CREATED = "Created"
CLAIM_FAILED = "NodeClaimFailed"

# Event.kind "ObjectStore": Event.reason when a probe could not write for lack of space.
STORE_FULL = "StoreFull"

# Event.kind "Observer": gaps and doubts of the observer.
NOT_REACHABLE = "NotReachable"  # a source that could never be read so far; Event.object is its name
GAP = "Gap"
PAST = "prometheus"  # source of what only scrapes show, after the fact
SCRAPED = "Scraped"  # pods that only scrapes show; there may have been shorter ones
INFERRED = "Inferred"  # runs that only their pods show; Event.message says how many
RESUMED = "Resumed"  # a silence after which the source reported what had happened meanwhile
POD_LOGS = "kubernetes pod logs"  # Event.object, where they may not be read
WRONG_CLUSTER = "WrongCluster"  # runs succeeded although no pod of the observed cluster worked for them

# Sample.metric
STORE_CAPACITY_BYTES = "store_capacity_bytes"  # labels: volume (the PVC's name), namespace
STORE_AVAILABLE_BYTES = "store_available_bytes"
SERVICE_PROBE_SECONDS = "service_probe_seconds"  # of a trivial request; labels: service
SERVICE_UP = "service_up"  # 1 if the request succeeded, else 0; labels: service
STORE_PROBE_SECONDS = "store_probe_seconds"  # of a request for a small object; labels: operation, bucket
STORE_REQUEST_SECONDS = "store_request_s"  # of the store's requests, by its own metrics; labels: type, quantile
STORE_WRITABLE = "store_writable"  # 1 if a small object was stored, 0 if the store was full; labels: bucket
# How long KFP's launcher uploaded a step's outputs, within its main container: from the logs of a sample of the pods;
# labels: task, pod.
UPLOAD_SECONDS = "upload_seconds"
CLAIM_CAPACITY_BYTES = "claim_capacity_bytes"  # of a bound PVC; labels: volume, namespace
MYSQL_THREADS = "mysql_threads_running"  # including the exporter's own
MYSQL_QUERIES = "mysql_queries_per_s"
MYSQL_CONNECTIONS = "mysql_connections"  # open
MYSQL_MOST_CONNECTIONS = "mysql_most_connections"  # its limit
MYSQL_ERRORS = "mysql_connection_errors_per_s"  # labels: error (max_connections: none was free), instance
RUNS_IN_FLIGHT = "runs_in_flight"
LIST_SECONDS = "kfp_list_seconds"  # of a listing request of the observer; labels: endpoint
OBSERVER_REQUESTS = "observer_requests"  # cumulative; labels: endpoint
NODE_CPU_CORES = "node_cpu_cores"  # used; labels: node
NODE_PRICE = "node_price_per_h"  # labels: node
POD_COST = "pod_cost"  # from then on, as OpenCost allocates it; labels: namespace, pod, or idle
COMING_NODES = "coming_nodes"  # machines that Karpenter has claimed and that take no pods yet
NODE_MEMORY_BYTES = "node_memory_bytes"  # used; labels: node
# Of a resource quota; labels: namespace, quota, resource (requests.cpu, pods, …), type (used, hard).
QUOTA_AMOUNT = "quota_amount"
# Resource requests of pods; labels: task, or pod for one that differs from the others of its task.
REQUESTED_CPU_CORES = "requested_cpu_cores"
REQUESTED_MEMORY_BYTES = "requested_memory_bytes"
REQUESTED_GPUS = "requested_gpus"
REQUESTED_EPHEMERAL_BYTES = "requested_ephemeral_bytes"  # ephemeral storage
POD_PRIORITY = "pod_priority"  # the value of its PriorityClass; labels as for requests
CPU_LIMIT_CORES = "cpu_limit_cores"  # of the step's container, 0 without one; labels as for requests
# Used by a pod of a run, or by a replica of the service that executes the runs; labels: pod.
POD_CPU_CORES = "pod_cpu_cores"
POD_MEMORY_BYTES = "pod_memory_bytes"
# Worker processes of such a replica, by its settings, 0 once it runs no longer; labels: pod, node.
REPLICA_WORKERS = "replica_workers"
# Of the kernel's scheduler (CFS), per second, of containers with a CPU limit; labels: pod.
POD_CFS_PERIODS = "pod_cfs_periods_per_s"
POD_CFS_THROTTLED = "pod_cfs_throttled_periods_per_s"
# Of a whole run that is a process, with all processes that it started; labels: run.
PROCESS_CPU_SECONDS = "process_cpu_seconds"
PROCESS_PEAK_BYTES = "process_peak_bytes"
# Of one TCP connection to the platform that took a second or more, because the first SYN got no answer; labels: worker.
CONNECT_S = "connect_s"
GENERATOR_CPU = "generator_cpu"  # share of one core; labels: worker
GENERATOR_RATE = "generator_rate"  # submissions per second that a bare loop could send before t0; labels: worker
# What holds until it is written again. Of other metrics, samples from before the first arrival belong to another test.
LASTING = frozenset(
    {
        CLAIM_CAPACITY_BYTES, STORE_CAPACITY_BYTES, MYSQL_MOST_CONNECTIONS, OBSERVER_REQUESTS, REQUESTED_CPU_CORES,
        REQUESTED_MEMORY_BYTES, REQUESTED_GPUS, REQUESTED_EPHEMERAL_BYTES, CPU_LIMIT_CORES, REPLICA_WORKERS,
        GENERATOR_RATE, POD_PRIORITY, QUOTA_AMOUNT,
    }
)  # fmt: skip
