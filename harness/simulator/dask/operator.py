"""The operator: makes schedulers and workers of clusters, scales them, and removes them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from random import Random
from typing import Any

from harness.simulator.cluster import Change, Cluster, Pod
from harness.simulator.cluster.quota import Quotas
from harness.simulator.dask.pods import Template, make
from harness.simulator.dask.stage import Stage
from harness.simulator.engine.events import EventLoop

CLUSTER, GROUP, COMPONENT = "dask.org/cluster-name", "dask.org/workergroup-name", "dask.org/component"
SCHEDULER, WORKER, STAGE = "scheduler", "worker", "stage"  # components; the last is the client that tenants create
_REACTION_S = 0.2  # from a change to the operator's answer: its watch, and some requests (estimated)
_ADAPT_S, _COOL_DOWN_S = 5.0, 15.0  # of `daskautoscaler_adapt`
_FIRST_RETRY_S, _MOST_RETRY_S = 0.005, 1000.0  # of a ReplicaSet: client-go's rate limiter, which doubles its delay
_MOST_REMOVED = 0.25  # share of the workers, in one step of scaling down


@dataclass(slots=True, eq=False)
class DaskCluster:
    """A cluster and what belongs to it; the specification is that of its object, whose `replicas` may change.

    Attributes:
        manifest: as its client created it, with the server's metadata.
        created: simulated seconds.
        phase: Created, Pending, Running.
        replicas: desired workers.
        bounds: the least and the most workers, where an autoscaler keeps to them.
        scheduler: its pod.
        workers: their pods, by the name of their Deployment.
        client: the pod that has the stage carried out.
        refusals: why a quota keeps pods from being created, by their name.
    """

    manifest: Mapping[str, Any]
    created: float
    replicas: int
    _: KW_ONLY
    phase: str = "Created"
    bounds: tuple[int, int] | None = None
    scheduler: Pod | None = None
    workers: dict[str, Pod] = field(default_factory=dict)
    client: Pod | None = None
    stage: Stage | None = None
    refusals: dict[str, str] = field(default_factory=dict)
    cool_until: float = 0.0

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.manifest["metadata"]["name"])

    @property
    def namespace(self) -> str:
        """Its namespace."""
        return str(self.manifest["metadata"]["namespace"])

    @property
    def deployments(self) -> Mapping[str, Pod]:
        """The pods of its scheduler and its workers by the name of their Deployment."""
        first = {f"{self.name}-{SCHEDULER}": self.scheduler} if self.scheduler is not None else {}
        return {**first, **self.workers}

    @property
    def pods(self) -> Iterable[Pod]:
        """Its pods."""
        return filter(None, (self.scheduler, *self.workers.values(), self.client))

    def template(self, component: str) -> Template:
        """The specification of the pods of a component."""
        found: Template = self.manifest["spec"][component]["spec"]
        return found


class Operator:
    """Carries out what clients ask for.

    Args:
        loop: the event loop.
        cluster: where the pods are created.
        priorities: the values of the PriorityClasses, by name.
        random: draws names.
        quotas: on the pods.
        changed: called after each change of a cluster, and after its removal.
        owner: what a pod of a cluster, with its template, shows as its owner.
    """

    def __init__(
        self,
        loop: EventLoop,
        cluster: Cluster,
        priorities: Mapping[str, int],
        random: Random,
        *,
        quotas: Quotas,
        changed: Callable[[DaskCluster], None],
        owner: Callable[[DaskCluster, Template], object],
    ) -> None:
        self._loop = loop
        self._cluster = cluster
        self._priorities = priorities
        self._random = random
        self._quotas = quotas
        self._changed = changed
        self._owner = owner
        self.clusters: dict[tuple[str, str], DaskCluster] = {}

    def add(self, found: DaskCluster) -> None:
        """A client has created a cluster."""
        self.clusters[found.namespace, found.name] = found
        self._changed(found)
        self._loop.after(_REACTION_S, self._begin, found)

    def scale(self, found: DaskCluster, replicas: int) -> None:
        """Change the number of desired workers."""
        found.replicas = replicas
        self._changed(found)
        self._loop.after(_REACTION_S, self._fit, found)

    def adapt(self, found: DaskCluster, least: int, most: int) -> None:
        """A client has created an autoscaler, which looks at once and then every five seconds."""
        found.bounds = least, most
        self._loop.after(_REACTION_S, self._look, found)

    def run(self, found: DaskCluster, pod: Pod, template: Template, lengths: Iterable[float]) -> None:
        """A client has created the pod that has tasks of these lengths (seconds) carried out, and ends after them."""

        def running(_: Pod) -> None:
            found.stage = Stage(self._loop, lengths, done)
            self._offer(found)

        def done() -> None:
            if not pod.over and pod.deleting is None:
                self._cluster.kubelet.finish(pod)

        def over(_: Pod) -> None:
            if found.stage is not None:
                found.stage.stop()

        pod.on_running, pod.on_over, pod.role = running, over, STAGE
        found.client = pod
        self._create(found, pod, template)

    def remove(self, found: DaskCluster) -> None:
        """A client has deleted a cluster, and all that belongs to it goes."""
        del self.clusters[found.namespace, found.name]
        if found.stage is not None:
            found.stage.stop()
        for pod in tuple(found.pods):
            if pod.deleting is None:
                self._delete(found, pod)
        self._changed(found)

    def _is_gone(self, found: DaskCluster) -> bool:
        return self.clusters.get((found.namespace, found.name)) is not found

    # --- schedulers and workers -----------------------------------------------------------------------------------

    def _begin(self, found: DaskCluster) -> None:
        if self._is_gone(found):
            return
        self._make_scheduler(found)
        found.phase = "Running"  # its Service has an address at once, unless it is a load balancer's
        self._changed(found)
        self._fit(found)

    def _make_scheduler(self, found: DaskCluster) -> None:
        pod = self._make(found, f"{found.name}-{SCHEDULER}", SCHEDULER)
        pod.on_running = lambda _: self._changed(found)
        pod.on_over = lambda _: None if self._is_gone(found) else self._make_scheduler(found)
        found.scheduler = pod
        self._create(found, pod, found.template(SCHEDULER))

    def _fit(self, found: DaskCluster) -> None:
        """Create missing workers, delete surplus ones, newest first."""
        if self._is_gone(found):
            return
        while len(found.workers) > found.replicas:
            _, surplus = found.workers.popitem()
            self._delete(found, surplus)
        while len(found.workers) < found.replicas:
            self._make_worker(found, f"{found.name}-default-{WORKER}-{self._random.randrange(16**10):010x}")
        self._changed(found)

    def _make_worker(self, found: DaskCluster, deployment: str) -> None:
        pod = self._make(found, deployment, WORKER, **{GROUP: f"{found.name}-default"})

        def running(started: Pod) -> None:
            self._changed(found)
            if found.stage is not None:
                found.stage.offer(started)

        def over(ended: Pod) -> None:
            if found.stage is not None:
                found.stage.lose(ended)
            if found.workers.get(deployment) is ended and not self._is_gone(found):
                self._make_worker(found, deployment)  # as its Deployment does
                self._offer(found)

        pod.on_running, pod.on_over = running, over
        found.workers[deployment] = pod
        self._create(found, pod, found.template(WORKER))

    def _make(self, found: DaskCluster, deployment: str, component: str, **more: str) -> Pod:
        labels = {CLUSTER: found.name, COMPONENT: component, "sidecar.istio.io/inject": "false", **more}
        name = f"{deployment}-{self._random.randrange(16**10):010x}-{self._random.randrange(16**5):05x}"
        pod = make(name, found.namespace, found.template(component), labels, self._priorities)
        pod.role = component
        return pod

    def _create(self, found: DaskCluster, pod: Pod, template: Template, retry_s: float = _FIRST_RETRY_S) -> None:
        """Create a pod; one that a quota refuses is tried again, ever more rarely, as ReplicaSets do."""
        if pod.deleting is not None:
            return
        pod.owner = self._owner(found, template)
        quota = self._quotas.of(pod.namespace)
        if refusal := quota.refusal(pod):
            found.refusals[pod.name] = refusal
            self._cluster.listener.pod_changed(pod, Change.REFUSED, refusal)
            self._changed(found)
            self._loop.after(retry_s, self._create, found, pod, template, min(2 * retry_s, _MOST_RETRY_S))
            return
        found.refusals.pop(pod.name, None)
        over = pod.on_over

        def give_back(ended: Pod) -> None:
            quota.give_back(ended)
            if over is not None:
                over(ended)

        pod.on_over = give_back
        quota.take(pod)
        self._cluster.create(pod)

    def _delete(self, found: DaskCluster, pod: Pod) -> None:
        """Delete a pod, or give up creating it."""
        if found.refusals.pop(pod.name, None):
            pod.deleting = self._loop.now
        else:
            self._cluster.kubelet.delete(pod)

    def _offer(self, found: DaskCluster) -> None:
        for pod in found.workers.values():
            if found.stage is not None and pod.started is not None and not pod.over and pod.deleting is None:
                found.stage.offer(pod)

    # --- autoscalers ----------------------------------------------------------------------------------------------

    def _look(self, found: DaskCluster) -> None:
        if self._is_gone(found) or found.bounds is None:
            return
        self._loop.after(_ADAPT_S, self._look, found)
        ready = found.scheduler is not None and found.scheduler.started is not None
        if not ready or self._loop.now < found.cool_until:
            return
        wanted = desired(found.stage.left if found.stage is not None else 0, found.replicas, found.bounds)
        if wanted != found.replicas:
            found.cool_until = self._loop.now + _COOL_DOWN_S
            self.scale(found, wanted)


def desired(tasks: int, replicas: int, bounds: tuple[int, int]) -> int:
    """The workers that an autoscaler asks for: one per task, within its bounds, and not many fewer at once."""
    least, most = bounds
    wanted = min(max(tasks, least), most)
    return max(replicas - max(1, int(replicas * _MOST_REMOVED)), wanted) if replicas else wanted
