"""Pods, nodes and volume claims that are gone, from kube-state-metrics' series, as the objects that they were.

Its gauges hold Kubernetes' own stamps (whole seconds), or are 1 while something holds; a state is known to one scrape.
Source of names: https://github.com/kubernetes/kube-state-metrics/tree/main/docs/metrics and recordings of a real one.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from re import sub
from statistics import median
from typing import Any, NamedTuple

from harness.collectors.kubernetes.nodes import GPUS, KNOWN_LABELS
from harness.collectors.kubernetes.pods import LABELS, NODE_NAME, WORKFLOW

Manifest = dict[str, Any]
Labels = Mapping[str, str]


class Form(StrEnum):
    """How a series is asked for; `$s` is its selector, `$window` and `$step` are lengths."""

    LAST = "last_over_time($s[$window])"
    HELD = "max_over_time($s[$window]) == 1"
    EDGES = (  # when it was 1 first and last
        'label_replace(min_over_time(timestamp($s == 1)[$window:$step]), "edge", "first", "", "") or '
        'label_replace(max_over_time(timestamp($s == 1)[$window:$step]), "edge", "last", "", "")'
    )


@dataclass(frozen=True, slots=True)
class Series:
    """One of kube-state-metrics' series, what else it is called, and what it costs to lack it ("": little)."""

    name: str
    form: Form = Form.LAST
    where: str = ""
    others: tuple[str, ...] = ()  # names that recording rules give it
    cost: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The first that exists is used."""
        return (self.name, *self.others)

    def promql(self, found: str, matchers: str, step_s: int) -> str:
        """For the name that was `found`."""
        selector = f"{found}{{{','.join(filter(None, (self.where, matchers)))}}}"
        return self.form.replace("$step", f"{step_s}s").replace("$s", selector)


_IN_VAIN = 'reason!~"ContainerCreating|PodInitializing"'
OF_PODS = (
    Series("kube_pod_created", cost="no pod that is gone can be told: nothing is explained without it"),
    Series("kube_pod_info", Form.EDGES, others=("node_namespace_pod:kube_pod_info:",),
           cost="nodes of pods and their ends when they were deleted are unknown"),
    Series("kube_pod_owner", others=("namespace_workload_pod:kube_pod_owner:relabel",),
           cost="pods are not joined to runs, but by their labels"),
    Series("kube_pod_labels", cost="runs have the names of their workflows instead of the platform's ids"),
    Series("kube_pod_annotations", cost="steps have the names of Argo's templates"),
    Series("kube_pod_status_scheduled_time", cost="waits for a node are not told from slow starts"),
    Series("kube_pod_status_unschedulable", Form.EDGES,
           cost="pods that no node has room for look like a slow scheduler"),
    Series("kube_pod_container_state_started", cost="when steps began to run is unknown"),
    Series("kube_pod_completion_time", cost="ends are known to one scrape only"),
    Series("kube_pod_status_phase", Form.EDGES, 'phase=~"Succeeded|Failed"',
           cost="failed pods are not told from others"),
    Series("kube_pod_status_reason", Form.HELD, cost="evictions are not told from other failures"),
    Series("kube_pod_container_status_terminated_reason", Form.HELD, 'reason!="Completed"',
           cost="steps that ran out of memory are not told from others that failed"),
    Series("kube_pod_container_status_waiting_reason", Form.EDGES, _IN_VAIN,
           cost="images that can't be pulled and settings that are missing are not seen"),
    Series("kube_pod_init_container_status_waiting_reason", Form.EDGES, _IN_VAIN),
    Series("kube_pod_container_resource_requests",
           others=("cluster:namespace:pod_cpu:active:kube_pod_container_resource_requests",),
           cost="requests are unknown: neither full nodes nor costs can be judged"),
    Series("kube_pod_container_resource_limits"),
    Series("kube_pod_container_info", cost="pulls of images are part of slow starts"),
)  # fmt: skip
OF_NODES = (
    Series("kube_node_info", Form.EDGES, cost="when nodes came and went is unknown"),
    Series("kube_node_created"),
    Series("kube_node_labels", cost="pools, machine types and spot nodes are unknown"),
    Series("kube_node_status_allocatable", cost="the size of nodes is unknown: whether they were full can't be judged"),
    Series("kube_node_status_condition", Form.EDGES, 'condition="Ready",status="true"'),
)
OF_CLAIMS = (
    Series("kube_persistentvolumeclaim_status_phase", Form.HELD),
    Series("kube_persistentvolumeclaim_resource_requests_storage_bytes"),
)
ALL = (*OF_PODS, *OF_NODES, *OF_CLAIMS)
_DECIDED_S = 2.0
_PULLED_S = 2.0  # shorter pulls can't be told from stamps in whole seconds
_FAILED_REASON = "kube_pod_container_status_terminated_reason"
_RESOURCES = {sub(r"\W", "_", name): name for name in (*GPUS, "ephemeral-storage")}


def label_name(label: str, prefix: str = "label") -> str:
    """What kube-state-metrics calls a Kubernetes label."""
    return f"{prefix}_" + sub(r"([a-z0-9])([A-Z])", r"\1_\2", sub(r"\W", "_", label)).lower()


_LABELS = {label_name(each): each for each in (*KNOWN_LABELS, *LABELS)}
_ANNOTATIONS = {label_name(each, "annotation"): each for each in (NODE_NAME,)}


def own_labels(labels: Labels) -> dict[str, str]:
    """The labels of what is measured: a Prometheus renames them ``exported_…`` where it has labels of that name."""
    exported = {name.removeprefix("exported_"): text for name, text in labels.items() if name.startswith("exported_")}
    return {**labels, **exported}


@dataclass(slots=True)
class _Thing:
    """The series of one pod, node or claim, by name: labels and value, the last of equal labels counts."""

    labels: dict[str, str] = field(default_factory=dict)
    series: dict[str, dict[tuple[tuple[str, str], ...], float]] = field(default_factory=lambda: defaultdict(dict))

    def rows(self, name: str) -> Iterator[tuple[dict[str, str], float]]:
        for labels, value in self.series.get(name, {}).items():
            yield dict(labels), value

    def value(self, name: str) -> float | None:
        return max(self.series.get(name, {}).values(), default=None)

    def edges(self, name: str, by: str = "") -> dict[str, tuple[float, float]]:
        """When each value of the label `by` held first and last."""
        found: dict[str, tuple[float, float]] = {}
        for labels, value in self.rows(name):
            first, last = found.get(labels.get(by, ""), (value, value))
            found[labels.get(by, "")] = min(first, value), max(last, value)
        return found


class _Start(NamedTuple):
    """When a pod with an image was placed on its node, and when its step started, UTC s."""

    scheduled: float
    started: float
    node: str
    image: str
    uid: str

    @property
    def length_s(self) -> float:
        return self.started - self.scheduled

    def pull(self, usual_s: float) -> tuple[Manifest, Manifest]:
        """The kubelet's events about it, where a start without one takes so long."""
        about = {"involvedObject": {"uid": self.uid}, "metadata": {}}
        first, last = _text(self.scheduled), _text(self.started - usual_s)
        return (
            {**about, "reason": "Pulling", "message": f'Pulling image "{self.image}"', "firstTimestamp": first},
            {**about, "reason": "Pulled", "message": f'Successfully pulled image "{self.image}"',
             "firstTimestamp": last, "lastTimestamp": last},
        )  # fmt: skip


def _start(uid: str, thing: _Thing) -> _Start | None:
    """Of the container that is the step: Argo's helper is called ``wait``."""
    scheduled, node = thing.value("kube_pod_status_scheduled_time"), thing.labels.get("node")
    images = {row.get("container"): row.get("image_spec") or row.get("image", "")
              for row, _ in thing.rows("kube_pod_container_info")}  # fmt: skip
    started = {row.get("container"): at for row, at in thing.rows("kube_pod_container_state_started")}
    container = next((name for name in sorted(images, key=str) if name != "wait" and name in started), None)
    if scheduled is None or not node or container is None:
        return None
    return _Start(scheduled, started[container], node, images[container], uid)


@dataclass(frozen=True, slots=True)
class Known:
    """An object as it was at `at`, UTC ns; `change` is "DELETED" where it went without having ended."""

    at: int
    change: str
    manifest: Manifest
    events: tuple[Manifest, ...] = ()

    @property
    def over(self) -> bool:
        """It has ended, or gone."""
        return self.change == "DELETED" or self.manifest["status"].get("phase") in {"Succeeded", "Failed"}


class KubeState:
    """Takes in answers by the names of `Series`, and returns objects.

    Args:
        until_s: the end of the time, UTC s.
        interval_s: between scrapes.
    """

    def __init__(self, until_s: int, interval_s: float) -> None:
        self._until_s = until_s
        self._interval_s = interval_s
        self._taken: set[str] = set()  # names of series
        self._uids: dict[str, str] = {}  # recording rules leave them out
        self._pods: dict[str, _Thing] = defaultdict(_Thing)
        self._nodes: dict[str, _Thing] = defaultdict(_Thing)
        self._claims: dict[str, _Thing] = defaultdict(_Thing)

    def take(self, series: Series, answer: Iterable[tuple[Labels, Iterable[tuple[int, float]]]]) -> None:
        """Take in one answer of a series; chunks come in the order of time."""
        for given, points in answer:
            self._taken.add(series.name)
            labels = own_labels(given)
            thing = self._thing(series, labels)
            for _, value in points:
                thing.labels |= {name: text for name, text in labels.items() if text}
                thing.series[series.name][tuple(sorted(labels.items()))] = value

    def _thing(self, series: Series, labels: Labels) -> _Thing:
        if series in OF_NODES:
            return self._nodes[labels.get("node", "")]
        place = labels.get("namespace", "")
        if series in OF_CLAIMS:
            return self._claims[f"{place}/{labels.get('persistentvolumeclaim', '')}"]
        name = f"{place}/{labels.get('pod', '')}"
        uid = self._uids[name] = labels.get("uid") or self._uids.get(name) or name
        return self._pods[uid]

    # --- pods -----------------------------------------------------------------------------------------------------

    def pods(self) -> Iterator[Known]:
        """Each pod when it was seen first and last to wait for something in vain, and at its end or `until_s`."""
        pulls = self._pulls()
        for uid, thing in sorted(self._pods.items()):
            created = thing.value("kube_pod_created")
            if created is None or not thing.labels.get("pod"):
                continue
            yield from self._waits(uid, thing, created)
            over = self._over(thing)
            _, last = thing.edges("kube_pod_info").get("", (None, None))
            gone = over is None and last is not None and last + 2 * self._interval_s < self._until_s
            at = over or last or self._until_s
            manifest = self._pod(uid, thing, created, over)
            if gone:
                manifest["metadata"]["deletionTimestamp"] = _text(at)
            yield Known(_ns(at), "DELETED" if gone else "ADDED", manifest, pulls.get(uid, ()))

    def _pulls(self) -> dict[str, tuple[Manifest, ...]]:
        """Pulls by pod, as events: by how much the first pods with an image on a node started later than others.

        Those are the pods that were placed there before the first of them started. No series shows pulls.
        """
        starts = sorted(start for uid, thing in self._pods.items() if (start := _start(uid, thing)))
        there: dict[tuple[str, str], float] = {}
        for start in starts:
            key = start.node, start.image
            there[key] = min(there.get(key, start.started), start.started)
        warm = [each.length_s for each in starts if each.scheduled > there[each.node, each.image]]
        usual_s = median(warm) if warm else min((each.length_s for each in starts), default=0.0)
        cold = (each for each in starts if each.scheduled <= there[each.node, each.image])
        return {each.uid: each.pull(usual_s) for each in cold if each.length_s - usual_s > _PULLED_S}

    def _over(self, thing: _Thing) -> float | None:
        """When the pod ended; the latest end of a container is that of the pod only once its phase says so."""
        phases = [first for first, _ in thing.edges("kube_pod_status_phase", "phase").values()]
        if not phases and "kube_pod_status_phase" in self._taken:
            return None
        return thing.value("kube_pod_completion_time") or min(phases, default=None)

    def _waits(self, uid: str, thing: _Thing, created: float) -> Iterator[Known]:
        waits = [
            (seen, name, reason)
            for name in ("kube_pod_init_container_status_waiting_reason", "kube_pod_container_status_waiting_reason")
            for reason, edges in thing.edges(name, "reason").items()
            for seen in edges
        ]
        for seen, name, reason in sorted(waits):
            manifest = self._pod(uid, thing, created, None, started=False)
            key = "initContainerStatuses" if "init" in name else "containerStatuses"
            manifest["status"] |= {key: [{"name": "main", "state": {"waiting": {"reason": reason}}}]}
            yield Known(_ns(seen), "ADDED", manifest)

    def _pod(self, uid: str, thing: _Thing, created: float, over: float | None, *, started: bool = True) -> Manifest:
        labels = thing.labels
        owners = [
            {"kind": row.get("owner_kind") or row.get("workload_type", ""), "controller": True,
             "name": row.get("owner_name") or row.get("workload", "")}
            for row, _ in thing.rows("kube_pod_owner")
        ]  # fmt: skip
        metadata: Manifest = {
            "name": labels["pod"], "namespace": labels.get("namespace", ""), "uid": uid, "ownerReferences": owners,
            "creationTimestamp": _text(created), **_named(thing, labels["pod"], owners),
        }  # fmt: skip
        spec = {"nodeName": labels.get("node"), "containers": _containers(thing)}
        failed = "Failed" in thing.edges("kube_pod_status_phase", "phase")
        phase = "Pending" if over is None else "Failed" if failed else "Succeeded"
        status: Manifest = {"phase": phase, "conditions": [*_conditions(thing, created, over, self._interval_s)]}
        for row, _ in thing.rows("kube_pod_status_reason"):
            status["reason"] = row.get("reason")
        if started:
            status["containerStatuses"] = [*_statuses(thing, over)]
        return {"kind": "Pod", "metadata": metadata, "spec": spec, "status": status}

    # --- nodes and claims -----------------------------------------------------------------------------------------

    def nodes(self) -> Iterator[Known]:
        """Each node as it was, and its end."""
        for name, thing in sorted(self._nodes.items()):
            seen = thing.edges("kube_node_info").get("")
            created = thing.value("kube_node_created") or (seen[0] if seen else None)
            if not name or created is None:
                continue
            ready = thing.edges("kube_node_status_condition").get("")
            since = max(created, ready[0]) if ready else None
            condition = {"type": "Ready", "status": "True", "lastTransitionTime": _text(since)} if since else None
            amounts = {
                _RESOURCES.get(row.get("resource", ""), row.get("resource", "")): value
                for row, value in thing.rows("kube_node_status_allocatable")
            }
            labels = _translated(thing, _LABELS)
            metadata: Manifest = {"name": name, "creationTimestamp": _text(created), "labels": labels}
            status = {"allocatable": amounts, "conditions": [condition] if condition else []}
            manifest: Manifest = {"kind": "Node", "metadata": metadata, "status": status}
            yield Known(_ns(created), "ADDED", manifest)
            if seen and seen[1] + 2 * self._interval_s < self._until_s:
                metadata["deletionTimestamp"] = _text(seen[1])
                yield Known(_ns(seen[1]), "DELETED", manifest)

    def claims(self) -> Iterator[Known]:
        """Each volume claim as it was last."""
        for key, thing in sorted(self._claims.items()):
            phases = {row.get("phase", "") for row, _ in thing.rows("kube_persistentvolumeclaim_status_phase")}
            size = thing.value("kube_persistentvolumeclaim_resource_requests_storage_bytes")
            namespace, _, name = key.partition("/")
            yield Known(_ns(self._until_s), "ADDED", {
                "metadata": {"name": name, "namespace": namespace, "uid": key},
                "spec": {"resources": {"requests": {"storage": f"{size:.0f}" if size else ""}}},
                "status": {"phase": "Bound" if "Bound" in phases else next(iter(phases), "Pending")},
            })  # fmt: skip


def _named(thing: _Thing, pod: str, owners: list[dict[str, Any]]) -> dict[str, dict[str, str]]:
    """Labels and annotations: the pod's own where they are allowed, else what owner and name say of Argo's pods."""
    labels = _translated(thing, _LABELS)
    annotations = _translated(thing, _ANNOTATIONS)
    owner = next((str(each["name"]) for each in owners if str(each["kind"]).lower() == "workflow"), "")
    workflow = labels.setdefault(WORKFLOW, owner)
    if not workflow:
        del labels[WORKFLOW]
    elif NODE_NAME not in annotations:
        annotations[NODE_NAME] = f"{workflow}.{_template(pod, workflow)}".rstrip(".")
    return {"labels": labels, "annotations": annotations}


def _template(pod: str, workflow: str) -> str:
    """The template in the name of Argo's pod, ``WORKFLOW-TEMPLATE-HASH``; "" where there is none.

    KFP's are the same for all steps: ``system-container-driver``, and then ``system-container-impl``.
    """
    return pod.removeprefix(workflow).removeprefix("-").rpartition("-")[0]


def _translated(thing: _Thing, known: Mapping[str, str]) -> dict[str, str]:
    return {ours: thing.labels[theirs] for theirs, ours in known.items() if thing.labels.get(theirs)}


def _conditions(thing: _Thing, created: float, over: float | None, interval_s: float) -> Iterator[dict[str, str]]:
    """What held when: a wait for a node that no scrape could see is taken for one; a scheduler decides in no time."""
    blocked = thing.edges("kube_pod_status_unschedulable").get("")
    scheduled = thing.value("kube_pod_status_scheduled_time")
    hidden = scheduled is not None and _DECIDED_S < scheduled - created < interval_s
    if blocked or hidden:
        first = min(blocked[0], scheduled or blocked[0]) if blocked else created
        yield {
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": _text(first),
        }  # fmt: skip
    if scheduled:
        yield {"type": "PodScheduled", "status": "True", "lastTransitionTime": _text(scheduled)}
    if over:
        yield {"type": "Ready", "status": "False", "lastTransitionTime": _text(over)}


def _statuses(thing: _Thing, over: float | None) -> Iterator[dict[str, Any]]:
    """Of the containers that started; that a container ended is known only of those of a pod that did."""
    reasons = {row.get("container"): row.get("reason", "") for row, _ in thing.rows(_FAILED_REASON)}
    started = {row.get("container", ""): at for row, at in thing.rows("kube_pod_container_state_started")}
    for name, at in started.items():
        state: dict[str, Any] = {"startedAt": _text(at)}
        if over is None:
            yield {"name": name, "state": {"running": state}}
            continue
        state["finishedAt"] = _text(max(over, at))
        if reason := reasons.get(name):
            state |= {"exitCode": 137 if reason == "OOMKilled" else 1, "reason": reason, "message": f"{name}: {reason}"}
        yield {"name": name, "state": {"terminated": state}}


def _containers(thing: _Thing) -> list[dict[str, Any]]:
    found: dict[str, dict[str, dict[str, float]]] = {}
    for kind in ("requests", "limits"):
        for row, value in thing.rows(f"kube_pod_container_resource_{kind}"):
            resources = found.setdefault(row.get("container", ""), {"requests": {}, "limits": {}})
            resources[kind][_RESOURCES.get(row.get("resource", ""), row.get("resource", ""))] = value
    return [{"name": name, "resources": resources} for name, resources in sorted(found.items())]


def _text(at_s: float) -> str:
    return datetime.fromtimestamp(int(at_s), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _ns(at_s: float) -> int:
    return int(at_s) * 10**9
