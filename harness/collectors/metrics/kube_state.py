"""Pods, nodes and volume claims that are gone, from kube-state-metrics' series, as the objects that they were.

Its gauges hold Kubernetes' own stamps (whole seconds), or are 1 while something holds; a state is known to one scrape.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from re import sub
from typing import Any

from harness.collectors.kubernetes.nodes import GPUS, KNOWN_LABELS
from harness.collectors.kubernetes.pod.life import LABELS, NODE_NAME, WORKFLOW
from harness.collectors.metrics.kube_state_series import OF_CLAIMS, OF_NODES, Series
from harness.collectors.metrics.past_pulls import Start, inferred_pulls
from harness.collectors.metrics.prometheus import LAST_S
from harness.model.units import timestamp

Manifest = dict[str, Any]
Labels = Mapping[str, str]


_DECIDED_S = 2.0
_FAILED_REASON = "kube_pod_container_status_terminated_reason"
_RESOURCES = {sub(r"\W", "_", name): name for name in (*GPUS, "ephemeral-storage")}


def label_name(label: str, prefix: str = "label") -> str:
    """What kube-state-metrics calls a Kubernetes label."""
    return f"{prefix}_" + sub(r"([a-z0-9])([A-Z])", r"\1_\2", sub(r"\W", "_", label)).lower()


_LABELS = {label_name(label): label for label in (*KNOWN_LABELS, *LABELS)}
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
            for value in (value for _, value in points if value >= 0 and (value < LAST_S or not series.dated)):
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
        pulls = inferred_pulls(start for uid, thing in self._pods.items() if (start := _start(uid, thing)))
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
                manifest["metadata"]["deletionTimestamp"] = timestamp(at)
            yield Known(_ns(at), "DELETED" if gone else "ADDED", manifest, pulls.get(uid, ()))

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
            "creationTimestamp": timestamp(created), **_named(thing, labels["pod"], owners),
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
            condition = {"type": "Ready", "status": "True", "lastTransitionTime": timestamp(since)} if since else None
            amounts = {
                _RESOURCES.get(row.get("resource", ""), row.get("resource", "")): value
                for row, value in thing.rows("kube_node_status_allocatable")
            }
            labels = _translated(thing, _LABELS)
            metadata: Manifest = {"name": name, "creationTimestamp": timestamp(created), "labels": labels}
            status = {"allocatable": amounts, "conditions": [condition] if condition else []}
            manifest: Manifest = {"kind": "Node", "metadata": metadata, "status": status}
            yield Known(_ns(created), "ADDED", manifest)
            if seen and seen[1] + 2 * self._interval_s < self._until_s:
                metadata["deletionTimestamp"] = timestamp(seen[1])
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


def _start(uid: str, thing: _Thing) -> Start | None:
    """Of the container that is the step: Argo's helper is called ``wait``."""
    scheduled, node = thing.value("kube_pod_status_scheduled_time"), thing.labels.get("node")
    images = {row.get("container"): row.get("image_spec") or row.get("image", "")
              for row, _ in thing.rows("kube_pod_container_info")}  # fmt: skip
    started = {row.get("container"): at for row, at in thing.rows("kube_pod_container_state_started")}
    container = next((name for name in sorted(images, key=str) if name != "wait" and name in started), None)
    attached = "kube_pod_spec_volumes_persistentvolumeclaims_info" in thing.series  # which may take as long
    if scheduled is None or not node or container is None or attached:
        return None
    return Start(scheduled, started[container], node, images[container], uid)


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
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "lastTransitionTime": timestamp(first),
        }  # fmt: skip
    if scheduled:
        yield {"type": "PodScheduled", "status": "True", "lastTransitionTime": timestamp(scheduled)}
    if over:
        yield {"type": "Ready", "status": "False", "lastTransitionTime": timestamp(over)}


def _statuses(thing: _Thing, over: float | None) -> Iterator[dict[str, Any]]:
    """Of the containers that started; that a container ended is known only of those of a pod that did."""
    reasons = {row.get("container"): row.get("reason", "") for row, _ in thing.rows(_FAILED_REASON)}
    started = {row.get("container", ""): at for row, at in thing.rows("kube_pod_container_state_started")}
    for name, at in started.items():
        state: dict[str, Any] = {"startedAt": timestamp(at)}
        if over is None:
            yield {"name": name, "state": {"running": state}}
            continue
        state["finishedAt"] = timestamp(max(over, at))
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


def _ns(at_s: float) -> int:
    return int(at_s) * 10**9
