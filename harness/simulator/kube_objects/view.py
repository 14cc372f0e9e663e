"""The Kubernetes view of the model: every change becomes a new object version and its events."""

from functools import partial
from typing import cast

from harness.simulator.argo.nodes import Run
from harness.simulator.cluster import Change, Node, Pod
from harness.simulator.cluster.quota import Quota
from harness.simulator.engine.calendar import Calendar
from harness.simulator.kube_api import ObjectStore
from harness.simulator.kube_objects import config_maps, installation, settings, snapshots, usage
from harness.simulator.kube_objects.components import CONFIGURATION, DATABASE_CLAIM, RUNTIME, components
from harness.simulator.kube_objects.deployments import Deployment, Deployments
from harness.simulator.kube_objects.events import EventLog, not_created, pod_events
from harness.simulator.kube_objects.nodes import POOLS, render_pool
from harness.simulator.kube_objects.pod_status import pod_uid
from harness.simulator.kube_objects.types import Computed, Listed, resource_types
from harness.simulator.kube_objects.workflows import snapshot_of_argo, snapshot_of_run
from harness.simulator.platform import Platform
from harness.simulator.profile import Pool
from harness.simulator.workflows.workflow import Workflow

_BEGUN_AT = 5_000  # resource versions: the cluster was there before the test, and its history is forgotten
# Of events about nodes; all others are the node controller's.
_REPORTERS = {
    **dict.fromkeys(("NodeReady", "NodeNotSchedulable", "NodeSchedulable"), "kubelet"),
    "DeletingNode": "cloud-node-lifecycle-controller",
}
_OF_REPLICAS = {Change.STARTED, Change.NODE_NOT_READY, Change.TERMINATING, Change.GONE}
_STARTS_OR_ENDS = {Change.SCHEDULED, Change.STARTED, Change.OVER, Change.GONE}


class KubernetesView:
    """A listener of the cluster that keeps `store` up to date. `follow` sets the platform."""

    def __init__(self, calendar: Calendar, *, metrics_server: bool = True) -> None:
        self.calendar = calendar
        self._platform: Platform | None = None
        self._meter: usage.Meter | None = None
        self._explanations: dict[str, str] = {}
        self._waits: dict[str, str] = {}  # by pod of a run: what Argo says about its wait
        self._deployments: Deployments | None = None
        self.claims: dict[str, installation.Claim] = {}
        self.configuration: dict[str, str] = {}  # of the workflow controller
        self._services: tuple[installation.Service, ...] = ()
        self._quotas_since: dict[str, float] = {}  # by namespace
        self._priorities: dict[int, str] = {}  # value → class
        self._groups: dict[str, config_maps.Group] = {}  # node pools, by name
        computed = Computed(self.endpoint_slices, self.node_usage, self.pod_usage)
        types = resource_types(calendar, self._priorities, computed, metrics_server=metrics_server)
        self.store = ObjectStore(types, begun_at=_BEGUN_AT)
        self._log = EventLog(self.store, calendar, lambda: self._now)

    @property
    def platform(self) -> Platform:
        """The platform that is shown."""
        assert self._platform is not None
        return self._platform

    @property
    def deployments(self) -> Deployments:
        """The deployments of the installation."""
        assert self._deployments is not None
        return self._deployments

    @property
    def meter(self) -> usage.Meter:
        """The meter of the platform's resource usage."""
        assert self._meter is not None
        return self._meter

    @property
    def _now(self) -> float:
        return self._platform.loop.now if self._platform is not None else 0.0

    def follow(self, platform: Platform) -> None:
        """Show this platform and start its installation."""
        self._platform = platform
        self._deployments = Deployments(platform, self.store, self._deployment_changed)
        self._meter = usage.Meter(platform, self._deployments.pods)
        for pool in platform.profile.pools:
            self._pool_changed(pool)
        own = platform.profile.namespace
        for name in (*installation.NAMESPACES, own, *(tenant.namespace for tenant in platform.profile.tenants)):
            self.store.put("namespaces", "", name, installation.render_namespace(name, self.calendar.stamp))
        for component, replicas in components(platform.profile, platform.store.installed):
            self._deployments.install(component, component.namespace or own, replicas)
        self._services = installation.services(platform.profile, platform.store.installed)
        for service in self._services:
            self.store.put(
                "services", service.namespace, service.name, installation.render_service(service, self.calendar.stamp)
            )
        if platform.hetida is None:
            self.configure(config_maps.controller_configuration(platform))
            platform.controller.limited = self._limited
            self.set_claim(installation.Claim(platform.store.installed.claim, own, platform.store.capacity))
            self.set_claim(installation.Claim(DATABASE_CLAIM, own, platform.server.database.capacity))
        for name, value in {**installation.SYSTEM_CLASSES, **platform.profile.priority_classes}.items():
            self._priorities[value] = name
        quotas = platform.controller.quotas
        for namespace, quota in {own: quotas.shared, **quotas.of_tenants}.items():
            quota.changed = partial(self._quota_changed, namespace, quota)
            quota.changed()

    def _quota_changed(self, namespace: str, quota: Quota) -> None:
        if not quota.hard and namespace not in self._quotas_since:
            return
        since = self._quotas_since.setdefault(namespace, self._now)
        shown = installation.render_quota(quota, namespace, since, self.calendar.stamp)
        self.store.put("resourcequotas", namespace, quota.name, shown)

    def _deployment_changed(self, deployment: Deployment) -> None:
        name, platform = deployment.component.name, self.platform
        if name == RUNTIME and platform.hetida is not None:
            platform.hetida.scale(deployment.ready)
        if deployment.revision > 1 and deployment.rolled_out:
            settings.apply(platform, name, deployment.container, deployment.replicas)

    def configure(self, data: dict[str, str]) -> None:
        """Update the workflow controller's configuration."""
        self.configuration = data
        namespace = self.platform.profile.namespace
        shown = config_maps.config_map(CONFIGURATION, namespace, self.calendar.stamp(0.0), data)
        self.store.put("configmaps", namespace, CONFIGURATION, shown)

    def _limited(self) -> None:
        """The controller's limits changed: show them in the configuration."""
        throttler = self.platform.controller.throttler
        if settings.limits(self.configuration) != (throttler.most, throttler.most_of_each):
            kept = {name: value for name, value in self.configuration.items() if name not in settings.LIMITS}
            self.configure({**kept, **config_maps.limits(throttler)})

    def set_claim(self, claim: installation.Claim) -> None:
        """Update a volume claim."""
        self.claims[claim.name] = claim
        shown = installation.render_claim(claim, self.calendar.stamp)
        self.store.put("persistentvolumeclaims", claim.namespace, claim.name, shown)

    # --- changes of the cluster -----------------------------------------------------------------------------------

    def pod_changed(self, pod: Pod, change: Change, detail: str = "") -> None:
        """Store the pod's new state, and the events of its change."""
        if change is Change.REFUSED:  # no pod was created: its owner says so
            if isinstance(pod.owner, snapshots.Labels):
                name = pod.name.rpartition("-")[0]
                about = snapshots.Subject(
                    "ReplicaSet", pod.namespace, name, snapshots.uid("replicaset", pod.namespace, name)
                )
                self._log.write(about, not_created(detail))
            else:
                self.workflow_changed(cast("Workflow", pod.owner))
            return
        if change is Change.UNSCHEDULABLE:
            detail = pod.explanation or self.platform.cluster.scheduler.ranks.explain(pod.shape)
            self._explanations[pod.name] = detail
        self._note_wait(pod, change, detail)
        if change is Change.MAIN_ENDED:
            self.meter.main_ended(pod)
        elif change in {Change.OVER, Change.GONE} and pod.node is not None and pod.node.pods.get(pod.name) is pod:
            self.meter.leaves(pod)
        explanation = self._explanations.get(pod.name, "") if pod.unschedulable is not None else ""
        snapshot = snapshots.pod_snapshot(pod, explanation)
        if change is Change.GONE:
            self._explanations.pop(pod.name, None)
            if ("pods", pod.namespace, pod.name) in self:
                # A pod first gets a grace period of 0, which is a change of its own, and is then removed.
                self.store.put("pods", pod.namespace, pod.name, snapshot)
                self.store.delete("pods", pod.namespace, pod.name, snapshot)
        else:
            self.store.put("pods", pod.namespace, pod.name, snapshot)
        if isinstance(pod.owner, snapshots.Labels) and pod.owner.deployment and change in _OF_REPLICAS:
            self.deployments.pod_changed(pod, pod.owner.deployment, change)
        host = pod.node.name if pod.node is not None else ""
        about = _subject(pod, change) or snapshots.Subject("Pod", pod.namespace, pod.name, pod_uid(snapshot))
        for worded in pod_events(pod, change, detail):
            self._log.write(about, worded, host)

    def _note_wait(self, pod: Pod, change: Change, detail: str) -> None:
        """What Argo says about a pod that waits."""
        if change is Change.UNSCHEDULABLE:
            self._waits[pod.name] = f"Unschedulable: {detail}"
        elif change is Change.STATED and pod.words is not None and pod.words.waiting:
            self._waits[pod.name] = f"{pod.words.waiting}: {detail}"
        elif change in _STARTS_OR_ENDS:
            self._waits.pop(pod.name, None)

    def node_changed(self, node: Node, reason: str = "", message: str = "") -> None:
        """Store the node's new state, and the event of its change."""
        if node.gone is None:
            self.store.put("nodes", "", node.name, snapshots.node_snapshot(node, self._now))
        else:
            self.store.delete("nodes", "", node.name, snapshots.node_snapshot(node, self._now))
        self._pool_changed(node.pool)
        if reason:
            component = _REPORTERS.get(reason, "node-controller")
            worded = snapshots.Worded(
                reason, message, component, "Warning" if reason == "PreemptScheduled" else "Normal"
            )
            self._log.write(snapshots.Subject("Node", "default", node.name, node.name), worded, node.name)

    def _pool_changed(self, pool: Pool) -> None:
        if self._platform is not None:
            nodes = self._platform.cluster.pool_nodes(pool)
            ready = sum(node.ready is not None for node in nodes)
            shown = render_pool(pool.name, len(nodes), ready, self.calendar.stamp)
            self.store.put("machinedeployments", POOLS, pool.name, shown)
            scaler = self._platform.cluster.autoscaler
            if scaler is not None:
                coming, most = scaler.upcoming[pool.name], scaler.most[pool.name]
                self._groups[pool.name] = config_maps.Group(pool.name, len(nodes), ready, coming, pool.min, most)
                status = config_maps.AutoscalerStatus(tuple(self._groups.values()), self._now)
                self.store.put("configmaps", POOLS, config_maps.AUTOSCALER_STATUS, status)

    def workflow_changed(self, workflow: Workflow) -> None:
        """Store the workflow's new state, or remove it."""
        if workflow.key not in self.platform.controller.workflows:
            self._log.workflow_removed(workflow.name)
            if ("workflows", workflow.namespace, workflow.name) in self:
                self.store.delete("workflows", workflow.namespace, workflow.name)
            return
        platform, stamp = self.platform, self.calendar.stamp
        if isinstance(workflow, Run):
            snapshot = snapshot_of_argo(workflow, self._waits, platform.argo.locks)
        else:
            run = platform.server.runs.get(workflow.run_id)
            retries, name = platform.controller.settings.error_retries, run.name if run is not None else ""
            snapshot = snapshot_of_run(workflow, name, retries, self._waits, stamp)
        self.store.put("workflows", workflow.namespace, workflow.name, snapshot)
        self._log.workflow_changed(snapshot, platform.controller.client.events.when_sent)

    def __contains__(self, key: tuple[str, str, str]) -> bool:
        plural, namespace, name = key
        resource = next(each for each in self.store.resources if each.plural == plural and each.listing is None)
        return self.store.get(resource, namespace, name) is not None

    # --- computed on every read -----------------------------------------------------------------------------------

    def endpoint_slices(self) -> Listed:
        """The pods behind each service."""
        for service in self._services:
            pods = [snapshots.pod_snapshot(pod, "") for pod in self.deployments.pods.get(service.component, ())]
            shown = installation.render_endpoint_slice(service, pods, self.calendar.stamp)
            yield service.namespace, shown["metadata"]["name"], shown

    def answers(self, namespace: str, name: str) -> bool:
        """Whether a service has a ready pod; true for a name that is no service's."""
        its = next(
            (service for service in self._services if (service.namespace, service.name) == (namespace, name)), None
        )
        return its is None or not its.component or self.deployments[its.component].ready > 0

    def node_usage(self) -> Listed:
        """The usage of the ready nodes."""
        for node in self.platform.cluster.nodes.values():
            if node.ready is not None:
                yield "", node.name, self.meter.node(node)

    def pod_usage(self) -> Listed:
        """The usage of the running pods."""
        for node in self.platform.cluster.nodes.values():
            for pod, measured in self.meter.pods(node):
                yield pod.namespace, pod.name, measured


def _subject(pod: Pod, change: Change) -> snapshots.Subject | None:
    """The object that an event is about, where it is not the pod."""
    words = pod.words
    if change is not Change.STATED or words is None:
        return None
    if words.about == snapshots.CLAIM:
        name = snapshots.claim_of(pod)
        return snapshots.Subject(snapshots.CLAIM, pod.namespace, name, snapshots.uid("claim", pod.namespace, name))
    if words.about == "Node" and pod.node is not None:
        return snapshots.Subject("Node", "default", pod.node.name, pod.node.name)
    if words.about == "ConfigMap":
        return snapshots.Subject(
            "ConfigMap",
            POOLS,
            config_maps.AUTOSCALER_STATUS,
            snapshots.uid("configmap", POOLS, config_maps.AUTOSCALER_STATUS),
        )
    return None
