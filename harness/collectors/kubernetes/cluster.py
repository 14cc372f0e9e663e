"""Nodes, pods, events, volume claims and workflows of the cluster, each listed once and then watched."""

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from harness.collectors.collector import Observation
from harness.collectors.journal import Journal
from harness.collectors.kubernetes.events import BEFORE_NS, Events
from harness.collectors.kubernetes.kube_api import KubeApi
from harness.collectors.kubernetes.nodes import Nodes
from harness.collectors.kubernetes.pod_requests import RequestsSeen
from harness.collectors.kubernetes.pods import WORKFLOW, PodLife
from harness.collectors.kubernetes.pvcs import Claims
from harness.collectors.kubernetes.reflector import Manifest, OnChange, Reflector
from harness.collectors.kubernetes.workflows import KIND as WORKFLOW_KIND
from harness.collectors.kubernetes.workflows import Workflows
from harness.collectors.source_health import NOT_REACHABLE, SourceHealth, UnreachableError
from harness.model.records import Event, Node, Span

_NOT_FOUND, _FORBIDDEN = 404, 403
_ARGO = "/apis/argoproj.io/v1alpha1"
_CLUSTER_EVENTS = "default"  # events of nodes lie in this namespace
_TICK_S = 0.5


@dataclass(slots=True)
class _Known:
    """A pod's life and what of it has been written."""

    life: PodLife
    spans: dict[tuple[str, int], Span]
    told_at: int | None  # when we were told of its creation, by our clock; none once that has been used
    failures: int = 0


class Pods:
    """The pods of runs, with spans that are written whenever they are known better, and the failures of all pods."""

    def __init__(self, journal: Journal, since: int) -> None:
        self._journal = journal
        self._since = since - BEFORE_NS
        self._pods: dict[str, _Known] = {}
        self._by_name: dict[tuple[str, str], str] = {}  # the latest uid of each (namespace, name)
        self._alive: set[str] = set()  # of runs
        self.runs: set[str] = set()  # that pods have worked for
        self._requests = RequestsSeen()
        self._ahead: int | None = None  # how far our clock and the way of news are ahead of the cluster's clock, ns
        self._lock = threading.Lock()

    def see(self, change: str, manifest: Manifest) -> None:
        """Take in a pod, new, changed or gone."""
        metadata = manifest["metadata"]
        uid = str(metadata["uid"])
        with self._lock:
            known = self._pods.get(uid)
            if known is None:
                known = self._pods[uid] = _Known(PodLife.of(manifest), {}, self._journal.now())
                self._by_name[str(metadata.get("namespace", "")), str(metadata["name"])] = uid
            if change == "DELETED":
                known.life.see_deleted(manifest, self._journal.now())
            else:
                known.life.see(manifest, self._journal.now())
            if known.life.run:
                spec, now_at = manifest.get("spec") or {}, self._journal.now()
                for sample in self._requests.tell(known.life.task, known.life.name, spec, now_at):
                    self._journal.write(sample)
                self.runs.add(known.life.run)
            if known.life.run and known.life.over is None:
                self._alive.add(uid)
            else:
                self._alive.discard(uid)
            self._write(known)

    def see_event(self, event: Manifest) -> PodLife | None:
        """Take in an event of a pod; returns the pod's life, none when the pod is not known.

        Most events name the pod's uid; those of the controller that clears unreachable nodes do not.
        """
        about = event["involvedObject"]
        with self._lock:
            uid = about.get("uid") or self._by_name.get((about.get("namespace", ""), about.get("name", "")), "")
            known = self._pods.get(uid)
            if known is None:
                return None
            known.life.see_event(event)
            if known.told_at is not None and known.life.scheduled_at is not None:
                self._date_creation(known, known.told_at, known.life.scheduled_at)
            self._write(known)
            return known.life

    def _date_creation(self, known: _Known, told_at: int, scheduled_at: int) -> None:
        """Date a pod's creation better than the whole second that the API server stamps, by when we were told of it.

        The two clocks are compared by the placements, which are stamped in microseconds: the least difference between
        such a stamp and our hearing of it is what our clock is ahead of the cluster's, and how long news take.
        """
        ahead = self._journal.now() - scheduled_at
        self._ahead = ahead if self._ahead is None else min(self._ahead, ahead)
        known.life.appeared(told_at - self._ahead)
        known.told_at = None

    @property
    def alive(self) -> int:
        """How many pods of runs are not over."""
        return len(self._alive)

    def phases(self) -> Mapping[str, int]:
        """The pods of runs by phase."""
        with self._lock:
            return Counter(known.life.phase for known in self._pods.values() if known.life.run)

    def _write(self, known: _Known) -> None:
        life = known.life
        if life.over and life.over.at < self._since:
            return
        left = dict(known.spans)
        for span in life.spans():
            key = (span.phase, span.attempt)
            left.pop(key, None)
            if known.spans.get(key) != span:
                known.spans[key] = span
                self._journal.write(span)
        for key, span in left.items():
            # Known better now, this stretch never was; a written record can only be outdone by an empty one.
            if span.ended_at != span.started_at:
                known.spans[key] = replace(span, ended_at=span.started_at)
                self._journal.write(known.spans[key])
        failures = life.failures()
        for failure in failures[known.failures :]:
            self._journal.write(failure)
        known.failures = len(failures)


class Cluster:
    """Follows nodes, pods and events, each in a thread of its own."""

    def __init__(self, observation: Observation) -> None:
        self._observation = observation
        self._journal = journal = observation.journal
        since = observation.plan.started_at
        self._api = KubeApi(observation.settings, journal)
        self._contact = SourceHealth("kubernetes", journal)
        self._nodes = Nodes(journal, {node.name: node for node in observation.folder.records(Node)}.values())
        self._pods = Pods(journal, since)
        self._events = Events(journal, self._pods.see_event, since, _recorded(observation))
        self._claims = Claims(journal)
        told = (each for each in observation.folder.records(Event) if each.kind == WORKFLOW_KIND)
        self._workflows = Workflows(journal, since, ((each.object, each.reason) for each in told))
        self._reflectors: list[Reflector] = []
        self._of_workflows: list[Reflector] = []
        self._looked = False

    def collect(self, stop: threading.Event) -> None:
        """See `Collector`."""
        while not self._reflectors and not stop.is_set():
            try:
                self._reflectors = self._find()
            except UnreachableError as error:
                self._looked = True
                stop.wait(self._contact.failed(error))
        if self._reflectors:
            self._contact.made()
            self._follow(stop)

    def live(self) -> Mapping[str, object]:
        """See `Collector`; nodes and pods as they are now."""
        if not self._reflectors:
            return {"kubernetes": "not reachable"} if self._looked else {}
        if not all(reflector.looked for reflector in self._reflectors):
            return {}
        return {"ready_nodes": self._nodes.ready, "nodes": len(self._nodes), "pods": self._pods.phases()}

    def _follow(self, stop: threading.Event) -> None:
        threads = [
            threading.Thread(target=each.follow, args=(stop,), name=f"watch-{k}", daemon=True)
            for k, each in enumerate(self._reflectors)
        ]
        for thread in threads:
            thread.start()
        while not stop.wait(_TICK_S):
            self._events.release()
            looked = all(reflector.looked for reflector in self._reflectors)
            self._observation.activity.pods = self._pods.alive if looked else None
            self._observation.activity.worked = self._pods.runs if looked else None
            follows = self._of_workflows and all(reflector.follows for reflector in self._of_workflows)
            self._observation.activity.kept = self._workflows.kept if follows else None
            if self._reflectors[0].listed:
                self._nodes.listed()
        self._observation.activity.pods = self._observation.activity.kept = None
        self._api.interrupt()
        for thread in threads:
            thread.join()
        self._events.release(every=True)

    def _find(self) -> list[Reflector]:
        """What there is to follow, as far as this account may see it.

        Raises:
            UnreachableError: there is no API server to ask.
        """
        self._api.get("/version")
        settings = self._observation.settings
        platform = settings.platform_namespaces
        own = settings.namespace or self._api.context_namespace
        namespaces = tuple(dict.fromkeys(name for name in (own, *platform) if name))
        steps, others = {"labelSelector": WORKFLOW}, {"labelSelector": f"!{WORKFLOW}"}
        events = self._paths("/api/v1", "events", (*namespaces, _CLUSTER_EVENTS))
        workflows = self._paths(_ARGO, "workflows", namespaces)
        self._of_workflows = [
            self._reflector("workflows", path, {}, self._workflows.see, tracks=False, metadata_only=True)
            for path in workflows
        ]
        return [
            self._reflector("nodes", "/api/v1/nodes", {}, self._nodes.see),
            *(
                self._reflector("pods", path, steps, self._pods.see)
                for path in self._paths("/api/v1", "pods", namespaces)
            ),
            *(
                self._reflector("platform's pods", f"/api/v1/namespaces/{name}/pods", others, self._pods.see)
                for name in platform
            ),
            *(self._reflector("events", path, {}, self._events.see, tracks=False) for path in events),
            *(
                self._reflector(
                    "volume claims", f"/api/v1/namespaces/{name}/persistentvolumeclaims", {}, self._claims.see
                )
                for name in namespaces
            ),
            *self._of_workflows,
        ]

    def _paths(self, api: str, plural: str, namespaces: tuple[str, ...]) -> list[str]:
        """The list of all namespaces where it is allowed and wanted, else one of each of `namespaces`.

        None where the cluster has no such type: an Argo is not everywhere.
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
        self, what: str, path: str, query: Mapping[str, str], on_change: OnChange, **more: bool
    ) -> Reflector:
        contact = SourceHealth(f"kubernetes {what}", self._journal)
        return Reflector(self._api, path, query, on_change, contact=contact, journal=self._journal, **more)


def _recorded(observation: Observation) -> set[tuple[str, str, str, int]]:
    """The cluster's events that an observer before this one has recorded."""
    events = observation.folder.records(Event)
    return {(each.kind, each.object, each.reason, each.at) for each in events if each.source == "kubernetes"}


def open_collector(observation: Observation) -> Cluster:
    """Follows the cluster of the kubeconfig, or of this pod."""
    return Cluster(observation)
