"""What a node does with a pod: pull its images, start it, run it, end it."""

from random import Random
from typing import Protocol

from harness.simulator.cluster.listener import Change, ClusterListener
from harness.simulator.cluster.objects import Node, Pod
from harness.simulator.engine.events import EventLoop
from harness.simulator.profile import Kubelet as Settings

# Looked up once: a member of an enumeration costs as much as a call.
_SCHEDULED, _PULLING, _PULLED = Change.SCHEDULED, Change.PULLING, Change.PULLED
_STARTED, _MAIN_ENDED, _OVER = Change.STARTED, Change.MAIN_ENDED, Change.OVER
SIGKILLED = 137
GRACE_S = 30.0  # terminationGracePeriodSeconds, where a pod says nothing


class DepartureListener(Protocol):
    """Who has to know when a pod leaves."""

    def freed(self, node: Node) -> None:
        """A pod left the node."""
        ...

    def gone(self, pod: Pod) -> None:
        """The pod's object is no more."""
        ...


class Kubelet:
    """Of all nodes: what they share is settings and a random stream.

    Images are pulled one after the other on each node (``serializeImagePulls``), once, by whoever needs them first.
    """

    def __init__(
        self,
        loop: EventLoop,
        settings: Settings,
        random: Random,
        listener: ClusterListener,
        departures: DepartureListener,
    ) -> None:
        self._loop = loop
        self.settings = settings
        self._random = random
        self._listener = listener
        self._departures = departures
        self.pull_factor = 1.0  # how much slower images are pulled

    def bind(self, pod: Pod, node: Node) -> None:
        """The scheduler chose this node."""
        self._listener.pod_changed(pod, _SCHEDULED)
        now = self._loop.now
        ready = node.complete.get(pod.images)
        if ready is None:
            ready = max((self._image_ready(node, image) for image in pod.images), default=now)
            node.complete[pod.images] = ready
        if ready > now:
            self._listener.pod_changed(pod, _PULLING)
            self._loop.at(ready, self._pulled, pod)
        else:
            self._pulled(pod)

    def _image_ready(self, node: Node, image: str) -> float:
        """When the image is on the node; the first to ask begins the pull."""
        ready = node.images.get(image)
        if ready is None:
            settings = self.settings
            size = settings.images.get(image, settings.image_bytes)
            begins = max(self._loop.now, node.pull_free)
            ready = begins + (settings.pull_overhead_s + size / settings.pull_bytes_per_s) * self.pull_factor
            node.images[image] = node.pull_free = ready
        return ready

    def _pulled(self, pod: Pod) -> None:
        if pod.deleting is not None or pod.finished is not None:
            return
        pod.pulled = self._loop.now
        self._listener.pod_changed(pod, _PULLED)
        self._loop.after(self.settings.start.sample(self._random, {}), self._start, pod)

    def _start(self, pod: Pod) -> None:
        if pod.deleting is not None or pod.finished is not None:
            return
        pod.started = self._loop.now
        pod.phase = "Running"
        self._listener.pod_changed(pod, _STARTED)
        if pod.on_running is not None:
            pod.on_running(pod)

    def end_main(self, pod: Pod, exit_code: int = 0, reason: str = "Completed", message: str = "") -> None:
        """The main container ended; the pod goes on until `finish`."""
        pod.main_ended = self._loop.now
        pod.exit_code, pod.reason, pod.message = exit_code, reason, message
        self._listener.pod_changed(pod, _MAIN_ENDED)

    def finish(self, pod: Pod, exit_code: int = 0, reason: str = "Completed", message: str = "") -> None:
        """All containers ended; with the main container still running, it ends this way too."""
        if pod.main_ended is None:
            pod.main_ended = self._loop.now
        if exit_code or pod.reason == "":
            pod.exit_code, pod.reason, pod.message = exit_code, reason, message
        pod.finished = self._loop.now
        pod.phase = "Failed" if pod.exit_code else "Succeeded"
        pod.station = pod.job = None
        self._listener.pod_changed(pod, _OVER)
        self._leave(pod)

    def delete(self, pod: Pod, grace_s: float = GRACE_S) -> None:
        """End a pod from outside: its work stops, and it is gone when it has ended, after `grace_s` at the latest.

        One that is on its way out already can be hurried, not held up.
        """
        now = self._loop.now
        if pod.deleting is None:
            pod.deleting, pod.grace_s = now, grace_s
            self._stop_work(pod)
            if pod.over or pod.node is None:
                pod.grace_s = 0.0
            elif grace_s:
                self._listener.pod_changed(pod, Change.TERMINATING)
        elif pod.leaves is None or grace_s >= pod.grace_s:
            return
        else:
            pod.deleting, pod.grace_s = now, grace_s
            if grace_s:
                self._listener.pod_changed(pod, Change.LABELLED)
        leaves = now + min(self.settings.termination_s, pod.grace_s)
        if pod.leaves is None or leaves < pod.leaves:
            pod.leaves = leaves
            if pod.grace_s:
                self._loop.at(leaves, self._leaves, pod)
            else:
                self._leaves(pod)

    def _leaves(self, pod: Pod) -> None:
        if pod.leaves is not None and pod.leaves <= self._loop.now:
            pod.leaves = None
            self._remove(pod)

    def _remove(self, pod: Pod) -> None:
        lost = not pod.over
        if lost:
            pod.finished = self._loop.now
            pod.exit_code, pod.reason, pod.phase = SIGKILLED, "Error", "Failed"
        pod.grace_s = 0.0
        self._listener.pod_changed(pod, Change.GONE)
        self._departures.gone(pod)
        if lost:
            self._leave(pod)

    @staticmethod
    def _stop_work(pod: Pod) -> None:
        if pod.station is not None and pod.job is not None:
            pod.station.remove(pod.job)
        pod.station = pod.job = None

    def _leave(self, pod: Pod) -> None:
        node = pod.node
        if node is not None and node.pods.get(pod.name) is pod:
            node.give_back(pod)
            self._departures.freed(node)
        if pod.on_over is not None:
            pod.on_over(pod)
