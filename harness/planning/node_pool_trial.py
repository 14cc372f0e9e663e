"""Trials on one node pool of a real (or served) cluster: how many runs fit one node."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from harness.model.cluster import PoolNode, PoolPod
from harness.model.errors import ConfigError, TargetUnreachableError
from harness.model.http import Exchange
from harness.model.phases import TERMINAL_STATES
from harness.model.scenario import Scenario
from harness.model.units import counted, format_duration
from harness.planning.jobs_per_node import Blocked, NodeCapacity, Snapshot, Trial, Verdict, by_room, is_driver, judge
from harness.targets import kfp
from harness.targets.target import Cleanup, RejectedError

_POLL_S = 1.0


class Cluster(Protocol):
    """A cluster on which trials are made; its methods raise TargetUnreachableError."""

    def nodes(self) -> Sequence[PoolNode]:
        """All nodes of the cluster, of every pool."""
        ...

    def pods(self, *, everywhere: bool = False) -> Sequence[PoolPod]:
        """The pods of runs in their namespace, or all pods everywhere."""
        ...

    def scheduling_failures(self) -> Sequence[tuple[str, str]]:
        """Events in the namespace of the runs: a pod's name, and the scheduler's message."""
        ...


@dataclass(frozen=True, slots=True)
class TrialSettings:
    """The pool ("": the only one without taints), the pipeline (none: the built-in example), and the longest waits."""

    pool: str
    pipeline: Path | None
    trial_s: float
    settle_s: float


class NodePoolTrials:
    """Trials on a pool. Creating it uploads the pipeline.

    Raises:
        ConfigError: there is no such pool.
        TargetUnreachableError: platform or cluster do not answer.
    """

    def __init__(
        self, settings: TrialSettings, cluster: Cluster, exchange: Exchange, report: Callable[[str], None]
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._exchange = exchange
        self._report = report
        self.pool = settings.pool or self._only_pool()
        if any(node.node.virtual for node in self._nodes()):
            raise ConfigError(
                f"'{self.pool}' is a virtual node: it takes any number of jobs, and each pod is charged by itself",
                "give --pool NAME of a pool of machines",
            )
        texts = dict.fromkeys(("namespace", *(option.name for option in kfp.OPTIONS)), "")
        texts |= {"pipeline": str(settings.pipeline or ""), "caching": "off"}
        prepared = kfp.prepare(texts, simulated=settings.pipeline is None)
        self.package = prepared.package or b""
        options = dict(prepared.options)
        set_up = kfp.KfpTarget(options, package=prepared.package).set_up(exchange)
        self._target = kfp.KfpTarget(options | dict(set_up.options), since=time.time_ns())
        self._trials = 0
        self._waiting_elsewhere = ""  # the scheduler's message on a driver

    @property
    def drives_elsewhere(self) -> bool:
        """Drivers, which tolerate no taint, don't run in this pool; false while it is empty."""
        return _tainted(self._nodes())

    def node_capacity(self) -> NodeCapacity | None:
        """Of the pool's first node, less what its daemons request; none while the pool is empty."""
        nodes = self._nodes()
        if not nodes:
            return None
        node = nodes[0].node
        pods = self._cluster.pods(everywhere=True)
        daemons = [pod for pod in pods if pod.node == node.name and pod.live and not pod.run]
        return NodeCapacity(
            node.cpu - sum(pod.cpu for pod in daemons),
            node.memory - sum(pod.memory for pod in daemons),
            node.pods - len(daemons),
        )

    def settle(self) -> None:
        """Wait until no pod of a run is alive and the pool has at most one node.

        Raises:
            TargetUnreachableError: this takes longer than the settings allow.
        """
        until = time.monotonic() + self._settings.settle_s
        reported = False
        while True:
            nodes, busy = len(self._nodes()), sum(pod.live for pod in self._cluster.pods())
            if nodes <= 1 and not busy:
                return
            state = f"{counted(nodes, 'node')} and {counted(busy, 'pod')} of runs"
            if time.monotonic() > until:
                raise TargetUnreachableError(
                    f"pool '{self.pool}' still has {state} after {format_duration(self._settings.settle_s)}",
                    "let its autoscaler shrink it to one node (minimum 0 or 1), or give a longer --settle",
                )
            if not reported:
                self._report(f"waiting for an empty pool: {state}")
                reported = True
            time.sleep(_POLL_S)

    def trial(self, jobs: int) -> Trial:
        """Start `jobs` runs at once on the empty pool, watch until the verdict is clear, then terminate them.

        Raises:
            TargetUnreachableError: the pool does not get empty, there is no verdict in time, or a run was rejected.
        """
        self.settle()
        self._trials += 1
        runs = []
        try:
            for k in range(jobs):
                scenario = Scenario(f"{self._trials}-{k}", f"jobs-per-node-{jobs}", {}, {})
                runs.append(self._target.submit(scenario, self._exchange))
            verdict = self._watch(jobs, set(runs))
        except RejectedError as error:
            raise TargetUnreachableError(f"a run was rejected: {error.message}", "check the pipeline") from error
        finally:
            self._terminate(runs)
        result = "one node is enough" if verdict.fits else f"does not fit one node ({verdict.stopped_by})"
        self._report(f"{counted(jobs, 'run')}: {result}")
        return Trial(jobs, verdict)

    def _watch(self, jobs: int, runs: Collection[str]) -> Verdict:
        until = time.monotonic() + self._settings.trial_s
        blocked_since: dict[str, float] = {}
        while time.monotonic() < until:
            verdict = judge(jobs, self._snapshot(runs, blocked_since))
            if verdict is not None:
                return verdict
            time.sleep(_POLL_S)
        drivers = f"; drivers wait for a node elsewhere: {self._waiting_elsewhere}" if self._waiting_elsewhere else ""
        raise TargetUnreachableError(
            f"no verdict on {counted(jobs, 'run')} per node after {format_duration(self._settings.trial_s)}{drivers}",
            "make room for the drivers" if drivers else "give a longer --trial",
        )

    def _snapshot(self, runs: Collection[str], blocked_since: dict[str, float]) -> Snapshot:
        """The pool now; `blocked_since` is updated with the time at which each blocked pod was first seen blocked."""
        # Runs first: a run that has ended by then had all its pods before.
        finished = self._finished(runs)
        now = time.monotonic()
        everything = self._cluster.nodes()
        nodes = [pool_node for pool_node in everything if pool_node.node.pool == self.pool]
        pods = {pod.name: pod for pod in self._cluster.pods() if pod.run in runs}
        outside = {pool_node.node.name for pool_node in everything if pool_node.node.pool != self.pool}
        self._refuse_strayed({pod.node for pod in pods.values() if not is_driver(pod)} & outside)
        if finished and not pods:
            raise ConfigError(
                "runs finished, but none of their pods can be seen",
                "check that the kubeconfig is for the platform's cluster, and that --namespace is that of the runs",
            )
        here, elsewhere = by_room(pods.values(), {node.node.name for node in nodes}, tainted=_tainted(nodes))
        self._waiting_elsewhere = next((pod.unschedulable for pod in elsewhere if pod.unschedulable), "")
        pods = {pod.name: pod for pod in here}
        blocked = {name: pod for name, pod in pods.items() if pod.unschedulable}
        for name in set(blocked_since) - set(blocked):
            del blocked_since[name]
        found = tuple(
            Blocked(pod.task, pod.unschedulable, now - blocked_since.setdefault(name, now))
            for name, pod in blocked.items()
        )
        if len(nodes) > 1 and not found:
            found = self._were_blocked(pods)
        return Snapshot(len(nodes), sum(node.node.ready_at is not None for node in nodes), finished, found)

    def _refuse_strayed(self, nodes: Collection[str]) -> None:
        if nodes:
            raise ConfigError(
                f"steps of the runs go to nodes outside pool '{self.pool}': {', '.join(sorted(nodes)[:3])}",
                "give the steps a node selector for the pool, or taint the other nodes",
            )

    def _were_blocked(self, pods: Mapping[str, PoolPod]) -> tuple[Blocked, ...]:
        """Pods that were blocked before the second node came: only the scheduler's events still show it."""
        failures = self._cluster.scheduling_failures()
        return tuple(Blocked(pods[name].task, message, 0.0) for name, message in failures if name in pods)

    def _finished(self, runs: Collection[str]) -> int:
        """How many of the runs have ended; a failed run shows nothing about capacity and ends the trial."""
        page, finished, missing = "", 0, set(runs)
        while missing:
            listing = self._target.list_runs(self._exchange, page)
            for run in listing.runs:
                if run.id in missing:
                    missing.discard(run.id)
                    finished += run.state in TERMINAL_STATES
                    if run.state == "FAILED":
                        raise TargetUnreachableError(
                            f"run {run.name} failed: {run.error or 'no reason given'}",
                            "make sure that a single run succeeds",
                        )
            if not (page := listing.next_page):
                break
        return finished

    def _terminate(self, runs: Sequence[str]) -> None:
        for run in runs:
            try:
                self._target.clean(run, Cleanup.TERMINATE, self._exchange)
            except (RejectedError, TargetUnreachableError):
                continue  # it has ended, or will end by itself

    def _only_pool(self) -> str:
        pools = {node.node.pool for node in self._cluster.nodes() if not node.tainted and not node.node.virtual}
        if len(pools) != 1:
            found = f"there are several pools: {', '.join(sorted(pools))}" if pools else "the cluster has no free node"
            raise ConfigError(found, "give --pool NAME")
        return pools.pop()

    def _nodes(self) -> list[PoolNode]:
        return [node for node in self._cluster.nodes() if node.node.pool == self.pool]


def _tainted(nodes: Sequence[PoolNode]) -> bool:
    return bool(nodes) and all(node.tainted for node in nodes)
