"""The model as the Kubernetes API shows it: every change becomes an object's next version and the events it makes."""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

from harness.simulator.cluster import Change, Node, Pod
from harness.simulator.cluster.quota import NAME as QUOTA
from harness.simulator.kfp.view import Calendar
from harness.simulator.kfp.workflow import Workflow
from harness.simulator.kube import settings, usage
from harness.simulator.kube.components import CONFIGURATION, DATABASE_CLAIM, RUNTIME, components
from harness.simulator.kube.config_maps import (
    AUTOSCALER_STATUS,
    ConfigMap,
    autoscaler_status,
    controller_configuration,
    render_config_map,
)
from harness.simulator.kube.deployments import Deployment, Deployments, render_deployment, render_replica_set
from harness.simulator.kube.events import event_fields, pod_events, render_event
from harness.simulator.kube.installation import (
    NAMESPACES,
    STORAGE_CLASS,
    Claim,
    Endpoint,
    EndpointSlice,
    Service,
    render_claim,
    render_endpoint_slice,
    render_namespace,
    render_service,
    render_storage_class,
    services,
)
from harness.simulator.kube.nodes import (
    LEASES,
    POOLS,
    PoolSnapshot,
    node_fields,
    node_labels,
    render_lease,
    render_node,
    render_pool,
)
from harness.simulator.kube.pod_status import pod_ip, pod_uid
from harness.simulator.kube.pods import pod_fields, pod_labels, render_pod
from harness.simulator.kube.policy import (
    SYSTEM_CLASSES,
    PriorityClass,
    QuotaSnapshot,
    render_priority_class,
    render_quota,
)
from harness.simulator.kube.snapshots import (
    EventSnapshot,
    Labels,
    Subject,
    Worded,
    WorkflowSnapshot,
    metadata,
    node_snapshot,
    pod_snapshot,
    uid,
    workflow_snapshot,
)  # fmt: skip
from harness.simulator.kubeapi import ObjectStore, Resource, resources
from harness.simulator.platform import Platform
from harness.simulator.profile import Pool

_EVENTS_KEPT_S = 3600.0  # kube-apiserver's --event-ttl
T = TypeVar("T")


class KubernetesView:
    """A witness of the cluster that keeps `store` up to date. `follow` gives it the platform it shows."""

    def __init__(self, calendar: Calendar) -> None:
        self.calendar = calendar
        self._platform: Platform | None = None
        self._meter: usage.Meter | None = None
        self._events = 0
        self._kept: deque[tuple[float, str, str]] = deque()
        self._explanations: dict[str, str] = {}
        self._deployments: Deployments | None = None
        self.claims: dict[str, Claim] = {}
        self.configuration: dict[str, str] = {}  # of the workflow controller
        self._services: tuple[Service, ...] = ()
        self._quota_since: float | None = None
        self._priorities: dict[int, str] = {}  # value → class
        self.store = ObjectStore(self._resources())

    @property
    def platform(self) -> Platform:
        """What is shown."""
        assert self._platform is not None
        return self._platform

    @property
    def deployments(self) -> Deployments:
        """Those of the installation."""
        assert self._deployments is not None
        return self._deployments

    @property
    def meter(self) -> usage.Meter:
        """What measures it."""
        assert self._meter is not None
        return self._meter

    @property
    def _now(self) -> float:
        return self._platform.loop.now if self._platform is not None else 0.0

    def follow(self, platform: Platform) -> None:
        """Show this platform: its installation runs from now on."""
        self._platform = platform
        self._deployments = Deployments(platform, self.store, self._deployment_changed)
        self._meter = usage.Meter(platform, self._deployments.pods)
        for pool in platform.profile.pools:
            self._pool_changed(pool)
        own = platform.profile.namespace
        for name in (*NAMESPACES, own):
            self.store.put("namespaces", "", name, name)
        for component, replicas in components(platform.profile, platform.store.installed):
            self._deployments.install(component, component.namespace or own, replicas)
        self._services = services(platform.profile, platform.store.installed)
        for service in self._services:
            self.store.put("services", service.namespace, service.name, service)
        self.store.put("storageclasses", "", STORAGE_CLASS, STORAGE_CLASS)
        if platform.hetida is None:
            self.configure(controller_configuration(platform))
            platform.controller.limited = self._limited
            self.set_claim(Claim(platform.store.installed.claim, own, platform.store.capacity))
            self.set_claim(Claim(DATABASE_CLAIM, own, platform.server.database.capacity))
        for name, value in {**SYSTEM_CLASSES, **platform.profile.priority_classes}.items():
            self._priorities[value] = name
            self.store.put("priorityclasses", "", name, PriorityClass(name, value))
        platform.controller.quota.changed = self._quota_changed
        self._quota_changed()

    def _quota_changed(self) -> None:
        quota, namespace = self.platform.controller.quota, self.platform.profile.namespace
        if not quota.hard and self._quota_since is None:
            return
        if self._quota_since is None:
            self._quota_since = self._now
        hard, used = (tuple(each.items()) for each in (quota.hard, quota.used))
        self.store.put(
            "resourcequotas", namespace, QUOTA, QuotaSnapshot(QUOTA, namespace, hard, used, self._quota_since)
        )

    def _deployment_changed(self, deployment: Deployment) -> None:
        name, platform = deployment.component.name, self.platform
        if name == RUNTIME and platform.hetida is not None:
            platform.hetida.scale(deployment.ready)
        if deployment.revision > 1 and deployment.rolled_out:
            settings.turn(platform, name, deployment.container, deployment.replicas)

    def configure(self, data: dict[str, str]) -> None:
        """Show the workflow controller's configuration as it is now."""
        self.configuration = data
        namespace = self.platform.profile.namespace
        self.store.put("configmaps", namespace, CONFIGURATION, ConfigMap(CONFIGURATION, namespace, data))

    def _limited(self, workflows: int) -> None:
        """The controller lets so many run at once, whoever saw to that."""
        if settings.parallelism(self.configuration) != workflows:
            kept = {name: value for name, value in self.configuration.items() if name not in settings.LIMITS}
            self.configure({**kept, "parallelism": str(workflows)} if workflows else kept)

    def set_claim(self, claim: Claim) -> None:
        """Show a volume claim as it is now."""
        self.claims[claim.name] = claim
        self.store.put("persistentvolumeclaims", claim.namespace, claim.name, claim)

    # --- witness ------------------------------------------------------------------------------------------------

    def pod_changed(self, pod: Pod, change: Change, detail: str = "") -> None:
        """A pod changed."""
        if change is Change.REFUSED:  # there is no pod: the event is about the workflow
            workflow = cast("Workflow", pod.owner)
            about = Subject("Workflow", pod.namespace, workflow.name, uid("workflow", pod.namespace, workflow.name))
            for worded in pod_events(pod, change, detail):
                self._event(about, worded, "")
            return
        if change is Change.UNSCHEDULABLE:
            detail = self._explanations[pod.name] = self.platform.cluster.scheduler.ranks.explain(pod.shape)
        if change is Change.MAIN_ENDED:
            self.meter.main_ended(pod)
        elif change in {Change.OVER, Change.GONE} and pod.node is not None and pod.node.pods.get(pod.name) is pod:
            self.meter.leaves(pod)
        explanation = self._explanations.get(pod.name, "") if pod.unschedulable is not None else ""
        snapshot = pod_snapshot(pod, explanation)
        if change is Change.GONE:
            self._explanations.pop(pod.name, None)
            if ("pods", pod.namespace, pod.name) in self:
                # The end of a pod is its deletion without a grace, a change like others before it is gone.
                self.store.put("pods", pod.namespace, pod.name, snapshot)
                self.store.delete("pods", pod.namespace, pod.name, snapshot)
        else:
            self.store.put("pods", pod.namespace, pod.name, snapshot)
        if isinstance(pod.owner, Labels) and change in {Change.STARTED, Change.TERMINATING, Change.GONE}:
            self.deployments.pod_changed(pod, pod.owner.deployment, change)
        host = pod.node.name if pod.node is not None else ""
        for worded in pod_events(pod, change, detail):
            self._event(Subject("Pod", pod.namespace, pod.name, pod_uid(snapshot)), worded, host)

    def node_changed(self, node: Node, reason: str = "", message: str = "") -> None:
        """A node changed."""
        if node.gone is None:
            self.store.put("nodes", "", node.name, node_snapshot(node, self._now))
        else:
            self.store.delete("nodes", "", node.name, node_snapshot(node, self._now))
        self._pool_changed(node.pool)
        if reason:
            component = (
                "kubelet" if reason in {"NodeReady", "NodeNotSchedulable", "NodeSchedulable"} else "node-controller"
            )
            worded = Worded(reason, message, component, "Warning" if reason == "PreemptScheduled" else "Normal")
            self._event(Subject("Node", "default", node.name, node.name), worded, node.name)

    def _pool_changed(self, pool: Pool) -> None:
        if self._platform is not None:
            nodes = self._platform.cluster.pool_nodes(pool)
            ready = sum(node.ready is not None for node in nodes)
            self.store.put("machinedeployments", POOLS, pool.name, PoolSnapshot(pool.name, len(nodes), ready))
            if self._platform.cluster.autoscaler is not None:
                told = ConfigMap(AUTOSCALER_STATUS, POOLS, autoscaler_status(self._platform, self.calendar))
                self.store.put("configmaps", POOLS, AUTOSCALER_STATUS, told)

    def workflow_changed(self, workflow: Workflow) -> None:
        """A workflow's status was written."""
        if workflow.name in self.platform.controller.workflows:
            self.store.put("workflows", workflow.namespace, workflow.name, workflow_snapshot(workflow))
        elif ("workflows", workflow.namespace, workflow.name) in self:
            self.store.delete("workflows", workflow.namespace, workflow.name)

    def __contains__(self, key: tuple[str, str, str]) -> bool:
        plural, namespace, name = key
        resource = next(each for each in self.store.resources if each.plural == plural and each.listing is None)
        return self.store.get(resource, namespace, name) is not None

    def _event(self, about: Subject, worded: Worded, host: str) -> None:
        now = self._now
        self._events += 1
        event_name = f"{about.name}.{self.calendar.ns(now) + self._events:x}"
        host = host if worded.component == "kubelet" else ""
        event = EventSnapshot(event_name, about, worded, host, now)
        self.store.put("events", about.namespace, event_name, event)
        self._kept.append((now, about.namespace, event_name))
        while self._kept[0][0] < now - _EVENTS_KEPT_S:
            _, old_namespace, old_name = self._kept.popleft()
            self.store.delete("events", old_namespace, old_name)

    # --- resources ----------------------------------------------------------------------------------------------

    def _resources(self) -> list[Resource]:
        calendar, stamp = self.calendar, self.calendar.stamp
        events = resources.events(
            render=_reads(lambda event: render_event(event, calendar)),
            labels=lambda _: {},
            fields=_reads(event_fields),
        )
        return [
            resources.nodes(
                render=_reads(lambda node: render_node(node, stamp)),
                labels=_reads(node_labels),
                fields=_reads(node_fields),
            ),
            resources.pods(
                render=_reads(lambda pod: render_pod(pod, stamp, self._priorities)),
                labels=_reads(pod_labels),
                fields=_reads(pod_fields),
            ),
            events,
            resources.events_v1(events),
            resources.namespaces(**resources.shown(lambda name: render_namespace(name, stamp), "status.phase")),
            resources.persistent_volume_claims(**resources.shown(lambda claim: render_claim(claim, stamp))),
            resources.resource_quotas(**resources.shown(lambda quota: render_quota(quota, stamp))),
            resources.priority_classes(**resources.shown(lambda each: render_priority_class(each, stamp))),
            resources.leases(**resources.shown(lambda lease: render_lease(lease, calendar)), listing=self._leases),
            resources.services(**resources.shown(lambda service: render_service(service, stamp))),
            resources.config_maps(**resources.shown(lambda config_map: render_config_map(config_map, stamp))),
            resources.storage_classes(**resources.shown(lambda name: render_storage_class(name, stamp))),
            resources.endpoint_slices(
                **resources.shown(lambda slice_: render_endpoint_slice(slice_, stamp)), listing=self._endpoint_slices
            ),
            resources.deployments(**resources.shown(lambda deployment: render_deployment(deployment, stamp))),
            resources.replica_sets(**resources.shown(lambda these: render_replica_set(these, stamp))),
            resources.workflows(**resources.shown(lambda workflow: render_workflow(workflow, calendar))),
            resources.machine_deployments(**resources.shown(lambda pool: render_pool(pool, stamp))),
            resources.node_metrics(
                **resources.shown(lambda measured: usage.render_node(measured, calendar)), listing=self._node_usage
            ),
            resources.pod_metrics(
                **resources.shown(lambda measured: usage.render_pod(measured, calendar)), listing=self._pod_usage
            ),
        ]

    def _leases(self) -> Iterable[tuple[str, str, object]]:
        for node in self.platform.cluster.nodes.values():
            yield LEASES, node.name, node_snapshot(node, self._now)

    def _endpoint_slices(self) -> Iterable[tuple[str, str, object]]:
        for service in self._services:
            pods = [pod_snapshot(pod, "") for pod in self.deployments.pods.get(service.component, ())]
            ends = tuple(
                Endpoint(pod.name, pod.node, pod_ip(pod), ready=pod.started is not None) for pod in pods if pod_ip(pod)
            )
            slice_ = EndpointSlice(service, ends)
            yield service.namespace, slice_.name, slice_

    def _node_usage(self) -> Iterable[tuple[str, str, object]]:
        for node in self.platform.cluster.nodes.values():
            if node.ready is not None:
                yield "", node.name, self.meter.node(node)

    def _pod_usage(self) -> Iterable[tuple[str, str, object]]:
        for node in self.platform.cluster.nodes.values():
            for pod, measured in self.meter.pods(node):
                yield pod.namespace, pod.name, measured


def _reads(read: Callable[[Any], T]) -> Callable[[object], T]:
    """A reader of one kind of snapshot: the store knows all of them as objects."""
    return read


def render_workflow(workflow: WorkflowSnapshot, calendar: Calendar) -> dict[str, Any]:
    """The custom resource, without the compiled templates."""
    stamp = calendar.stamp
    status: dict[str, Any] = {"phase": workflow.phase, "progress": f"{workflow.done}/{workflow.total}"}
    for name, value in (("startedAt", workflow.started), ("finishedAt", workflow.finished)):
        status[name] = stamp(value) if value is not None else None
    if workflow.message:
        status["message"] = workflow.message
    labels = {"pipeline/runid": workflow.run_id}
    if workflow.started is not None:
        labels["workflows.argoproj.io/phase"] = workflow.phase
    if workflow.finished is not None:
        labels["workflows.argoproj.io/completed"] = "true"
    if workflow.kept:
        labels["pipeline/persistedFinalState"] = "true"
    return {
        "metadata": metadata("workflow", workflow.name, stamp(workflow.created), workflow.namespace, labels=labels),
        "spec": {"entrypoint": "entrypoint", "serviceAccountName": "pipeline-runner"},
        "status": status,
    }
