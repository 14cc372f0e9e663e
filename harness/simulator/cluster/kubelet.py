"""The kubelet: pulls a pod's images, starts it, runs it, ends it."""

from collections.abc import Callable
from random import Random

from harness.simulator.cluster.listener import Change, ClusterListener
from harness.simulator.cluster.objects import DISRUPTED_BY_SHUTDOWN, Node, Pod
from harness.simulator.engine.events import EventLoop
from harness.simulator.profile import Kubelet as Settings

# Looked up once: access to an enumeration's member costs as much as a call.
_SCHEDULED, _PULLING, _PULLED = Change.SCHEDULED, Change.PULLING, Change.PULLED
_STARTED, _MAIN_ENDED, _OVER = Change.STARTED, Change.MAIN_ENDED, Change.OVER
SIGKILLED = 137
SIGTERMED = 143
EVICTED, DEADLINE = "Evicted", "DeadlineExceeded"
SHUT_DOWN = "Terminated"  # its kubelet ended it before the machine shut down
_BY_KUBELET = frozenset({EVICTED, DEADLINE, SHUT_DOWN})  # of a pod that its kubelet ended, not of its main container
_TOO_LONG = "Pod was active on the node longer than the specified deadline"
GRACE_S = 30.0  # default terminationGracePeriodSeconds


class Kubelet:
    """The kubelets of all nodes, which share settings and a random stream.

    Each node pulls images one at a time (``serializeImagePulls``) and each image once, for the first pod that needs it.
    """

    def __init__(
        self,
        loop: EventLoop,
        settings: Settings,
        random: Random,
        listener: ClusterListener,
        freed: Callable[[Node], None],
        gone: Callable[[Pod], None],
    ) -> None:
        self._loop = loop
        self.settings = settings
        self._random = random
        self._listener = listener
        self._freed = freed  # called when a pod left its node
        self._gone = gone  # called when a pod's object was removed
        self.pull_factor = 1.0  # multiplies the duration of pulls
        self.hold: Callable[[Pod], bool] = lambda _: False  # a fault keeps a pod from starting
        self.undo: Callable[[Pod], bool] = lambda _: False  # or ends it instead of its work

    def bind(self, pod: Pod, node: Node) -> None:
        """Take over a pod that the scheduler placed on the node."""
        self._listener.pod_changed(pod, _SCHEDULED)
        if node.lost is not None:
            return
        if pod.deadline_s:
            self._loop.after(pod.deadline_s, self._expire, pod)
        if not self.hold(pod):
            self.pull(pod, node)

    def pull(self, pod: Pod, node: Node) -> None:
        """Pull a pod's images, and start it."""
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

    def _expire(self, pod: Pod) -> None:
        if not _stopped(pod):
            self.stop_work(pod)
            self.finish(pod, SIGKILLED, DEADLINE, _TOO_LONG)

    def shut_down(self, pod: Pod) -> None:
        """End a pod because its machine is about to be off (graceful node shutdown): it stays, as Failed."""
        if pod.over or pod.deleting is not None:
            return
        self.stop_work(pod)
        pod.disrupted = DISRUPTED_BY_SHUTDOWN
        self.finish(pod, SIGKILLED, SHUT_DOWN, DISRUPTED_BY_SHUTDOWN[1])

    def _image_ready(self, node: Node, image: str) -> float:
        """When the image is on the node; the first call starts the pull."""
        ready = node.images.get(image)
        settings = self.settings
        if ready is None and settings.present and not node.created and self._random.random() < settings.present:
            ready = node.images[image] = self._loop.now
        if ready is None:
            size = settings.images.get(image, settings.image_bytes)
            begins = max(self._loop.now, node.pull_free)
            ready = begins + (settings.pull_overhead_s + size / settings.pull_bytes_per_s) * self.pull_factor
            node.images[image] = node.pull_free = ready
        return ready

    def _pulled(self, pod: Pod) -> None:
        if _stopped(pod):
            return
        pod.pulled = self._loop.now
        self._listener.pod_changed(pod, _PULLED)
        measured = pod.measured
        takes_s = self.settings.start.sample(self._random, {}) if measured is None else measured.start
        self._loop.after(takes_s, self._start, pod)

    def _start(self, pod: Pod) -> None:
        if _stopped(pod):
            return
        pod.started = self._loop.now
        pod.phase = "Running"
        self._listener.pod_changed(pod, _STARTED)
        if not self.undo(pod) and pod.on_running is not None:
            pod.on_running(pod)

    def end_main(self, pod: Pod, exit_code: int = 0, reason: str = "Completed", message: str = "") -> None:
        """End the main container; the pod continues until `finish`. On a dead machine nothing ends."""
        if _is_lost(pod):
            return
        pod.main_ended = self._loop.now
        pod.exit_code, pod.reason, pod.message = exit_code, reason, message
        self._listener.pod_changed(pod, _MAIN_ENDED)

    def finish(self, pod: Pod, exit_code: int = 0, reason: str = "Completed", message: str = "") -> None:
        """End all containers, the main container too if it still runs. On a dead machine nothing ends."""
        if _is_lost(pod):
            return
        if pod.main_ended is None:
            pod.main_ended = self._loop.now
        if exit_code or pod.reason == "":
            pod.exit_code, pod.reason, pod.message = exit_code, reason, message
            pod.by_kubelet = pod.by_kubelet or reason in _BY_KUBELET
        pod.finished = self._loop.now
        pod.phase = "Failed" if pod.exit_code or pod.wait_error else "Succeeded"
        pod.station = pod.job = None
        self._listener.pod_changed(pod, _OVER)
        self._leave(pod)

    def delete(self, pod: Pod, grace_s: float = GRACE_S) -> None:
        """Delete a pod: its work stops at once, and the object is removed within `grace_s`.

        A second deletion can shorten the grace period but not extend it. On a dead machine the object stays until a
        deletion without a grace period.
        """
        now = self._loop.now
        if pod.deleting is None:
            pod.deleting, pod.grace_s = now, grace_s
            self.stop_work(pod)
            if pod.over or pod.node is None:
                pod.grace_s = 0.0
            elif grace_s:
                self._listener.pod_changed(pod, Change.TERMINATING)
        elif grace_s >= pod.grace_s:  # or its object is removed already
            return
        else:
            pod.deleting, pod.grace_s = now, grace_s
            if grace_s:
                self._listener.pod_changed(pod, Change.LABELLED)
        if pod.grace_s and _is_lost(pod):
            return
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
        self._gone(pod)
        if lost:
            self._leave(pod)

    @staticmethod
    def stop_work(pod: Pod) -> None:
        """Take the pod's work from the queue that it is in."""
        if pod.station is not None and pod.job is not None:
            if pod.node is not None and pod.station is pod.node.processor:
                pod.worked_s = pod.station.progress_of(pod.job)
            pod.station.remove(pod.job)
        pod.station = pod.job = None

    def _leave(self, pod: Pod) -> None:
        node = pod.node
        if node is not None and node.pods.get(pod.name) is pod:
            node.give_back(pod)
            self._freed(node)
        if pod.on_over is not None:
            pod.on_over(pod)


def _is_lost(pod: Pod) -> bool:
    """Whether the pod's machine is dead."""
    return pod.node is not None and pod.node.lost is not None


def _stopped(pod: Pod) -> bool:
    """Whether the pod's containers get no further."""
    return pod.deleting is not None or pod.finished is not None or _is_lost(pod)
