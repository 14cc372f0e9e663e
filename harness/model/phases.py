"""Names of phases, samples and events that the collectors write and the analysis reads. One name, everywhere."""

# Phases of a run as a whole (Span.step == "").
RUN = "run"  # from the platform's creation stamp to its own end stamp

# Phase of a task as the platform tells of it (Span.step == the platform's id of the task), for a sample of runs.
TASK = "task"

# Phases of one pod (Span.step == pod name), in the order in which a pod passes them.
UNSCHEDULABLE = "unschedulable"  # waits for room: no node fits
SCHEDULING = "scheduling"  # waits for the scheduler, a node fits
PULLING = "image pull"
STARTING = "start"  # init containers, sandbox, volumes
RUNNING = "running"
STORING = "storing outputs"

# Phases of one execution by a service that answers with the result (Span.step == the execution), in their order.
NETWORK = "network"  # an empty exchange takes as long
BACKEND = "backend"  # waits for the backend and is prepared by it
QUEUED = "runtime queue"  # in the runtime, while the worker does something else
LOADING = "load data"
COMPUTING = "compute"
SENDING = "send data"

SERVICE_PHASES = (NETWORK, BACKEND, QUEUED, LOADING, COMPUTING, SENDING)
POD_PHASES = (UNSCHEDULABLE, SCHEDULING, PULLING, STARTING, RUNNING, STORING, *SERVICE_PHASES)

# Phases only the decomposition of a run's wait knows (design §7).
DISPATCH = "dispatch"  # due, not yet sent: the generator's lag
SUBMIT = "submit"  # sent, not yet answered
CONTROLLER = "controller queue"  # no pod of the run exists or lives, and more must come
PROVISIONING = "node provisioning"  # unschedulable while a node is on its way
PUBLISHING = "publishing"  # all pods over, the platform does not say so yet
UNKNOWN = "unknown"

RUN_PHASES = (
    DISPATCH, SUBMIT, CONTROLLER, UNSCHEDULABLE, PROVISIONING, SCHEDULING, PULLING, STARTING, RUNNING, STORING,
    *SERVICE_PHASES, PUBLISHING, UNKNOWN,
)  # fmt: skip

# Event.kind "Run": Event.reason is one of these, Event.object the run's id.
SUCCEEDED = "SUCCEEDED"
FAILED = "FAILED"
CANCELED = "CANCELED"
SKIPPED = "SKIPPED"
TERMINAL_STATES = frozenset({SUCCEEDED, FAILED, CANCELED, SKIPPED})

# Event.kind "Task": Event.reason is the state of a task that did not succeed by being executed, or CACHED.
CACHED = "CACHED"

# Event.kind "ObjectStore": Event.reason when a write of ours found no room.
STORE_FULL = "StoreFull"

# Event.kind "Observer": gaps and doubts of our own.
GAP = "Gap"
WRONG_CLUSTER = "WrongCluster"  # runs ended well, and no pod of the cluster that is watched worked for them

# Sample.metric
STORE_CAPACITY_BYTES = "store_capacity_bytes"  # labels: volume (the PVC's name), namespace
STORE_AVAILABLE_BYTES = "store_available_bytes"
SERVICE_PROBE_SECONDS = "service_probe_seconds"  # of a request that costs it nothing; labels: service
SERVICE_UP = "service_up"  # 1 when it was answered well, else 0; labels: service
STORE_PROBE_SECONDS = "store_probe_seconds"  # of a request of our own for a small object; labels: operation, bucket
STORE_WRITABLE = "store_writable"  # 1 when a small object was taken, 0 when the store was full; labels: bucket
CLAIM_CAPACITY_BYTES = "claim_capacity_bytes"  # of a bound volume claim; labels: volume, namespace
MYSQL_THREADS = "mysql_threads_running"  # at work, the exporter's own among them
MYSQL_QUERIES = "mysql_queries_per_s"
MYSQL_CONNECTIONS = "mysql_connections"  # open
MYSQL_MOST_CONNECTIONS = "mysql_most_connections"  # that it takes
RUNS_IN_FLIGHT = "runs_in_flight"
LIST_SECONDS = "kfp_list_seconds"  # of one of our own requests for a page of runs; labels: endpoint
OBSERVER_REQUESTS = "observer_requests"  # cumulative; labels: endpoint
NODE_CPU_CORES = "node_cpu_cores"  # used; labels: node
NODE_MEMORY_BYTES = "node_memory_bytes"  # used; labels: node
# What pods ask the scheduler to set aside; labels: task, or pod for one that differs from the others of its task.
REQUESTED_CPU_CORES = "requested_cpu_cores"
REQUESTED_MEMORY_BYTES = "requested_memory_bytes"
REQUESTED_GPUS = "requested_gpus"
POD_CPU_CORES = "pod_cpu_cores"  # used; labels: pod
POD_MEMORY_BYTES = "pod_memory_bytes"
GENERATOR_CPU = "generator_cpu"  # share of one core; labels: worker
