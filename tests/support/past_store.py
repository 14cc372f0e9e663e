"""A Prometheus that holds the past of recorded tests, as it would have scraped them from kube-state-metrics.

What Kubernetes showed of a test is in its records; their objects are rendered every 30 s under kube-state-metrics' names
(`kube_state_page`), and become blocks of a real Prometheus. Tests are told apart by the label `cluster`.
"""

import shutil
import socket
import subprocess
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.model import Event, Node, Sample, Span
from harness.model.argo.nodes import DRIVER_SUFFIX
from harness.model.phases import (
    PULLING,
    REQUESTED_CPU_CORES,
    REQUESTED_GPUS,
    REQUESTED_MEMORY_BYTES,
    RUN,
    RUNNING,
    STARTING,
    TASK,
    UNSCHEDULABLE,
)
from harness.store import RunFolder
from tests.support.kube_state_page import as_of, line, rows
from tests.support.servers import until

EVERY_S = 30
_STAYS_S = 300  # a pod after its end
_RESOURCES = {REQUESTED_CPU_CORES: "cpu", REQUESTED_MEMORY_BYTES: "memory", REQUESTED_GPUS: "nvidia.com/gpu"}
_OF_PODS = {"Evicted", "Preempting", "NodeLost", "Shutdown"}


def objects(folder: RunFolder) -> Iterator[tuple[dict[str, Any], float | None]]:
    """Pods and nodes of a test's records as Kubernetes objects, and when each went, UTC s."""
    of_pod: dict[str, list[Span]] = defaultdict(list)
    for span in {(s.step, s.phase, s.attempt): s for s in folder.records(Span)}.values():
        if span.step and span.phase not in {RUN, TASK}:
            of_pod[span.step].append(span)
    events: dict[str, list[Event]] = defaultdict(list)
    for event in folder.records(Event):
        if event.kind == "Pod":
            events[event.object].append(event)
    requests: dict[str, dict[str, float]] = defaultdict(dict)
    for sample in folder.records(Sample):
        if sample.metric in _RESOURCES and sample.value:
            requests[sample.labels.get("pod") or sample.labels["task"]][_RESOURCES[sample.metric]] = sample.value
    for name, spans in of_pod.items():
        spans.sort(key=lambda span: (span.started_at, span.ended_at or 2**63))
        manifest = _pod(name, spans, events[name], requests.get(name) or requests.get(spans[0].task, {}))
        over = spans[-1].ended_at
        yield manifest, over and over / 1e9 + _STAYS_S
    for node in {node.name: node for node in folder.records(Node)}.values():
        yield _node(node), node.gone_at and node.gone_at / 1e9


def _pod(name: str, spans: Sequence[Span], events: Sequence[Event], requests: Mapping[str, float]) -> dict[str, Any]:
    by_phase = {span.phase: span for span in reversed(spans)}  # the first of each
    workflow, task = name.partition("-system-")[0], spans[0].task
    last = spans[-1].ended_at
    path = f"{workflow}.root-driver" if task == f"root{DRIVER_SUFFIX}" else f"{workflow}.root.{task}"
    placed = next((span for span in spans if span.phase in {STARTING, PULLING, RUNNING}), None)
    conditions = [_stamped("Ready", "False", last)] if last else []
    if placed:
        conditions.append(_stamped("PodScheduled", "True", placed.started_at))
    if UNSCHEDULABLE in by_phase:
        conditions.append(_stamped("PodScheduled", "False", by_phase[UNSCHEDULABLE].started_at))
    bad = [event for event in events if event.reason in {"OOMKilled", "Error", *_OF_PODS, "DeletionByTaintManager"}]
    state: dict[str, Any] = {"waiting": {"reason": "ContainerCreating"}}
    if RUNNING in by_phase:
        state = {"running": {"startedAt": _text(by_phase[RUNNING].started_at)}}
        if last:
            reason = next((event.reason for event in bad if event.reason not in _OF_PODS), "Completed")
            state = {
                "terminated": {"startedAt": state["running"]["startedAt"], "finishedAt": _text(last), "reason": reason}
            }
    elif any(event.reason in {"ErrImagePull", "ImagePullBackOff"} or "pull image" in event.message for event in events):
        state = {"waiting": {"reason": "ImagePullBackOff"}}
    status: dict[str, Any] = {
        "phase": ("Failed" if bad else "Succeeded") if last else "Pending", "conditions": conditions,
        "containerStatuses": [{"name": "main", "state": state}],
    }  # fmt: skip
    if any(event.reason in _OF_PODS for event in bad):
        status["reason"] = "Evicted"
    return {
        "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "kubeflow", "uid": name, "creationTimestamp": _text(spans[0].started_at),
            "labels": {"pipeline/runid": spans[0].run, "workflows.argoproj.io/workflow": workflow},
            "annotations": {"workflows.argoproj.io/node-name": path},
            "ownerReferences": [{"kind": "Workflow", "name": workflow}],
        },
        "spec": {
            "nodeName": placed and (placed.node or spans[-1].node),
            "containers": [{"name": "main", "image": _image(task), "resources": {"requests": dict(requests)}}],
        },
        "status": status,
    }  # fmt: skip


def _image(task: str) -> str:
    """KFP's drivers have one image, each step may have its own."""
    return "kfp-driver" if task.endswith(DRIVER_SUFFIX) else "python"


def _node(node: Node) -> dict[str, Any]:
    labels = {"agentpool": node.pool, "node.kubernetes.io/instance-type": node.machine}
    labels |= {"kubernetes.azure.com/scalesetpriority": "spot"} if node.spot else {}
    amounts = {"cpu": node.cpu, "memory": node.memory, "pods": node.pods, "nvidia.com/gpu": node.gpu}
    ready = [_stamped("Ready", "True", node.ready_at)] if node.ready_at is not None else []
    return {
        "kind": "Node",
        "metadata": {"name": node.name, "creationTimestamp": _text(node.created_at), "labels": labels},
        "status": {"allocatable": amounts, "conditions": ready},
    }


def _stamped(kind: str, status: str, at: int) -> dict[str, str]:
    return {"type": kind, "status": status, "lastTransitionTime": _text(at)}


def _text(at: int) -> str:
    return datetime.fromtimestamp(at // 10**9, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def dump(
    found: Iterable[tuple[Mapping[str, Any], float | None]], start_s: int, end_s: int, cluster: str
) -> Iterator[str]:
    """The lines of all scrapes in OpenMetrics' format; labels and annotations are allowed."""
    for manifest, gone_s in found:
        changes = sorted(stamps(manifest))
        texts: dict[int, list[str]] = {}
        last_s = int(min(end_s, gone_s or end_s))
        for at_s in range(-(-max(start_s, int(changes[0])) // EVERY_S) * EVERY_S, last_s + 1, EVERY_S):
            state = bisect_right(changes, at_s)
            if state not in texts:
                now = _ready(manifest, at_s) if manifest["kind"] == "Node" else as_of(manifest, at_s)
                found_rows = rows(now, allowed=True) if now else ()
                texts[state] = [
                    line(row, None, {"cluster": cluster}) for row in found_rows if row[2] or "phase" not in row[0]
                ]
            for text in texts[state]:
                yield f"{text} {at_s}\n"


def quota_lines(
    found: Iterable[tuple[Mapping[str, Any], float | None]], hard: Mapping[str, float], span: range, cluster: str
) -> Iterator[str]:
    """kube_resourcequota of the namespace of all pods, at each second of `span`: it counts pods that have not ended."""
    pods = []
    for manifest, gone_s in found:
        if manifest["kind"] == "Pod":
            requests = manifest["spec"]["containers"][0]["resources"]["requests"]
            amounts = {"pods": 1.0} | {f"requests.{name}": amount for name, amount in requests.items()}
            created_s = datetime.fromisoformat(manifest["metadata"]["creationTimestamp"]).timestamp()
            pods.append((created_s, gone_s - _STAYS_S if gone_s else float("inf"), amounts))
    for resource, limit in hard.items():
        labels = {"namespace": "kubeflow", "resourcequota": "drawn", "resource": resource}
        for at_s in span:
            used = sum(amounts.get(resource, 0.0) for since, until_s, amounts in pods if since <= at_s < until_s)
            for kind, value in (("hard", limit), ("used", used)):
                row = ("kube_resourcequota", labels | {"type": kind}, value)
                yield f"{line(row, None, {'cluster': cluster})} {at_s}\n"


def stamps(value: Any) -> Iterator[float]:
    """All instants in an object, at which it may change."""
    if isinstance(value, dict):
        for each in value.values():
            yield from stamps(each)
    elif isinstance(value, list):
        for each in value:
            yield from stamps(each)
    elif isinstance(value, str) and value.endswith("Z") and value[:2] == "20":
        yield datetime.fromisoformat(value).timestamp()


def _ready(node: Mapping[str, Any], at_s: float) -> dict[str, Any]:
    conditions = [
        each for each in node["status"]["conditions"]
        if datetime.fromisoformat(each["lastTransitionTime"]).timestamp() <= at_s
    ]  # fmt: skip
    return {**node, "status": {**node["status"], "conditions": conditions}}


@contextmanager
def prometheus_of(lines: Iterable[str], path: Path) -> Iterator[str]:
    """A Prometheus with these samples."""
    text, data = path / "past.txt", path / "data"
    with text.open("w") as out:
        out.writelines(lines)
        out.write("# EOF\n")
    promtool, program = shutil.which("promtool"), shutil.which("prometheus")
    assert promtool is not None
    assert program is not None
    subprocess.run(
        [promtool, "tsdb", "create-blocks-from", "openmetrics", text, data], check=True, stdout=subprocess.DEVNULL
    )
    text.unlink()
    (path / "prometheus.yml").write_text("{}\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        program, f"--config.file={path / 'prometheus.yml'}", f"--storage.tsdb.path={data}",
        "--storage.tsdb.retention.time=100y", f"--web.listen-address=127.0.0.1:{port}",
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        url = f"http://127.0.0.1:{port}"
        try:
            until(lambda: _answers(f"{url}/-/ready"), "Prometheus")
            yield url
        finally:
            process.terminate()


def _answers(url: str) -> bool:
    import urllib.request

    try:
        with urllib.request.urlopen(url, timeout=1) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
