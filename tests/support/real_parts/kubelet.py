"""What the kubelets of a cluster do, without containers: pods that were placed start, run for a while, and end.

Texts, reasons and their order are those of the kubelet 1.36; as Argo's executor does, an Argo pod's `wait` container
writes the WorkflowTaskResult. A pod's annotations say how it fares (`Fate.of`).

It keeps an account of what it did; that account is what an observer's records are compared with.
"""

import heapq
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from tests.support.real_parts.kube import Kube, Manifest, RefusedError
from tests.support.real_parts.kubelet_reports import GONE, Placed, Reports, ended, running

_ANNOTATION = "kubelet.test/"
_TICK_S = 0.02
_HANDS = 8  # requests at a time
_INIT_S, _STORE_S = 0.2, 0.2  # of Argo's containers: `init` before, `wait` after the step
_AGAIN_S = 5.0  # between two attempts at what fails
_KILLED = 137
OOM_KILLED, EVICTED, NO_IMAGE, NEVER_READY = "OOMKilled", "Evicted", "ErrImagePull", "NeverReady"
NO_SANDBOX, NO_VOLUME, NO_CONFIG = "FailedCreatePodSandBox", "FailedMount", "CreateContainerConfigError"
_STUCK = {  # reason → what the kubelet says again and again
    NO_SANDBOX: "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox "
    '"6f7d": plugin type="azure-vnet" failed (add): IPAM Invoker Add failed: no more addresses available',
    NO_VOLUME: 'MountVolume.SetUp failed for volume "data" : configmap "missing" not found',
    NO_CONFIG: 'Error: secret "missing" not found',
}


@dataclass(frozen=True)
class Fate:
    """How a pod fares.

    Attributes:
        runs_s: of its main container.
        exit_code: of its main container.
        reason: of its end; EVICTED ends the pod by node pressure. NO_IMAGE, NO_SANDBOX, NO_VOLUME and NO_CONFIG: it
            never starts; NEVER_READY: it never ends and is never ready.
        pull_s: how long its image is pulled; 0 if the node has it.
    """

    runs_s: float
    exit_code: int = 0
    reason: str = "Completed"
    pull_s: float = 0.0

    @classmethod
    def of(cls, pod: Manifest, usual: "Fate") -> "Fate":
        """As the annotations ``kubelet.test/runs-s``, ``/pull-s``, ``/exit-code`` and ``/reason`` say."""
        said = {
            key.removeprefix(_ANNOTATION): value
            for key, value in (pod["metadata"].get("annotations") or {}).items()
            if key.startswith(_ANNOTATION)
        }
        code = int(said.get("exit-code", _KILLED if said.get("reason") in {OOM_KILLED, EVICTED} else usual.exit_code))
        return replace(
            usual,
            runs_s=float(said.get("runs-s", usual.runs_s)),
            pull_s=float(said.get("pull-s", usual.pull_s)),
            exit_code=code,
            reason=said.get("reason", "Error" if code else usual.reason),
        )


@dataclass
class Lived:
    """What a pod went through: Unix times in seconds, 0 for what has not happened."""

    node: str
    began_s: float = 0.0
    ended_s: float = 0.0


@dataclass
class _Life(Placed):
    """Its steps, each of which yields the seconds until the next."""

    steps: Iterator[float] = field(default_factory=lambda: iter(()))
    over: bool = False


class Kubelet:
    """The kubelets of all nodes, for the pods of one namespace.

    Args:
        kube: of the cluster.
        namespace: of the pods.
        fate: how a pod fares.

    Attributes:
        pods: the account, by pod.
        silent: nodes whose kubelet does nothing any more.
    """

    def __init__(self, kube: Kube, namespace: str, fate: Callable[[Manifest], Fate]) -> None:
        self._kube, self._reports = kube, Reports(kube, namespace)
        self._path = f"/api/v1/namespaces/{namespace}"
        self._fate = fate
        self._agenda: list[tuple[float, int, _Life]] = []
        self._order = itertools.count()
        self._lock = threading.Lock()
        self._lives: dict[str, _Life] = {}
        self.pods: dict[str, Lived] = {}
        self.silent: set[str] = set()

    def watch(self, over: threading.Event) -> None:
        """Take on each pod that the scheduler has placed."""
        self._kube.follow(f"{self._path}/pods", self._see, over)

    def work(self, over: threading.Event) -> None:
        """Do what is due."""
        with ThreadPoolExecutor(_HANDS) as hands:
            doing = []
            while not over.wait(_TICK_S):
                doing += [hands.submit(self._step, life) for life in self._due()]
                for each in [done for done in doing if done.done()]:
                    doing.remove(each)
                    each.result()

    def _due(self) -> list[_Life]:
        found = []
        with self._lock:
            while self._agenda and self._agenda[0][0] <= time.time():
                found.append(heapq.heappop(self._agenda)[2])
        return found

    def _after(self, seconds: float, life: _Life) -> None:
        with self._lock:
            heapq.heappush(self._agenda, (time.time() + seconds, next(self._order), life))

    def _see(self, change: str, pod: Manifest) -> None:
        its, node = pod["metadata"], pod["spec"].get("nodeName")
        known = self._lives.get(its["uid"])
        if known and (change == "DELETED" or "deletionTimestamp" in its):
            if not known.over:
                known.over = True
                if change != "DELETED":
                    self._after(0, _Life(pod, known.since_s, self._kill(pod)))
        elif not known and node and change != "DELETED" and (pod.get("status") or {}).get("phase") == "Pending":
            life = self._lives[its["uid"]] = _Life(pod, time.time())
            self.pods[its["name"]] = Lived(node)
            life.steps = self._live(life, self._fate(pod))
            self._after(0, life)

    def _step(self, life: _Life) -> None:
        if life.over or life.pod["spec"]["nodeName"] in self.silent:
            return
        try:
            self._after(next(life.steps), life)
        except StopIteration:
            life.over = True
        except RefusedError as error:
            if error.status != GONE:  # deleted meanwhile
                raise

    def _live(self, life: _Life, fate: Fate) -> Iterator[float]:
        pod = life.pod
        names = [each["name"] for each in pod["spec"]["containers"]]
        initial = [each["name"] for each in pod["spec"].get("initContainers", ())]
        waiting = {"waiting": {"reason": "PodInitializing" if initial else "ContainerCreating"}}
        states: dict[str, Manifest] = dict.fromkeys([*initial, *names], waiting)
        while fate.reason in {NO_SANDBOX, NO_VOLUME}:
            self._reports.report(life, "Pending", states)
            self._reports.tell(pod, fate.reason, _STUCK[fate.reason], warns=True)
            yield _AGAIN_S
        for each in initial:
            began_s = time.time()
            self._reports.started(pod, each)
            self._reports.report(life, "Pending", states | {each: running(began_s)})
            yield _INIT_S
            states[each] = ended(began_s, time.time(), 0, "Completed")
        main = "main" if "main" in names else names[0]
        for each in names:
            if each != main:
                self._reports.started(pod, each)
                states[each] = running(time.time())
        yield from self._pull(life, main, fate, states)
        yield from self._run(life, main, fate, states)

    def _pull(self, life: _Life, main: str, fate: Fate, states: dict[str, Manifest]) -> Iterator[float]:
        pod = life.pod
        image = next(each["image"] for each in pod["spec"]["containers"] if each["name"] == main)
        cause = f'rpc error: code = NotFound desc = failed to pull and unpack image "{image}": failed to resolve '
        cause += f'reference "{image}": {image}: not found'
        while fate.reason in {NO_IMAGE, NO_CONFIG}:
            if fate.reason == NO_IMAGE:
                self._reports.tell(pod, "Pulling", f'Pulling image "{image}"', main)
                self._reports.tell(pod, "Failed", f'Failed to pull image "{image}": {cause}', main, warns=True)
                self._reports.tell(pod, "Failed", "Error: ErrImagePull", main, warns=True)
                states[main] = {"waiting": {"reason": NO_IMAGE, "message": cause}}
                self._reports.report(life, "Pending", states)
                yield 1.0
                self._reports.tell(pod, "BackOff", f'Back-off pulling image "{image}"', main)
                self._reports.tell(pod, "Failed", "Error: ImagePullBackOff", main, warns=True)
                back = f'Back-off pulling image "{image}": ErrImagePull: {cause}'
                states[main] = {"waiting": {"reason": "ImagePullBackOff", "message": back}}
            else:
                self._reports.tell(pod, "Failed", _STUCK[NO_CONFIG], main, warns=True)
                states[main] = {"waiting": {"reason": NO_CONFIG, "message": 'secret "missing" not found'}}
            self._reports.report(life, "Pending", states)
            yield _AGAIN_S
        if fate.pull_s:
            self._reports.tell(pod, "Pulling", f'Pulling image "{image}"', main)
            self._reports.report(life, "Pending", states)
            yield fate.pull_s
            took = f"{fate.pull_s:.3g}s"
            said = f'Successfully pulled image "{image}" in {took} ({took} including waiting). Image size: 1043924481 bytes.'
            self._reports.tell(pod, "Pulled", said, main)
            self._reports.started(pod, main, pulled=True)
        else:
            self._reports.started(pod, main)

    def _run(self, life: _Life, main: str, fate: Fate, states: dict[str, Manifest]) -> Iterator[float]:
        lived = self.pods[life.pod["metadata"]["name"]]
        lived.began_s = time.time()
        states[main] = running(lived.began_s)
        self._reports.report(life, "Running", states, ready=fate.reason != NEVER_READY)
        self._reports.write_result(life.pod)
        while fate.reason == NEVER_READY:
            yield _AGAIN_S
        yield fate.runs_s
        lived.ended_s = time.time()
        if fate.reason == EVICTED:
            self._evict(life, main, states)
            return
        states[main] = ended(lived.began_s, lived.ended_s, fate.exit_code, fate.reason)
        self._reports.report(life, "Running", states)
        yield _STORE_S
        self._reports.write_result(life.pod, fate.exit_code)
        for each, state in states.items():
            if "running" in state:
                states[each] = ended(lived.began_s, time.time(), 0, "Completed")
        self._reports.report(life, "Failed" if fate.exit_code else "Succeeded", states)

    def _evict(self, life: _Life, main: str, states: dict[str, Manifest]) -> None:
        message = (
            "The node was low on resource: memory. Threshold quantity: 100Mi, available: 88Mi. "
            f"Container {main} was using 900Mi, request is 0, has larger consumption of memory. "
        )
        self._reports.tell(life.pod, EVICTED, message, warns=True)
        for each, state in states.items():
            if "running" in state:
                states[each] = ended(self.pods[life.pod["metadata"]["name"]].began_s, time.time(), _KILLED, "Error")
        by = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet", "message": message}
        self._reports.report(life, "Failed", states, reason=EVICTED, message=message, conditions=[by])

    def _kill(self, pod: Manifest) -> Iterator[float]:
        """End a pod that is deleted, and confirm it."""
        its = pod["metadata"]
        for each in pod["spec"]["containers"]:
            self._reports.tell(pod, "Killing", f"Stopping container {each['name']}", each["name"])
        yield _INIT_S
        self._kube.delete(f"{self._path}/pods/{its['name']}?gracePeriodSeconds=0&uid={its['uid']}")
