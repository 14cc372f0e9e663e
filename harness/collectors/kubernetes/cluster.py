"""Nodes, pods, events, volume claims, workflows and Karpenter's claims, each listed once and then watched."""

import threading
from collections.abc import Iterator, Mapping

from harness.collectors.collector import Observation
from harness.collectors.kubernetes.kube_api import KubeApi
from harness.collectors.kubernetes.node_claims import VERSIONS, NodeClaims
from harness.collectors.kubernetes.nodes import Nodes
from harness.collectors.kubernetes.pod.events import Events
from harness.collectors.kubernetes.pod.launcher_logs import LauncherLogs
from harness.collectors.kubernetes.pod.life import label_of
from harness.collectors.kubernetes.pod.observed import Pods
from harness.collectors.kubernetes.pod.others import OtherPods
from harness.collectors.kubernetes.pvcs import Claims
from harness.collectors.kubernetes.quotas import EVERY_S, SOURCE, Quotas
from harness.collectors.kubernetes.reflector import Manifest, OnChange, Reflector
from harness.collectors.kubernetes.replicas import Replicas
from harness.collectors.kubernetes.workflow.controller_limits import ControllerArguments, record_limits
from harness.collectors.kubernetes.workflow.reader import ARGO, WorkflowReader
from harness.collectors.kubernetes.workflow.watch import KIND as WORKFLOW_KIND
from harness.collectors.kubernetes.workflow.watch import Workflows
from harness.collectors.source_health import Polling, SourceHealth, UnreachableError
from harness.model.live.observer import LiveObserver
from harness.model.phases import NOT_REACHABLE, PLATFORM, VERSION
from harness.model.records import Event, Node
from harness.targets.target import RunsInService

_NOT_FOUND, _FORBIDDEN = 404, 403
_VERSION = "/version"
_CLUSTER_EVENTS = "default"  # the namespace of events of nodes
_TICK_S = 0.5
_HEARTBEAT_S, _BRIEF_S = 5.0, 10.0


class Cluster:
    """Follows each type of object in a thread of its own."""

    def __init__(self, observation: Observation) -> None:
        self._observation = observation
        self._journal = journal = observation.journal
        since = observation.plan.started_at
        self._api = KubeApi(observation.settings, journal)
        # Watches resume after a short outage, and say so themselves.
        self._health = SourceHealth("kubernetes", journal, brief_s=_BRIEF_S)
        self._nodes = Nodes(journal, {node.name: node for node in observation.folder.records(Node)}.values())
        self._logs = LauncherLogs(self._api, journal)
        self._pods = Pods(journal, since, self._logs.offer)
        recorded = observation.folder.records(Event)
        phases = ((event.object, event.reason) for event in recorded if event.kind == WORKFLOW_KIND)
        self._workflows = Workflows(journal, since, phases)
        self._replicas = Replicas(journal, observation.target, self._nodes.known)
        self._controller = ControllerArguments(journal)
        self._others = OtherPods(journal, since, observation.settings.platform_namespaces)
        self._events = Events(
            journal, self._pods.see_event, since, recorded, self._workflows.run_of, self._pods.see_other_event
        )  # fmt: skip
        self._claims = Claims(journal)
        self._node_claims = NodeClaims(journal, since, recorded)
        self._karpenter = False
        self._reader = WorkflowReader(
            self._api, self._workflows, journal, observation.activity,
            lambda: self._pods.working, self._pods.runs,
        )  # fmt: skip
        self._reflectors: list[Reflector] = []
        self._pod_reflectors: list[Reflector] = []
        self._workflow_reflectors: list[Reflector] = []
        self._problem = ""
        self._release = next((e.message for e in reversed(recorded) if (e.kind, e.reason) == (PLATFORM, VERSION)), "")

    def collect(self, stop: threading.Event) -> None:
        """See `Collector`."""
        while not self._reflectors and not stop.is_set():
            try:
                self._reflectors = list(self._find())
            except UnreachableError as error:
                self._problem = str(error)
                stop.wait(self._health.failed(error))
        if self._reflectors:
            self._health.answered()
            self._follow(stop)

    def _see_node(self, change: str, manifest: Manifest) -> None:
        self._nodes.see(change, manifest)
        self._pods.see_node(manifest, self._nodes.known.get(str(manifest["metadata"]["name"])))

    def _heartbeat(self) -> Polling:
        """A watch says nothing while nothing happens; whether the API server still responds has to be asked."""

        def ask() -> None:
            release = str(self._api.get(_VERSION).get("gitVersion") or "")
            if release and release != self._release:
                self._release = release
                self._journal.write(Event(self._journal.now(), PLATFORM, "kubernetes", VERSION, release))

        return Polling(self._health, ask, _HEARTBEAT_S)

    def live(self) -> LiveObserver | None:
        """See `Collector`."""
        if not self._reflectors:
            return LiveObserver(kubernetes=self._problem) if self._problem else None
        if not all(reflector.looked for reflector in self._reflectors):
            return None
        own_pods = not isinstance(self._observation.target, RunsInService)
        counted = self._nodes.of_steps(self._pods.step_hosts) if own_pods else self._nodes.of_all()
        return LiveObserver(
            ready_nodes=counted[0] if counted else None,
            nodes=counted[1] if counted else None,
            coming_nodes=self._node_claims.coming if self._karpenter else None,
            pods=self._pods.phases(),
            blocked=self._pods.blocked,
        )

    def _follow(self, stop: threading.Event) -> None:
        own = self._observation.settings.own_namespaces or (self._api.context_namespace,)
        quotas = Quotas(self._api, self._journal, filter(None, own))
        polled = Polling(SourceHealth(SOURCE, self._journal, brief_s=_BRIEF_S), quotas.read, EVERY_S)
        followed: list[Reflector | WorkflowReader | Polling] = [*self._reflectors, self._heartbeat(), polled]
        if self._workflow_reflectors:
            followed.append(self._reader)
        threads = [
            threading.Thread(target=each.follow, args=(stop,), name=f"watch-{k}", daemon=True)
            for k, each in enumerate(followed)
        ]
        reading = threading.Thread(
            target=self._logs.follow, args=(stop, self._pods.see_log), name="launcher-logs", daemon=True
        )
        threads.append(reading)
        for thread in threads:
            thread.start()
        activity = self._observation.activity
        while not stop.wait(_TICK_S):
            self._events.release()
            self._others.use(self._pods.hosts)
            looked = all(reflector.looked for reflector in self._reflectors)
            seen = looked and not any(pod_reflector.lapsed for pod_reflector in self._pod_reflectors)
            activity.pods = self._pods.alive if seen else None
            activity.worked = self._pods.runs if seen else None
            current = self._workflow_reflectors and all(reflector.current for reflector in self._workflow_reflectors)
            activity.persisted = self._workflows.persisted if current else None
            activity.unfinished = self._workflows.unfinished if current else None
            if self._reflectors[0].listed:
                self._nodes.listed()
        activity.pods = activity.persisted = activity.unfinished = None
        self._api.interrupt()
        for thread in threads:
            thread.join()
        self._events.release(every=True)

    def _find(self) -> Iterator[Reflector]:
        """A reflector for each list that this account may read; the first one is that of the nodes.

        Raises:
            UnreachableError: no API server responds.
        """
        self._api.get(_VERSION)
        settings = self._observation.settings
        platform = settings.platform_namespaces
        own = settings.own_namespaces or (self._api.context_namespace,)
        namespaces = tuple(dict.fromkeys(name for name in (*own, *platform) if name))
        label = label_of(self._observation.target)
        steps, others = {"labelSelector": label}, {"labelSelector": f"!{label}"}
        events = self._paths("/api/v1", "events", (*namespaces, _CLUSTER_EVENTS))
        self._workflow_reflectors = [
            self._reflector("workflows", path, self._workflows.see, tracks=False, metadata_only=True)
            for path in self._paths(ARGO, "workflows", namespaces)
        ]
        if self._workflow_reflectors:
            record_limits(self._api, self._journal, platform, [name for name in own if name])
        pods = self._paths("/api/v1", "pods", namespaces)
        self._pod_reflectors = [self._reflector("pods", path, self._pods.see, steps) for path in pods]
        yield self._reflector("nodes", "/api/v1/nodes", self._see_node)
        yield from self._pod_reflectors
        for path in pods:
            yield self._reflector("pods without a run", path, self._see_other, others)
        for path in events:
            yield self._reflector("events", path, self._events.see, tracks=False)
        for name in namespaces:
            path = f"/api/v1/namespaces/{name}/persistentvolumeclaims"
            yield self._reflector("volume claims", path, self._claims.see)
        yield from self._workflow_reflectors
        if path := self._node_claims_path():
            self._karpenter = True
            yield self._reflector("node claims", path, self._node_claims.see)

    def _see_other(self, change: str, manifest: Manifest) -> None:
        """Of the platform's components, failures and settings; of others, what they hold; of replicas, workers."""
        self._replicas.see(change, manifest)
        self._controller.see(change, manifest)
        of_platform = manifest["metadata"].get("namespace") in self._observation.settings.platform_namespaces
        (self._pods if of_platform else self._others).see(change, manifest)

    def _node_claims_path(self) -> str:
        """The list of Karpenter's claims; "" where there is no Karpenter, or they may not be listed."""
        for version in VERSIONS:
            try:
                self._api.get(f"{version}/nodeclaims", {"limit": "1"})
            except UnreachableError as error:
                if error.status == _FORBIDDEN:
                    return ""
                if error.status != _NOT_FOUND:
                    raise
            else:
                return f"{version}/nodeclaims"
        return ""

    def _paths(self, api: str, plural: str, namespaces: tuple[str, ...]) -> list[str]:
        """The list of all namespaces if that is allowed and wanted, else one list for each of `namespaces`.

        Empty where the cluster has no such type: not every cluster runs Argo.
        """
        within = [f"{api}/namespaces/{name}/{plural}" for name in dict.fromkeys(namespaces)]
        everywhere = not self._observation.settings.namespace or not within
        try:
            self._api.get(f"{api}/{plural}" if everywhere else within[0], {"limit": "1"})
        except UnreachableError as error:
            if error.status == _NOT_FOUND:
                self._journal.note(NOT_REACHABLE, f"kubernetes {plural}", str(error))
                return []
            if error.status != _FORBIDDEN:
                raise
            return within
        return [f"{api}/{plural}"] if everywhere else within

    def _reflector(
        self, name: str, path: str, on_change: OnChange, query: Mapping[str, str] | None = None, **more: bool
    ) -> Reflector:
        health = SourceHealth(f"kubernetes {name}", self._journal)
        return Reflector(self._api, path, query or {}, on_change, health=health, journal=self._journal, **more)


def open_collector(observation: Observation) -> Cluster:
    """Follows the cluster of the kubeconfig, or the one this process runs in."""
    return Cluster(observation)
