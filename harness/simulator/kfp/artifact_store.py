"""The artifact store, which holds the inputs and outputs of steps: capacity, bandwidth, errors."""

from collections import Counter, defaultdict
from collections.abc import Callable
from math import inf

from harness.model.exposition import Histogram
from harness.simulator.cluster import Node, Pod
from harness.simulator.engine.events import EventLoop
from harness.simulator.engine.queues import ProcessorSharing
from harness.simulator.profile import ArtifactStore as Settings
from harness.simulator.profile.store_products import INSTALLED

Done = Callable[[Pod, float, str], None]  # called with the pod, the bytes, and the error ("" for none)


class ArtifactStore:
    """One object store behind one volume.

    All transfers share its bandwidth. A write to a full store, or from a node that cannot reach it, is retried until
    the client's timeout and then fails with the error that Argo's executor reports. None of this applies where outputs
    are shared in memory.
    """

    def __init__(self, loop: EventLoop, settings: Settings) -> None:
        self._loop = loop
        self.settings = settings
        self.installed = INSTALLED[settings.product]
        self.capacity = settings.capacity
        self.used = settings.used
        self.link = ProcessorSharing(loop, settings.bytes_per_s)
        self._memory = ProcessorSharing(loop, inf)  # where outputs are shared in memory: unlimited
        self.request_s = settings.request_s
        self.unreachable: Callable[[Node], bool] = lambda _: False
        self.requests: Counter[tuple[str, str]] = Counter()  # (type, HTTP status)
        # Seconds by request type, to the first or last byte of the response as the product measures it.
        self.durations: defaultdict[str, Histogram] = defaultdict(lambda: Histogram(self.installed.bounds))

    @property
    def free(self) -> float:
        """Bytes left on the volume."""
        return max(0.0, self.capacity - self.used)

    def full_for(self, size: float) -> bool:
        """Whether a write of `size` bytes is refused."""
        return self.used + size > self.capacity * (1 - self.settings.min_free)

    def write(self, pod: Pod, size: float, done: Done) -> None:
        """Store a step's output of `size` bytes."""
        if self.settings.memory_bytes_per_s:
            self._copy(pod, size, size / self.settings.memory_bytes_per_s, done)
        elif self._reaches(pod) and not self.full_for(size):
            self._put(pod, size, done)
        else:
            self._loop.after(self.settings.timeout_s, self._last_try, pod, size, done)

    def _last_try(self, pod: Pod, size: float, done: Done) -> None:
        if pod.deleting is not None:
            return
        if not self._reaches(pod):
            error = f"unable to write outputs: {self._unreached('Put')}"
            self._refused("PUT", "timeout", pod, size, error, done)
        elif self.full_for(size):
            error = f"unable to write outputs: {self.installed.full}: timed out waiting for the condition"
            self._refused("PUT", self.installed.full_status, pod, size, error, done)
        else:
            self._put(pod, size, done)

    def _refused(self, kind: str, status: str, pod: Pod, size: float, error: str, done: Done) -> None:
        self.requests[kind, status] += 1
        self.durations[kind].observe(self.settings.timeout_s)
        done(pod, size, error)

    def _put(self, pod: Pod, size: float, done: Done) -> None:
        self.used += size
        self._transfer("PUT", pod, size, done)

    def read(self, pod: Pod, size: float, done: Done) -> None:
        """Fetch a step's inputs of `size` bytes."""
        if self.settings.memory_bytes_per_s:
            self._copy(pod, size, self.request_s, done)
        elif self._reaches(pod):
            self._transfer("GET", pod, size, done)
        else:
            error = f"unable to read inputs: {self._unreached('Get')}"
            self._loop.after(self.settings.timeout_s, self._refused, "GET", "timeout", pod, size, error, done)

    def _unreached(self, verb: str) -> str:
        url = f"http://{self.installed.service}.kubeflow.svc.cluster.local:9000/mlpipeline/"
        return f'{verb} "{url}": dial tcp: i/o timeout: timed out waiting for the condition'

    def _copy(self, pod: Pod, size: float, takes: float, done: Done) -> None:
        pod.station = self._memory
        pod.job = self._memory.add(takes, 0.0, done, pod, size, "")

    def _transfer(self, kind: str, pod: Pod, size: float, done: Done) -> None:
        stream = self.settings.stream_bytes_per_s
        alone_s = self.request_s + size / stream
        # A PUT is answered at its end; the first byte of a GET arrives before the transfer.
        share = self.request_s / alone_s if kind == "GET" and self.installed.first_byte else 1.0
        pod.station = self.link
        pod.job = self.link.add(alone_s, stream, self._transferred, kind, self._loop.now, share, pod, size, done)

    def _transferred(self, kind: str, begun: float, share: float, pod: Pod, size: float, done: Done) -> None:
        self.requests[kind, "200"] += 1
        self.durations[kind].observe((self._loop.now - begun) * share)
        done(pod, size, "")

    def _reaches(self, pod: Pod) -> bool:
        return pod.node is None or not self.unreachable(pod.node)
