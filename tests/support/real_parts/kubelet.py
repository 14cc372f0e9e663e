"""What the kubelets of a cluster do, without containers: pods that were placed start, run for a while, and end.

It keeps an account of what it did; that account is what an observer's records are compared with.
"""

import sched
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from tests.support.real_parts.kube import STRATEGIC, Kube, Manifest, RefusedError

ARGO_LABEL = "workflows.argoproj.io/workflow"
_TICK_S = 0.05
_INIT_S, _STORE_S = 0.2, 0.2  # of Argo's containers: `init` before, `wait` after the step


@dataclass(frozen=True)
class Fate:
    """How long a pod's main container runs, the last of it storing outputs, and how it ends."""

    runs_s: float
    stores_s: float = 0.0
    exit_code: int = 0
    reason: str = "Completed"


OOM_KILLED = "OOMKilled"


@dataclass
class Lived:
    """What a pod went through: Unix times in seconds, 0 for what has not happened."""

    node: str
    began_s: float = 0.0
    stored_from_s: float = 0.0
    ended_s: float = 0.0


class Kubelet:
    """The kubelets of all nodes that a scene has, for the pods of one namespace.

    Args:
        kube: of the cluster.
        namespace: of the pods.
        fate: how a pod will end.
    """

    def __init__(self, kube: Kube, namespace: str, fate: Callable[[Manifest], Fate]) -> None:
        self._kube = kube
        self._path = f"/api/v1/namespaces/{namespace}"
        self._fate = fate
        self._agenda = sched.scheduler(time.time)
        self.pods: dict[str, Lived] = {}

    def watch(self, over: threading.Event) -> None:
        """Take on each pod that the scheduler has placed."""
        self._kube.follow(f"{self._path}/pods", self._see, over)

    def work(self, over: threading.Event) -> None:
        """Do what is due."""
        while not over.wait(_TICK_S):
            self._agenda.run(blocking=False)

    def _see(self, change: str, pod: Manifest) -> None:
        name, node = pod["metadata"]["name"], pod["spec"].get("nodeName")
        if change == "DELETED" or not node or name in self.pods:
            return
        self.pods[name] = Lived(node)
        self._after(_INIT_S, lambda: self._begin(pod))

    def _after(self, seconds: float, act: Callable[[], None]) -> None:
        self._agenda.enter(seconds, 0, act)

    def _begin(self, pod: Manifest) -> None:
        lived, fate = self.pods[pod["metadata"]["name"]], self._fate(pod)
        lived.began_s = time.time()
        self._report(pod, "Running", {name: _running(lived.began_s) for name in ("wait", "main")})
        image = next(each["image"] for each in pod["spec"]["containers"] if each["name"] == "main")
        self._tell(pod, "Pulled", f'Container image "{image}" already present on machine')
        self._tell(pod, "Started", "Started container main")
        self._after(fate.runs_s, lambda: self._end(pod, fate))

    def _end(self, pod: Manifest, fate: Fate) -> None:
        lived = self.pods[pod["metadata"]["name"]]
        lived.ended_s = time.time()
        if fate.stores_s:
            lived.stored_from_s = lived.ended_s - fate.stores_s
        main = _ended(lived.began_s, lived.ended_s, fate.exit_code, fate.reason)
        self._report(pod, "Running", {"wait": _running(lived.began_s), "main": main})
        self._after(_STORE_S, lambda: self._finish(pod, main, fate))

    def _finish(self, pod: Manifest, main: Manifest, fate: Fate) -> None:
        lived = self.pods[pod["metadata"]["name"]]
        wait = _ended(lived.began_s, time.time(), 0, "Completed")
        self._report(pod, "Failed" if fate.exit_code else "Succeeded", {"wait": wait, "main": main})

    def log(self, name: str) -> str:
        """What KFP's launcher has written in a pod's main container, each line with its time."""
        lived = self.pods[name]
        if not lived.stored_from_s:
            return ""
        lines = (
            (lived.stored_from_s, "launcher_v2.go:700] Executing uploadOutputArtifacts attempt: 1"),
            (lived.ended_s, 'object_store.go:100] uploadFile(localFilePath="/model", blobFilePath="model")'),
        )
        return "".join(f"{_precise(at_s)} I1122 12:00:00.000000       1 {said}\n" for at_s, said in lines)

    def _report(self, pod: Manifest, phase: str, states: dict[str, Manifest]) -> None:
        its, images = pod["metadata"], {each["name"]: each["image"] for each in pod["spec"]["containers"]}
        began_s = self.pods[its["name"]].began_s
        ready = "True" if phase == "Running" and all("running" in each for each in states.values()) else "False"
        kinds = (("Initialized", "True"), ("Ready", ready), ("ContainersReady", ready))
        conditions = [
            {"type": kind, "status": status, "lastProbeTime": None, "lastTransitionTime": stamp()}
            for kind, status in kinds
        ]
        before = _ended(began_s, began_s, 0, "Completed")
        status = {
            "phase": phase, "conditions": conditions, "hostIP": "127.0.0.1", "podIP": "10.244.0.5",
            "podIPs": [{"ip": "10.244.0.5"}], "startTime": stamp(began_s - _INIT_S),
            "initContainerStatuses": [
                _container(each["name"], each["image"], before) for each in pod["spec"]["initContainers"]
            ],
            "containerStatuses": [_container(name, images[name], state) for name, state in states.items()],
        }  # fmt: skip
        try:
            self._kube.patch(f"{self._path}/pods/{its['name']}/status", {"status": status}, STRATEGIC)
        except RefusedError as error:
            if error.status != 404:  # deleted meanwhile
                raise

    def _tell(self, pod: Manifest, reason: str, message: str) -> None:
        its = pod["metadata"]
        about = {"apiVersion": "v1", "kind": "Pod", "fieldPath": "spec.containers{main}"}
        about |= {key: its[key] for key in ("name", "namespace", "uid")}
        self._kube.create(f"{self._path}/events", {
            "metadata": {"generateName": f"{its['name']}."}, "involvedObject": about, "reason": reason,
            "message": message, "type": "Normal", "count": 1, "firstTimestamp": stamp(), "lastTimestamp": stamp(),
            "source": {"component": "kubelet", "host": self.pods[its["name"]].node},
        })  # fmt: skip


def stamp(at_s: float | None = None) -> str:
    """A time as Kubernetes writes it, in whole seconds; now by default."""
    return datetime.fromtimestamp(int(time.time() if at_s is None else at_s), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _precise(at_s: float) -> str:
    whole = int(at_s)
    return f"{stamp(whole).removesuffix('Z')}.{int((at_s - whole) * 1e9):09d}Z"


def _running(since_s: float) -> Manifest:
    return {"running": {"startedAt": stamp(since_s)}}


def _ended(began_s: float, ended_s: float, exit_code: int, reason: str) -> Manifest:
    times = {"startedAt": stamp(began_s), "finishedAt": stamp(ended_s)}
    return {"terminated": {"exitCode": exit_code, "reason": reason, **times}}


def _container(name: str, image: str, state: Manifest) -> Manifest:
    alive = "running" in state
    return {
        "name": name, "state": state, "lastState": {}, "ready": alive, "restartCount": 0, "image": image,
        "imageID": "", "started": alive,
    }  # fmt: skip
