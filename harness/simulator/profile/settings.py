"""The settings of one simulated platform, with the defaults of a plain installation.

A profile YAML has these fields by these names. Durations are read from ``90s`` or ``10m``, sizes and cores from
Kubernetes quantities (``500m``, ``16Gi``), and an `Amount` from any form of `harness.simulator.engine.distributions`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

from harness.simulator.engine.distributions import Amount, Lognormal, Uniform, fixed
from harness.simulator.profile.bounds import (
    ABOVE_0,
    Bytes,
    Cores,
    Count,
    DurationAmount,
    OneOf,
    QuantityAmount,
    Rate,
    Scalar,
    Seconds,
    Share,
    SomeBytes,
    SomeCores,
    SomeSeconds,
)  # fmt: skip
from harness.simulator.profile.hetida import Hetida
from harness.simulator.profile.kueue import ClusterQueue
from harness.simulator.profile.spot import Eviction
from harness.simulator.profile.store_products import StoreProduct

_MI = 2**20
_GI = 2**30

# Default durations and sizes of a KFP platform, in the order of the settings below.
_STARTING = Amount(Lognormal(1.5, 4.0))
_PROVISIONING = Amount(Lognormal(90.0, 180.0))
_LATENCY = Amount(Lognormal(0.02, 0.08))
_DRIVING = Amount(Uniform(0.6, 1.6))
_COMPUTING = Amount(Lognormal(30.0, 90.0))
_NONE = fixed(0.0)
_OUTPUT = Amount(Lognormal(20 * _MI, 100 * _MI))
_CPU = fixed(0.5)
_MEMORY = fixed(200 * _MI)


@dataclass(frozen=True, slots=True)
class Taint:
    """Keeps pods off a pool's nodes unless they tolerate it."""

    key: str
    value: str = ""
    effect: Annotated[str, OneOf(("NoSchedule", "PreferNoSchedule", "NoExecute"))] = "NoSchedule"


@dataclass(frozen=True, slots=True)
class Pool:
    """A node pool: a group of equal machines."""

    name: str
    cpu: SomeCores = 4.0  # of the machine
    memory: SomeBytes = 16 * _GI
    gpu: int = 0
    driver: DurationAmount = _NONE  # on a new node: from its readiness until its GPUs can be allocated
    reserved_cpu: Cores = 0.14  # reserved for the node itself: allocatable = machine - reserved
    reserved_memory: Bytes = 2.25 * _GI
    pods: Count = 110
    initial: int = 3  # nodes at the start
    min: int = 0
    max: int = 3
    spot: bool = False
    evictions_per_hour: float = 0.0  # of one spot node
    eviction: Eviction = Eviction()  # of a spot pool, besides its rate
    price: float | None = None  # of one node, per hour
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    instance_type: str = "Standard_D4s_v5"


@dataclass(frozen=True, slots=True)
class Scheduler:
    """Settings of kube-scheduler: time per pod, and whether nodes are packed or spread."""

    pod_s: Seconds = 0.004  # to schedule one pod; pods are scheduled one at a time
    packing: bool = False  # fill nodes up (MostAllocated) instead of spreading (LeastAllocated)
    backoff_s: Seconds = 1.0  # before an unschedulable pod is retried; doubles with every attempt
    backoff_max_s: Seconds = 10.0
    preemption: bool = True  # of pods of lower priority


@dataclass(frozen=True, slots=True)
class Kubelet:
    """What happens on a node between binding a pod and its main container."""

    start: DurationAmount = _STARTING  # sandbox, volumes, init containers
    pull_overhead_s: Seconds = 0.8  # per pull: registry round trips
    pull_bytes_per_s: SomeBytes = 60 * _MI  # of one node; images are pulled one after the other
    images: Mapping[str, Bytes] = field(default_factory=dict)  # compressed sizes by image name
    image_bytes: Bytes = 350 * _MI  # of images not named above
    present: Share = 0.0  # share of the images that the nodes of the start have already
    termination_s: Seconds = 1.0  # from a pod's deletion to its end, if its grace period is no shorter


@dataclass(frozen=True, slots=True)
class Autoscaler:
    """Settings of cluster-autoscaler: scan interval, provisioning, expander and scale-down."""

    scan_s: SomeSeconds = 10.0
    first_scan_s: Seconds = 0.0  # from the start to a scan; all others follow at intervals
    provisioning: DurationAmount = _PROVISIONING  # from the request to a ready node
    unneeded_s: Seconds = 600.0  # an idle node is removed after this time
    after_add_s: Seconds = 600.0  # no scale-down for this long after a scale-up
    expander: Annotated[str, OneOf(("least-waste", "price", "random"))] = "least-waste"
    failing: Share = 0.0  # share of node requests that fail


@dataclass(frozen=True, slots=True)
class Api:
    """The KFP API server and its database."""

    qps: Rate = 5.0  # of its Kubernetes client; CreateRun waits for a token
    burst: Count = 10
    latency: DurationAmount = _LATENCY  # of a write, without the wait for tokens
    tokens_per_report: int = 2  # taken from the same bucket when a run's end is reported (since KFP 2.17)
    error_rate: Share = 0.0  # share of CreateRun calls answered 500
    # Where pipelines are kept: kubernetes are the objects of KFP's Kubernetes-native API mode, with their names.
    pipelines: Annotated[str, OneOf(("database", "kubernetes"))] = "database"
    retention_s: Seconds = 0.0  # after a run's end, its row is deleted (garbage collection since KFP 2.18); 0 is never


@dataclass(frozen=True, slots=True)
class Listing:
    """What a page of runs costs, measured with KFP 2.17 and up to 1,000 runs: mostly the details of finished ones."""

    request_s: Seconds = 0.005
    stored_s: Seconds = 0.0000043  # for each run in the database
    run_s: Seconds = 0.00023  # for each run of the page
    found_s: Seconds = 0.00000015  # more for each run of the page, for each run in the database
    task_s: Seconds = 0.00012  # for each task in its details, which the first report brings


@dataclass(frozen=True, slots=True)
class Database:
    """The database behind the API server."""

    connections: int = 0  # concurrent connections; 0 is no limit (MySQL's max_connections is 151)
    parallel: int = 32  # calls served at full speed; more calls share it and slow down
    capacity: SomeBytes = 20 * _GI
    used: Bytes = 0.4 * _GI  # at the start
    # Of one run: its workflow's specification, and the status of each of its nodes (measured with KFP 2.17).
    spec_bytes: Bytes = 8_300.0
    step_bytes: Bytes = 2_300.0  # of the specification, for each step
    node_bytes: Bytes = 1_500.0
    listing: Listing = Listing()


@dataclass(frozen=True, slots=True)
class Quota:
    """A ResourceQuota on the runs' namespace: total requests of unfinished pods. 0 is no limit."""

    cpu: Cores = 0.0
    memory: Bytes = 0.0
    gpu: int = 0
    pods: int = 0


@dataclass(frozen=True, slots=True)
class Tenant:
    """A user's namespace, as a Kubeflow profile makes it."""

    namespace: str
    quota: Quota = Quota()
    priority: int = 0  # of its pods that have no PriorityClass of their own


@dataclass(frozen=True, slots=True)
class Requests:
    """What the workflow controller asks of Kubernetes, besides updates of workflows and events: a token each."""

    start: int = 1  # of a new workflow: reads the ConfigMap of artifact repositories
    pod: int = 1  # of a new pod: creates it
    cleanup: int = 1  # of an ended pod: labels or deletes it, in the background
    end: int = 1  # of an ended workflow: lists its pods, in the background
    results: int = 1  # of an ended workflow: deletes its task results, in the workflows' API group


@dataclass(frozen=True, slots=True)
class Argo:
    """What differs between versions of the workflow controller."""

    requests: Requests = Requests()
    settle_s: Seconds = 0.0  # of sleep after each update of a workflow: the worker waits for its informer


# By Argo's version. 4.0 is measured (4.0.8, audit log of the API server). Before, the controller wrote its update into
# its informer instead of sleeping (INFORMER_WRITE_BACK, argo-workflows#15079); with the requests of 3.5, its published
# throughput comes out (CNOE, Argo Workflows Controller Scalability Testing on Amazon EKS, 3.5.4 with podGC). 4.1
# recognises outdated workflows and does not sleep either (argo-workflows#15627; unverified).
ARGO = {"4.0": Argo(settle_s=1.0), "3.5": Argo(Requests(end=0)), "4.1": Argo()}


@dataclass(frozen=True, slots=True)
class Controller:
    """The Argo workflow controller; defaults are its own, and times are measured with Argo 4.0.8.

    Its client limits requests per API group: pods, ConfigMaps and events are in one, workflows in another.
    """

    argo: Annotated[str, OneOf(tuple(ARGO))] = "4.0"  # version: determines the requests and the sleep
    requests: Requests | None = None  # other than the version's
    settle_s: Seconds | None = None  # of sleep after each update of a workflow, other than the version's
    workers: Count = 32  # --workflow-workers
    cleanup_workers: Count = 4  # --pod-cleanup-workers
    operation_s: Seconds = 0.08  # of one reconciliation of one workflow, without waits
    cpu: Cores = 0.0  # that all reconciliations share: the controller's limit, or its machine's; 0 is no limit
    qps: Rate = 20.0  # of each API group
    burst: Count = 30
    requeue_s: Seconds = 10.0  # DEFAULT_REQUEUE_TIME: from a change to the next reconciliation, unless one is due
    parallelism: int = 0  # maximum of running workflows; 0 is no limit
    namespace_parallelism: int = 0  # namespaceParallelism: maximum of running workflows of each namespace
    error_retries: int = 2  # without set_retry; with 0, pods have no Retry node around them
    # After which ends pods are retried; "" is KFP's OnError, or with error_retries 0 Argo's own OnFailure.
    retry_policy: Annotated[str, OneOf(("", "OnError", "OnFailure", "Always"))] = ""
    ttl_s: Seconds = 3600.0  # how long finished workflows and their pods are kept
    driver: DurationAmount = _DRIVING  # a driver pod's main container
    driver_cpu: Cores = 0.1
    driver_memory: Bytes = 64 * _MI
    loop_iterations: int = 3  # of a loop over the output of an earlier step
    condition_holds: Share = 0.5  # probability that a comparison with an unknown output is true

    @property
    def requests_of_version(self) -> Requests:
        """The requests in effect."""
        return self.requests or ARGO[self.argo].requests

    @property
    def settle_of_version_s(self) -> float:
        """The sleep in effect."""
        return ARGO[self.argo].settle_s if self.settle_s is None else self.settle_s


@dataclass(frozen=True, slots=True)
class Agent:
    """The persistence agent, which reports the state of workflows to the API server."""

    workers: Count = 2
    report_s: Seconds = 0.05  # of one report
    lag_s: Seconds = 0.6  # from a change to the report's beginning


@dataclass(frozen=True, slots=True)
class ArtifactStore:
    """The object store that steps write their outputs to."""

    product: StoreProduct = StoreProduct.SEAWEEDFS  # seaweedfs or minio: determines names, metrics and error texts
    capacity: SomeBytes = 20 * _GI
    min_free: Share = 0.01  # share of the capacity below which writes are refused
    bytes_per_s: SomeBytes = 400 * _MI  # shared by all transfers
    stream_bytes_per_s: SomeBytes = 100 * _MI  # maximum of one transfer
    request_s: Seconds = 0.02  # overhead of one transfer
    timeout_s: Seconds = 20.0  # how long a refused write is retried
    used: Bytes = 0.0  # at the start
    # Above 0, outputs are shared in memory (as with Vineyard): writing is a copy at this speed, reading takes
    # `request_s` for any size, and the volume is not used.
    memory_bytes_per_s: Bytes = 0.0


@dataclass(frozen=True, slots=True)
class Step:
    """Behaviour of the steps whose task name matches `match` (a shell pattern; the first match counts)."""

    match: str = "*"
    duration: DurationAmount = _COMPUTING
    output: QuantityAmount = _OUTPUT  # bytes written at the end
    cpu: QuantityAmount = _CPU  # cores used while unconstrained
    memory: QuantityAmount = _MEMORY  # peak bytes
    failing: Share = 0.0  # share of attempts that fail
    # Of work between two checkpoints: after a loss, the next attempt resumes from the latest; 0 is from the beginning.
    checkpoint_s: Seconds = 0.0
    requests_cpu: Cores = 0.0  # of its pods at least: the pipeline may request more
    requests_memory: Bytes = 0.0
    priority_class: str = ""  # of its pods; one of the profile's
    # Outputs that conditions read, by name; each run draws one of the values: {Output: [heads, tails]}.
    results: Mapping[str, tuple[Scalar, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Measured:
    """What a recorded test showed of the pods of one task, in the order of their creation; each has as many values.

    It takes the place of the models of scheduler, kubelet and driver, and of a step's duration.
    """

    scheduling: tuple[Seconds, ...]  # besides the scheduler's own queue
    start: tuple[Seconds, ...]
    work: tuple[Seconds, ...]  # of the main container, without storing outputs
    ending: tuple[Seconds, ...]  # from the end of the main container until the pod's, besides archiving its log
    output: tuple[Bytes, ...]

    def pod(self, number: int) -> "MeasuredPod":
        """The pod with this number; after the last one they begin again."""
        place = number % len(self.work)
        return MeasuredPod(
            *(values[place] for values in (self.scheduling, self.start, self.work, self.ending, self.output))
        )


class MeasuredPod(NamedTuple):
    """One pod of `Measured`, in seconds."""

    scheduling: float
    start: float
    work: float
    ending: float
    output: float


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """A fault to inject: its name, when it begins, and how strong it is."""

    name: str
    at_s: Seconds = 0.0
    strength: Annotated[float, ABOVE_0] = 1.0

    def __str__(self) -> str:
        """``name[@when][:strength]``, as `harness.simulator.faults.parse_fault` reads it."""
        when = f"@{self.at_s:g}s" if self.at_s else ""
        usual = self.strength == 1 and ":" not in self.name  # what is stated has a share, whose default is another
        return f"{self.name}{when}" + ("" if usual else f":{self.strength:g}")


@dataclass(frozen=True, slots=True)
class Profile:
    """Everything that defines one simulated platform."""

    name: str
    title: str = ""
    pools: tuple[Pool, ...] = (Pool("default"),)
    scheduler: Scheduler = Scheduler()
    kubelet: Kubelet = Kubelet()
    autoscaler: Autoscaler | None = None
    api: Api = Api()
    database: Database = Database()
    quota: Quota = Quota()
    controller: Controller = Controller()
    agent: Agent = Agent()
    store: ArtifactStore = ArtifactStore()
    steps: tuple[Step, ...] = (Step(),)
    # By task (a driver's is `train-driver` or `root-driver`): what a recorded test showed of its pods.
    measured: Mapping[str, Measured] = field(default_factory=dict)
    resampled: bool = False  # draws from what was measured, in place of one pod after the other
    caching: bool = True  # the server's execution cache; pipelines have to enable it too
    namespace: str = "kubeflow"
    tenants: tuple[Tenant, ...] = ()  # with any, KFP serves several users: runs are in their namespaces
    metrics_server: bool = True  # whether the usage of nodes and pods can be asked for (`kubectl top`)
    # PriorityClasses besides Kubernetes' own: name → value. Pods without one have the priority 0.
    priority_classes: Mapping[str, int] = field(default_factory=dict)
    queues: tuple[ClusterQueue, ...] = ()  # Kueue's: pods of their namespaces wait for quota
    hetida: Hetida | None = None
    faults: tuple[FaultPlan, ...] = ()
    ignore: tuple[str, ...] = ()  # fields of Argo's manifests that are not modelled: workflows run without them
