"""The artifact store, which holds the inputs and outputs of steps: capacity, bandwidth, errors."""

from collections import Counter, defaultdict
from collections.abc import Callable
from math import inf
from typing import NamedTuple

from harness.model.live.exposition import Histogram
from harness.simulator.cluster import Node, Pod
from harness.simulator.engine.events import EventLoop
from harness.simulator.engine.queues import ProcessorSharing
from harness.simulator.profile import ArtifactStore as Settings
from harness.simulator.profile.store_products import INSTALLED

_LOG_BYTES = 4096.0


class Refusal(NamedTuple):
    """Why a request failed: the store's answer, or the connection's error where `status` is ""."""

    status: str
    code: str
    message: str


Done = Callable[[Pod, float, Refusal | None], None]  # called with the pod, the bytes, and why it failed, if it did
Archived = Callable[[Pod, Refusal | None], None]


class ArtifactStore:
    """One object store behind one volume.

    All transfers share its bandwidth. A write to a full store, or from a node that cannot reach it, is retried until
    the client's timeout and then fails. Outputs that are shared in memory don't touch it; logs do.
    """

    def __init__(self, loop: EventLoop, settings: Settings) -> None:
        self.loop = loop
        self.settings = settings
        self.installed = INSTALLED[settings.product]
        self.capacity = float(settings.capacity)  # a profile may have whole numbers
        self.used = float(settings.used)
        self.link = ProcessorSharing(loop, settings.bytes_per_s)
        self._memory = ProcessorSharing(loop, inf)  # where outputs are shared in memory: unlimited
        self.request_s = settings.request_s
        self.unreachable: Callable[[Node], bool] | None = None  # whether it is from a node
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
            self.loop.after(self.settings.timeout_s, self._last_try, pod, size, done)

    def _last_try(self, pod: Pod, size: float, done: Done) -> None:
        if pod.deleting is not None:
            return
        why = self._refusal(pod, size, "Put")
        if why is None:
            self._put(pod, size, done)
        else:
            self._refused("PUT", why, pod, size, done)

    def _refusal(self, pod: Pod, size: float, verb: str) -> Refusal | None:
        """Why a write of `size` bytes fails, or a read of what is stored (0 bytes)."""
        if not self._reaches(pod):
            url = f"http://{self.installed.service}.kubeflow.svc.cluster.local:9000/mlpipeline/"
            return Refusal("", "", f'{verb} "{url}": dial tcp 10.0.68.9:9000: i/o timeout')
        if size and not self.settings.memory_bytes_per_s and self.full_for(size):
            code, _, message = self.installed.full.partition(": ")
            return Refusal(self.installed.full_status, code, message)
        return None

    def _refused(self, kind: str, why: Refusal, pod: Pod, size: float, done: Done) -> None:
        self.requests[kind, why.status or "timeout"] += 1
        self.durations[kind].observe(self.settings.timeout_s)
        done(pod, size, why)

    def archive(self, pod: Pod, done: Archived) -> None:
        """Store a container's log: kilobytes, which take as long as a request."""
        refused = self._refusal(pod, _LOG_BYTES, "Put") is not None
        takes = self.settings.timeout_s if refused else self.request_s
        self.loop.after(takes, self._archived, pod, takes, done)

    def _archived(self, pod: Pod, takes: float, done: Archived) -> None:
        why = self._refusal(pod, _LOG_BYTES, "Put")
        self.requests["PUT", "200" if why is None else why.status or "timeout"] += 1
        self.durations["PUT"].observe(takes)
        done(pod, why)

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
            why = self._refusal(pod, 0.0, "Get")
            assert why is not None
            self.loop.after(self.settings.timeout_s, self._refused, "GET", why, pod, size, done)

    def _copy(self, pod: Pod, size: float, takes: float, done: Done) -> None:
        pod.station = self._memory
        pod.job = self._memory.add(takes, 0.0, done, pod, size, None)

    def _transfer(self, kind: str, pod: Pod, size: float, done: Done) -> None:
        stream = self.settings.stream_bytes_per_s
        alone_s = self.request_s + size / stream
        # A PUT is answered at its end; the first byte of a GET arrives before the transfer.
        share = self.request_s / alone_s if kind == "GET" and self.installed.first_byte else 1.0
        pod.station = self.link
        pod.job = self.link.add(alone_s, stream, self._transferred, kind, self.loop.now, share, pod, size, done)

    def _transferred(self, kind: str, begun: float, share: float, pod: Pod, size: float, done: Done) -> None:
        self.requests[kind, "200"] += 1
        self.durations[kind].observe((self.loop.now - begun) * share)
        done(pod, size, None)

    def _reaches(self, pod: Pod) -> bool:
        return self.unreachable is None or pod.node is None or not self.unreachable(pod.node)
