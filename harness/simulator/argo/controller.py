"""The workflow controller for workflows of Argo's own: a queue, workers, its client's limits, and the pods."""

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

from harness.simulator.argo.engine import Reconciliation
from harness.simulator.argo.locks import Limit, Locks, NoLimitError
from harness.simulator.argo.memos import Memos
from harness.simulator.argo.nodes import BAD, ERROR, FAILED, PENDING, RUNNING, SUCCEEDED, Node, Run
from harness.simulator.argo.pods import Pods
from harness.simulator.argo.templates import LOCAL, Spec, calls_of, hooks_of, key_of, missing, name_of
from harness.simulator.cluster import Change, Cluster, Pod
from harness.simulator.cluster.quota import Quotas
from harness.simulator.engine.events import EventLoop
from harness.simulator.kfp.client import Client
from harness.simulator.kfp.throttler import POSTPONED, Key, Throttler
from harness.simulator.kfp.work_queue import WorkQueue
from harness.simulator.profile import Controller as Settings

_QUOTA_RETRY_S = 1.0


class ArgoController:
    """Carries out workflows as `kfp.controller.Controller` does KFP's: with the same costs, client and limits.

    Args:
        loop: the event loop.
        settings: of the controller.
        client: that all of the controller shares.
        cluster: where the pods are created.
        pods: makes them.
        changed: called after each change of a workflow, and after its removal.
        quotas: on the pods.
        limit: of a semaphore.
        queue: whose workers also carry out KFP's workflows.
        throttler: of all workflows.
        memos: the outputs that memoized templates keep.
        owner: what a workflow's pods show as their owner.
    """

    def __init__(
        self,
        loop: EventLoop,
        settings: Settings,
        *,
        client: Client,
        cluster: Cluster,
        pods: Pods,
        changed: Callable[[Run], None],
        quotas: Quotas,
        limit: Limit,
        queue: WorkQueue,
        throttler: Throttler,
        memos: Memos,
        owner: Callable[[Run], object],
    ) -> None:
        self._loop = loop
        self._settings = settings
        self._requests = settings.requests_of_version
        self._client = client
        self._cluster = cluster
        self._pods = pods
        self._changed = changed
        self._quotas = quotas
        self._throttler = throttler
        self._owner = owner
        self.locks = Locks(limit)
        self._memos = memos
        self.queue = queue
        queue.serve(Run, self._reconcile)
        self.runs: dict[Key, Run] = {}
        self._numbers = count()
        retries = settings.error_retries
        self._retry: dict[str, Any] = {"limit": retries, "retryPolicy": "OnError"} if retries else {}

    def add(self, run: Run) -> None:
        """Start to reconcile a new workflow."""
        run.number = next(self._numbers)
        self.runs[run.namespace, run.name] = run
        self._changed(run)
        self.queue.add(run)

    def shut_down(self, run: Run, how: str) -> None:
        """End a workflow; `how` is Terminate or Stop."""
        run.shutdown = how
        self._touch(run)

    def remove(self, run: Run) -> None:
        """Delete a workflow and its pods."""
        if self.runs.pop((run.namespace, run.name), None) is None:
            return
        self._let_others_start(run)
        for pod in run.pods:
            self._cluster.forget(pod)
        self._changed(run)

    # --- one reconciliation -----------------------------------------------------------------------------------------

    def _reconcile(self, run: Run) -> None:
        if run.over or self._is_gone(run):
            self.queue.done(run)
            return
        new = run.started is None
        if new and not self._begin(run):
            self.queue.done(run)
            return
        if not (new or run.touched):
            self.queue.done(run)
            return
        run.touched = False
        self._delete_stopped_pods(run)
        work = Reconciliation(run, self._loop.now, self.locks, self._memos, self._retry, self._pods.ending)
        work.operate()
        self._client.cleanup.add(self._requests.cleanup * work.assessed)
        self._wake(work.freed)
        if work.look_at is not None:
            self._loop.at(work.look_at, self._touch_if_going, run)
        if run.finished is not None:
            self._end(run)
        if new and self._requests.start:
            self._client.counts["configmaps get"] += self._requests.start
            self._loop.at(self._client.core.take(self._loop.now, self._requests.start), self._create, run, work.due)
        else:
            self._create(run, work.due)

    def _begin(self, run: Run) -> bool:
        """Start a workflow, unless it can't be, or has to wait."""
        run.find_templates()
        if problem := problem_of(run):
            run.started = run.finished = self._loop.now
            run.phase, run.message = FAILED, f"invalid spec: {problem}"
            self._changed(run)
            return False
        try:
            why = self._wait_of(run)
        except NoLimitError as error:
            run.started = run.finished = self._loop.now
            run.phase, run.message = ERROR, str(error)
            self._throttler.remove((run.namespace, run.name))
            self._changed(run)
            return False
        if why and not run.shutdown:
            if (run.phase, run.message) != (PENDING, why):
                run.phase, run.message, run.held = PENDING, why, True
                self._changed(run)
            return False
        run.started, run.phase, run.message = self._loop.now, RUNNING, ""
        return True

    def _wait_of(self, run: Run) -> str:
        key = run.namespace, run.name
        start = partial(self._wake, [run.holder()])
        if not self._throttler.admit(key, start, priority=run.priority, created=run.created):
            return POSTPONED
        wanted = run.spec.get("synchronization")
        return self.locks.acquire(wanted, run.namespace, run.holder(), run.priority) if wanted else ""

    def _create(self, run: Run, due: list[Node]) -> None:
        """Create the pods one after the other, then update the workflow."""
        now = self._loop.now
        for position, node in enumerate(due):
            at = self._client.core.take(now, self._requests.pod)
            if at > now:
                self._loop.at(at, self._create_and_go_on, run, due[position:])
                return
            self._create_pod(run, node)
        at = self._client.workflows.take(now, 1 + (self._requests.results if run.over else 0))
        self._loop.at(at, self._updated, run) if at > now else self._updated(run)

    def _create_and_go_on(self, run: Run, due: list[Node]) -> None:
        self._create_pod(run, due[0])
        self._create(run, due[1:])

    def _create_pod(self, run: Run, node: Node) -> None:
        if node.over or self._is_gone(run) or not _goes_on(run, node):
            return
        pod = self._pods.make(run, node, lambda _: self._touch(run))
        quota = self._quotas.of(run.namespace)
        refusal = quota.refusal(pod)
        self._client.counts["pods create refused" if refusal else "pods create"] += self._requests.pod
        if refusal:  # Argo treats it as transient and retries
            node.message = refusal
            self._loop.after(max(self.queue.requeue_s, _QUOTA_RETRY_S), self._create_pod, run, node)
            return
        quota.take(pod)
        over = pod.on_over
        assert over is not None

        def give_back(ended: Pod) -> None:
            quota.give_back(ended)
            over(ended)

        pod.on_over = give_back
        pod.owner = self._owner(run)
        node.pod, node.message = pod, ""
        self._cluster.create(pod)

    def _updated(self, run: Run) -> None:
        counts = self._client.counts
        counts["workflows update"] += 1
        if run.over:
            counts["workflowtaskresults deletecollection"] += self._requests.results
        else:
            self.queue.expect(run)
        if not self._is_gone(run):
            self._changed(run)
        if self._settings.settle_of_version_s:
            self._loop.after(self._settings.settle_of_version_s, self.queue.done, run)
        else:
            self.queue.done(run)

    # --- its end, and others ----------------------------------------------------------------------------------------

    def _end(self, run: Run) -> None:
        for pod in run.pods:
            pod.owner = self._owner(run)
            if pod.name in self._cluster.pods:
                self._cluster.listener.pod_changed(pod, Change.LABELLED)
        self._client.cleanup.add(self._requests.end)
        self._let_others_start(run)
        self._collect_pods(run)
        after = keep_s(run, self._settings.ttl_s)
        self._loop.after(after, self._expire, run)

    def _let_others_start(self, run: Run) -> None:
        """A workflow ended or was deleted: it gives back its locks, and the next postponed one may start."""
        freed = self.locks.release(run.holder())
        for node in run.nodes:
            freed += self.locks.release(run.holder(node))
        self._wake(freed)
        self._throttler.remove((run.namespace, run.name))

    def _wake(self, holders: list[str]) -> None:
        for holder in holders:
            namespace, name, *_ = holder.split("/")
            if run := self.runs.get((namespace, name)):
                run.touched = True
                self.queue.add(run)

    def _collect_pods(self, run: Run) -> None:
        """``podGC``: on completion of each pod it acts at the end, too, as nothing reads a pod's object before."""
        strategy = str((run.spec.get("podGC") or {}).get("strategy") or "")
        for pod in run.pods:
            match strategy:
                case "OnPodCompletion" | "OnWorkflowCompletion":
                    collected = True
                case "OnPodSuccess":
                    collected = pod.phase == SUCCEEDED
                case _:
                    collected = strategy == "OnWorkflowSuccess" and not _bad(run)
            if collected:
                self._cluster.forget(pod)

    def _delete_stopped_pods(self, run: Run) -> None:
        for node in run.nodes.values() if run.shutdown else ():
            pod = node.pod
            if pod is not None and not pod.over and pod.deleting is None and not _goes_on(run, node):
                self._cluster.kubelet.delete(pod)

    def _expire(self, run: Run) -> None:
        if not self._is_gone(run):
            self.remove(run)

    def _touch(self, run: Run) -> None:
        run.touched = True
        if not run.over and not self._is_gone(run):
            self.queue.requeue(run)

    def _touch_if_going(self, run: Run) -> None:
        if not run.over and not self._is_gone(run):
            run.touched = True
            self.queue.add(run)

    def _is_gone(self, run: Run) -> bool:
        return self.runs.get((run.namespace, run.name)) is not run


def problem_of(run: Run) -> str:
    """What Argo's validation finds in a workflow that its API accepts, in its words; "" for nothing."""
    entrypoint = run.spec.get("entrypoint")
    if not entrypoint:
        return "entrypoint is required"
    called: dict[str, Spec] = {str(entrypoint): {"template": entrypoint}}
    called |= {key_of(each, LOCAL): each for each in hooks_of(run.spec).values()}
    for key, template in run.templates.items():
        tasks = (template.get("dag") or {}).get("tasks") or ()
        if any("depends" in each for each in tasks) and any("dependencies" in each for each in tasks):
            return f"templates.{name_of(key)} cannot use both 'depends' and 'dependencies' in the same DAG template"
        called |= {key_of(each, key): each for each in calls_of(template)}
    return next((missing(each) for key, each in called.items() if key not in run.templates), "")


def keep_s(run: Run, default_s: float) -> float:
    """How long a finished workflow is kept: its ``ttlStrategy``, or else the controller's."""
    strategy = run.spec.get("ttlStrategy") or {}
    own = "secondsAfterFailure" if _bad(run) else "secondsAfterSuccess"
    return float(strategy.get(own, strategy.get("secondsAfterCompletion", default_s)))


def _goes_on(run: Run, node: Node) -> bool:
    """Whether a node's pod may run: after ``Stop`` that of an exit handler."""
    return not run.shutdown or (node.after and run.shutdown != "Terminate")


def _bad(run: Run) -> bool:
    return run.phase in BAD
