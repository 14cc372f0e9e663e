"""The cluster as a whole: nodes join and leave, pods are scheduled, run and lost."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random

from harness.simulator.cluster.autoscaler import Autoscaler
from harness.simulator.cluster.kubelet import Kubelet
from harness.simulator.cluster.kueue import PREEMPTED, Kueue
from harness.simulator.cluster.listener import Change, ClusterListener
from harness.simulator.cluster.objects import DISRUPTED_BY_EVICTION, DISRUPTED_BY_TAINT, Node, Pod
from harness.simulator.cluster.scheduler import Scheduler
from harness.simulator.cluster.shapes import Shape, taints_of
from harness.simulator.cluster.spot import SpotMarket
from harness.simulator.engine.events import EventLoop
from harness.simulator.profile import MeasuredPod, Pool, Profile, Taint

# How the cluster learns of a machine's death (kube-controller-manager's and cloud-controller-manager's defaults).
_SILENCE_S = 40.0  # --node-monitor-grace-period: then the node is not ready
_CLOUD_LOOK_S = 5.0  # --node-monitor-period: then the cloud is asked for its machine
_COLLECTION_S, _QUARANTINE_S = 20.0, 40.0  # of pods on nodes that don't exist: interval, and patience (measured: 51 s)
_TOLERATION_S = 300.0  # of every pod for unreachable nodes, by admission
_UNREADY_S = 1200.0  # the autoscaler's scale-down-unready-time
_UNREACHABLE = tuple(Taint("node.kubernetes.io/unreachable", "", effect) for effect in ("NoSchedule", "NoExecute"))
_EVICTION_TAINT = Taint("remediator.kubernetes.azure.com/unschedulable", "", "NoSchedule")


class Cluster:
    """Nodes, scheduler, kubelets and autoscaler of one profile."""

    def __init__(self, loop: EventLoop, profile: Profile, seed: str, listener: ClusterListener) -> None:
        self._loop = loop
        self._profile = profile
        self.listener = listener
        self._names = Random(f"{seed}/names")
        self._drivers = Random(f"{seed}/drivers")
        self._draws = Random(f"{seed}/measured")
        self._counts = Counter[str]()  # pods by task, of those that were measured
        self.spot = SpotMarket(loop, Random(f"{seed}/evictions"), self.pool_nodes, self.evict_node)
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self._pools: dict[str, dict[str, Node]] = {pool.name: {} for pool in profile.pools}
        self._scale_set = {pool.name: f"{self._names.randrange(10**8):08d}" for pool in profile.pools}
        self._made = dict.fromkeys(self._pools, 0)  # machines made so far
        self.kubelet = Kubelet(
            loop, profile.kubelet, Random(f"{seed}/kubelet"), listener, self._freed, self._gone
        )  # fmt: skip
        self.scheduler = Scheduler(loop, profile.scheduler, listener, self.kubelet.bind, self._preempt)
        self.withhold: Callable[[Pod], bool] = lambda _: False  # a fault keeps a new pod from being scheduled
        self._priorities = {tenant.namespace: tenant.priority for tenant in profile.tenants if tenant.priority}
        self._kueue: Kueue | None = None
        if profile.queues:
            self._kueue = Kueue(loop, profile.queues, self._schedule, self._waits_for_quota, self._preempt_for_quota)
        self.autoscaler: Autoscaler | None = None
        if profile.autoscaler is not None:
            random, scaler = Random(f"{seed}/autoscaler"), profile.autoscaler
            if profile.resampled:  # the scans know nothing of when a test starts
                scaler = replace(scaler, first_scan_s=random.random() * scaler.scan_s)
            self.autoscaler = Autoscaler(
                loop, scaler, profile.pools, random,
                scheduler=self.scheduler, nodes=self.pool_nodes, add_node=self.add_node, remove_node=self.remove_node,
                listener=listener, has_machine=self.spot.has_machine,
            )  # fmt: skip
        for pool in profile.pools:
            for _ in range(pool.initial):
                self.add_node(pool, 0.0)
        self.spot.begin(profile.pools)

    # --- pods ---------------------------------------------------------------------------------------------------

    def create(self, pod: Pod) -> None:
        """Create a pod: the scheduler queues it."""
        pod.created = self._loop.now
        if self._profile.measured:
            pod.measured = self._as_measured(pod.kind)
        if not pod.shape.priority and (priority := self._priorities.get(pod.namespace)):
            pod.shape = pod.shape._replace(priority=priority)
        self.pods[pod.name] = pod
        self.listener.pod_changed(pod, Change.CREATED)
        if self.withhold(pod):
            return
        if self._kueue is not None and self._kueue.holds(pod):
            return
        self._schedule(pod)

    def _schedule(self, pod: Pod) -> None:
        if pod.deleting is None and not pod.over:
            self.scheduler.add(pod)
            if self.autoscaler is not None:
                self.autoscaler.look()

    def _waits_for_quota(self, pod: Pod) -> None:
        pod.unschedulable = self._loop.now
        self.listener.pod_changed(pod, Change.STATED)

    def _preempt_for_quota(self, victim: Pod, pod: Pod) -> None:
        victim.preemptor = pod
        self.listener.pod_changed(victim, Change.PREEMPTED, PREEMPTED)
        self.kubelet.delete(victim)

    def _as_measured(self, kind: str) -> MeasuredPod | None:
        """The next pod of a task as a recorded test showed one."""
        measured = self._profile.measured.get(kind)
        if measured is None:
            return None
        self._counts[kind] += 1
        last = len(measured.work)
        return measured.pod(self._draws.randrange(last) if self._profile.resampled else self._counts[kind] - 1)

    def forget(self, pod: Pod) -> None:
        """Garbage collection: remove a pod's object at once."""
        if self.pods.pop(pod.name, None) is not None:
            self.kubelet.delete(pod, 0.0)

    def _gone(self, pod: Pod) -> None:
        self.pods.pop(pod.name, None)

    def _preempt(self, victim: Pod, pod: Pod, node: Node) -> None:
        if victim.deleting is None:
            victim.preemptor = pod
            self.listener.pod_changed(victim, Change.PREEMPTED, f"Preempted by {pod.name} on node {node.name}")
            self.kubelet.delete(victim)

    def _freed(self, node: Node) -> None:
        """Let others use what a pod has freed."""
        if not node.pods:
            node.idle_since = self._loop.now
            if self.autoscaler is not None:
                self.autoscaler.look()
        self.scheduler.room_made(node)

    # --- nodes --------------------------------------------------------------------------------------------------

    def pool_nodes(self, pool: Pool) -> list[Node]:
        """The current nodes of a pool."""
        return list(self._pools[pool.name].values())

    def add_node(self, pool: Pool, ready_in_s: float) -> None:
        """Register a machine now that becomes ready after `ready_in_s`."""
        number = self._made[pool.name]
        self._made[pool.name] += 1
        name = f"aks-{pool.name}-{self._scale_set[pool.name]}-vmss{_base36(number)}"
        node = Node(name, sum(self._made.values()), pool, self._loop)
        self.nodes[name] = self._pools[pool.name][name] = node
        if ready_in_s > 0:
            self._await_drivers(node, ready_in_s)
            self.listener.node_changed(
                node, "RegisteredNode", f"Node {name} event: Registered Node {name} in Controller"
            )
            self._loop.after(ready_in_s, self._ready, node)
        else:
            self._ready(node)

    def _ready(self, node: Node) -> None:
        if node.gone is not None or node.lost is not None:
            return
        node.ready = node.idle_since = self._loop.now
        self.listener.node_changed(node, "NodeReady", f"Node {node.name} status is now: NodeReady")
        self.scheduler.room_made(node)
        self.spot.follow(node)
        if self.autoscaler is not None:
            self.autoscaler.look()

    def _await_drivers(self, node: Node, ready_in_s: float) -> None:
        """Have the drivers of a new machine installed once its node is ready."""
        if node.pool.gpu and (takes_s := node.pool.driver.sample(self._drivers, {})) > 0:
            node.lack_drivers()
            self._loop.after(ready_in_s + takes_s, self._install_drivers, node)

    def _install_drivers(self, node: Node) -> None:
        """The device plugin registers a node's GPUs."""
        if node.gone is not None or node.lost is not None:
            return
        node.install_drivers()
        if not node.pods:
            node.idle_since = self._loop.now
        self.listener.node_changed(node)
        self.scheduler.room_made(node)
        if self.autoscaler is not None:
            self.autoscaler.look()

    def evict_node(self, node: Node) -> None:
        """The cloud evicts a spot machine: a notice, then the machine is off."""
        if node.gone is not None or node.lost is not None or _EVICTION_TAINT in node.taints:
            return
        self.spot.took(node.pool)
        if not node.cordoned:
            self.cordon(node, cordoned=True)
        node.taints = (*node.taints, _EVICTION_TAINT)
        node.special = True
        message = f"Node {node.name} is scheduled for preemption by the cloud provider"
        self.listener.node_changed(node, "PreemptScheduled", message)
        cloud = node.pool.eviction.of_cloud
        for pod in list(node.pods.values()):
            if cloud.on_notice == "drain" and not pod.over:
                pod.disrupted = DISRUPTED_BY_EVICTION
                self.kubelet.delete(pod)
            elif cloud.on_notice == "shutdown":
                self._loop.after(min(self.kubelet.settings.termination_s, cloud.notice_s), self.kubelet.shut_down, pod)
        self._loop.after(cloud.notice_s, self.lose_node, node)
        if node.pool.eviction.policy == "deallocate":
            self._loop.after(cloud.notice_s, self._deallocate, node)

    def remove_node(self, node: Node) -> None:
        """Scale down: remove a machine and its node; the pods on it are deleted."""
        if node.gone is None:
            self._drop(node)
            self._delete_pods(node)

    def lose_node(self, node: Node) -> None:
        """A machine dies: its pods stop at once, and the cluster learns of it when it has been silent for long."""
        if node.gone is not None or node.lost is not None:
            return
        node.lost = self._loop.now
        for pod in node.pods.values():
            self.kubelet.stop_work(pod)
        self._loop.after(_SILENCE_S, self._give_up, node)

    def _give_up(self, node: Node) -> None:
        if node.gone is not None or node.lost is None:
            return
        now = node.unreachable = self._loop.now
        node.taints = (*node.taints, *_UNREACHABLE)
        node.special = True
        self.scheduler.ranks.changed(node)
        self.listener.node_changed(node, "NodeNotReady", f"Node {node.name} status is now: NodeNotReady")
        for pod in node.pods.values():
            self.listener.pod_changed(pod, Change.NODE_NOT_READY)
        if node.deallocated:
            self._loop.after(_TOLERATION_S, self._evict_by_taint, node, now)
            if self.autoscaler is not None:
                self._loop.after(_UNREADY_S, self._remove_unready, node, now)
        else:
            self._loop.at(_next_tick(now, _CLOUD_LOOK_S), self._taken_away, node)

    def _deallocate(self, node: Node) -> None:
        """The machine is off, but not gone: its node stays, and it comes back when the cloud has room for it."""
        if node.gone is None and node.lost is not None:
            node.deallocated = True
            back_in_s = self.spot.sold_out_s(node.pool)
            if back_in_s is not None:
                self._loop.after(back_in_s, self._restart, node)

    def _evict_by_taint(self, node: Node, since: float) -> None:
        """Delete the pods of an unreachable node, where no kubelet confirms it: they stay until it returns or goes."""
        if node.gone is None and node.unreachable == since:
            for pod in list(node.pods.values()):
                pod.disrupted = DISRUPTED_BY_TAINT
                self.kubelet.delete(pod)

    def _remove_unready(self, node: Node, since: float) -> None:
        if node.unreachable == since:
            self.remove_node(node)

    def _restart(self, node: Node) -> None:
        """A deallocated machine runs again, without its pods."""
        if node.gone is not None:
            return
        self._delete_pods(node)
        node.lost = node.unreachable = None
        node.taints, node.special, node.deallocated = taints_of(node.pool), False, False
        if node.gpu < node.pool.gpu:  # the machine went off before
            self._await_drivers(node, 0.0)
        self.cordon(node, cordoned=False)
        self._ready(node)

    def _taken_away(self, node: Node) -> None:
        """The cloud has no such machine any more."""
        if node.gone is None:
            message = f"Deleting node {node.name} because it does not exist in the cloud provider"
            self.listener.node_changed(node, "DeletingNode", message)
            self.delete_node(node)

    def delete_node(self, node: Node) -> None:
        """Delete a node's object. Its pods go on, unless the machine is dead, until garbage collection finds them."""
        if node.gone is None:
            self._drop(node)
            self._loop.at(_next_tick(self._loop.now, _COLLECTION_S) + _QUARANTINE_S, self._delete_pods, node)

    def _drop(self, node: Node) -> None:
        node.gone = self._loop.now
        del self.nodes[node.name], self._pools[node.pool.name][node.name]
        message = f"Node {node.name} event: Removing Node {node.name} from Controller"
        self.listener.node_changed(node, "RemovingNode", message)
        self.scheduler.room_made(node)

    def _delete_pods(self, node: Node) -> None:
        for pod in list(node.pods.values()):
            self.kubelet.delete(pod, 0.0)
        self.scheduler.room_made(node)

    def cordon(self, node: Node, *, cordoned: bool) -> None:
        """Cordon or uncordon a node."""
        node.cordoned = cordoned
        reason, word = ("NodeNotSchedulable",) * 2 if cordoned else ("NodeSchedulable",) * 2
        self.listener.node_changed(node, reason, f"Node {node.name} status is now: {word}")
        self.scheduler.room_made(node)

    def scale_pool(self, pool: Pool, count: int) -> None:
        """Scale a pool to `count` nodes by hand; idle nodes are removed first."""
        nodes = sorted(self.pool_nodes(pool), key=lambda node: (len(node.pods), -node.index))
        for node in nodes[: max(0, len(nodes) - count)]:
            self.remove_node(node)
        takes = self._profile.autoscaler.provisioning if self._profile.autoscaler is not None else None
        for _ in range(count - len(nodes)):
            self.add_node(pool, takes.sample(self._names, {}) if takes is not None else 60.0)

    def place_system_pod(self, pod: Pod, *, spread: bool = False) -> bool:
        """Place a running pod of the platform itself; returns whether a node had room for it."""
        nodes = self._by_preference(pod.shape)
        for node in sorted(nodes, key=lambda node: len(node.pods)) if spread else nodes:
            pod.node = node
            node.take(pod)
            self.scheduler.ranks.changed(node)
            pod.created = pod.scheduled = pod.pulled = pod.started = self._loop.now
            pod.phase = "Running"
            self.pods[pod.name] = pod
            self.listener.pod_changed(pod, Change.LABELLED)
            return True
        return False

    def _by_preference(self, shape: Shape) -> Iterator[Node]:
        """The nodes with room for such a pod, system pools first."""
        nodes = [node for node in self.nodes.values() if node.schedulable and node.fits(shape)]
        yield from sorted(nodes, key=lambda node: node.labels.get("kubernetes.azure.com/mode") != "system")


def _next_tick(now: float, interval_s: float) -> float:
    """When something that happens at this interval happens next."""
    return (now // interval_s + 1) * interval_s


def _base36(number: int) -> str:
    """A virtual machine's suffix in a scale set, as AKS names them: ``000000``, ``00000a``."""
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
    return digits.rjust(6, "0")
