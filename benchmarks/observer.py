"""What it costs to watch a large cluster: CPU and memory of the cluster collector, fed by a server that replays one.

    python benchmarks/observer.py [--pods 50000] [--nodes 1000]

A server in a process of its own lists the nodes, then replays every pod from its creation to its end, with the events
of scheduler and kubelet, as chunks of a watch. The observer's part runs in this process: HTTP, the watch
protocol, pieces put together to spans, records written to a run folder.
"""

import argparse
import json
import multiprocessing
import resource
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

from harness.collectors.collector import Observation, ObserverSettings
from harness.collectors.journal import Journal
from harness.collectors.kubernetes.cluster import Cluster
from harness.model import Node, Plan, Span
from harness.model.phases import RUNNING
from harness.store import RunFolder
from harness.targets import kfp
from tests.support.benchmarking import Table

ORIGIN_S = 1_790_000_000
LIMIT_GB = 1.0
SPREAD_S = 3600  # over which pods are made: what they cost is held against one core for so long
STAGES = 4  # versions of a pod: made, placed, running, over


def main() -> int:
    """Print CPU and memory; 1 when it is more than a core or a gigabyte, or when something was missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--nodes", type=int, default=1000)
    options = parser.parse_args()
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(
        target=serve, args=(theirs, options.pods, options.nodes), daemon=True
    )
    server.start()
    address = ours.recv()
    with tempfile.TemporaryDirectory() as place:
        cpu_s, wall_s, folder = watch(Path(place), address, options.pods)
        server.terminate()
        peak_gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        done = {(s.step, s.phase) for s in folder.records(Span) if s.phase == RUNNING and s.ended_at is not None}
        nodes = {node.name for node in folder.records(Node)}
    changes = options.pods * STAGES * 2
    print(f"{options.pods:,} pods on {options.nodes:,} nodes, {changes:,} changes and events: {cpu_s:.1f} s of CPU")
    print(f"  {cpu_s / changes * 1e6:.0f} µs a change; {wall_s:.1f} s altogether, as fast as the server tells")
    complete = len(done) == options.pods and len(nodes) == options.nodes
    table = Table((48, 10, 8))
    table.row("of one core, in an hour with so many pods", f"{cpu_s / SPREAD_S:.1%}", "100 %", cpu_s < SPREAD_S)
    table.row("peak memory (GB)", f"{peak_gb:.2f}", f"{LIMIT_GB:g}", peak_gb < LIMIT_GB)
    table.row("every pod and node is known", "yes" if complete else "no", "yes", complete)
    return int(table.failed)


def watch(place: Path, address: str, pods: int) -> tuple[float, float, RunFolder]:
    """Follow the cluster until its last pod is over; CPU and wall seconds of that, and what was recorded."""
    config = place / "config"
    user = {"name": "u", "user": {"token": "of-a-benchmark"}}
    context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
    clusters = [{"name": "c", "cluster": {"server": address}}]
    config.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "x",
                "clusters": clusters,
                "users": [user],
                "contexts": [context],
            }
        )
    )
    folder = RunFolder.create(place, "run")
    plan = Plan("kfp", "http://x", {}, 1, 0, False)
    settings = ObserverSettings(host="http://x", kubeconfig=str(config), kube_requests_per_s=1000.0)
    stop = threading.Event()
    with folder.recorder() as recorder:
        observation = Observation(
            folder=folder,
            plan=plan,
            target=kfp.KfpTarget({"experiment": ""}),
            settings=settings,
            journal=Journal(recorder),
        )
        cluster = Cluster(observation)
        thread = threading.Thread(target=cluster.collect, args=(stop,), daemon=True)
        before, begun_s = time.process_time(), time.monotonic()
        thread.start()
        while _succeeded(cluster) < pods and thread.is_alive():
            time.sleep(1.0)
        time.sleep(2.0)  # the last events
        spent, taken_s = time.process_time() - before, time.monotonic() - begun_s
        stop.set()
        thread.join()
    return spent, taken_s, folder


def _succeeded(cluster: Cluster) -> int:
    live = cluster.live()
    return (live.pods or {}).get("Succeeded", 0) if live is not None else 0


# --- the server that replays a cluster -----------------------------------------------------------------------------


def serve(told: Connection, pods: int, nodes: int) -> None:
    """List nodes, and send pods and events once each; later watches stay silent."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.streams = {"nodes": lambda: (), "pods": lambda: _pods(pods, nodes), "events": lambda: _events(pods, nodes)}  # type: ignore[attr-defined]
    server.lists = {"nodes": [_node(k) for k in range(nodes)]}  # type: ignore[attr-defined]
    server.told = set()  # type: ignore[attr-defined]
    told.send(f"http://127.0.0.1:{server.server_port}")
    server.serve_forever()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 2**16

    def do_GET(self) -> None:  # the name that http.server calls
        """A list or a watch."""
        parts = urlsplit(self.path)
        query, plural = parse_qs(parts.query), parts.path.rpartition("/")[2]
        server: Any = self.server
        if "argoproj" in parts.path:
            self._answer(404, {"message": "404 page not found"})
        elif "watch" in query:
            self._stream(plural if "labelSelector" not in query or "!" not in query["labelSelector"][0] else "")
        else:
            items = server.lists.get(plural, []) if "limit" in query else []
            self._answer(200, {"metadata": {"resourceVersion": "1"}, "items": items})

    def _answer(self, status: int, document: object) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, plural: str) -> None:
        server: Any = self.server
        self.send_response(200)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        if plural in server.streams and plural not in server.told:
            server.told.add(plural)
            for line in server.streams[plural]():
                self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
        self.wfile.flush()
        threading.Event().wait()  # nothing more happens; the client ends it

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(ORIGIN_S + int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _node(k: int) -> dict[str, Any]:
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": _time(0)}
    return {
        "metadata": {
            "name": f"node-{k}", "uid": f"node-{k}", "resourceVersion": "1", "creationTimestamp": _time(0),
            "labels": {"agentpool": "steps", "kubernetes.io/hostname": f"node-{k}"},
        },
        "status": {
            "allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110"}, "conditions": [condition],
            "images": [{"names": [f"registry.example/{n}@sha256:{n:064x}"], "sizeBytes": 10**8} for n in range(30)],
        },
    }  # fmt: skip


def _pods(pods: int, nodes: int) -> Iterator[bytes]:
    """Every version of every pod; a few hundred live at once."""
    window = 500
    for first in range(0, pods, window):
        for stage in range(STAGES):
            for k in range(first, min(first + window, pods)):
                kind = "ADDED" if stage == 0 else "MODIFIED"
                yield json.dumps({"type": kind, "object": _pod(k, nodes, stage)}).encode() + b"\n"


def _pod(k: int, nodes: int, stage: int) -> dict[str, Any]:
    """As Argo makes them for KFP: two init containers' worth of specification, and what the kubelet reports."""
    start = k * SPREAD_S / 50_000
    name, workflow = f"training-{k // 7:05d}-system-container-impl-{k}", f"training-{k // 7:05d}"
    condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": _time(start + 1)}
    states: dict[int, dict[str, Any]] = {
        2: {"running": {"startedAt": _time(start + 5)}},
        3: {
            "terminated": {
                "exitCode": 0,
                "reason": "Completed",
                "startedAt": _time(start + 5),
                "finishedAt": _time(start + 30),
            }
        },
    }
    containers = [
        {"name": each, "image": "python:3.11", "command": ["launcher"], "args": ["x" * 40] * 20,
         "env": [{"name": f"VARIABLE_{n}", "value": "v" * 30} for n in range(20)],
         "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}
        for each in ("main", "wait")
    ]  # fmt: skip
    status: dict[str, Any] = {"phase": ("Pending", "Pending", "Running", "Succeeded")[stage]}
    if stage:
        status["conditions"] = [condition]
    if stage in states:
        status["containerStatuses"] = [
            {"name": each["name"], "restartCount": 0, "state": states[stage]} for each in containers
        ]
    return {
        "metadata": {
            "name": name, "namespace": "kubeflow", "uid": f"pod-{k}", "resourceVersion": str(k + 2),
            "creationTimestamp": _time(start),
            "labels": {"pipeline/runid": f"run-{k // 7}", "workflows.argoproj.io/workflow": workflow},
            "annotations": {
                "workflows.argoproj.io/node-name": f"{workflow}.root.train.executor(0)", "spec": "y" * 1000,
            },
        },
        "spec": {"containers": containers, **({"nodeName": f"node-{k % nodes}"} if stage else {})},
        "status": status,
    }  # fmt: skip


def _events(pods: int, nodes: int) -> Iterator[bytes]:
    told = (
        ("Scheduled", 1, "default-scheduler", "Successfully assigned kubeflow/{pod} to node-{node}"),
        ("Pulling", 2, "kubelet", 'Pulling image "python:3.11"'),
        ("Pulled", 4, "kubelet", 'Successfully pulled image "python:3.11" in 1.5s'),
        ("Started", 5, "kubelet", "Started container main"),
    )
    for k in range(pods):
        start, name = k * SPREAD_S / 50_000, f"training-{k // 7:05d}-system-container-impl-{k}"
        for reason, after, source, message in told:
            event = {
                "metadata": {
                    "name": f"{name}.{reason}", "namespace": "kubeflow", "uid": f"event-{k}-{reason}",
                    "resourceVersion": str(k + 2), "creationTimestamp": _time(start + after),
                },
                "involvedObject": {"kind": "Pod", "namespace": "kubeflow", "name": name, "uid": f"pod-{k}"},
                "reason": reason, "message": message.format(pod=name, node=k % nodes), "type": "Normal", "count": 1,
                "firstTimestamp": _time(start + after), "lastTimestamp": _time(start + after), "eventTime": None,
                "source": {"component": source},
            }  # fmt: skip
            yield json.dumps({"type": "ADDED", "object": event}).encode() + b"\n"


if __name__ == "__main__":
    sys.exit(main())
