"""One node pool of a real (or served) cluster, and trials on it: the official Kubernetes client, and KFP over REST."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.collectors.http import Http, Timeouts
from harness.collectors.kubernetes.nodes import node_of, ready_since
from harness.collectors.kubernetes.pod_requests import requests_of
from harness.collectors.kubernetes.pods import WORKFLOW, run_of, task_of
from harness.model.errors import ConfigError, TargetUnreachableError
from harness.model.phases import TERMINAL_STATES
from harness.model.scenario import Scenario
from harness.model.units import counted, format_duration
from harness.plan import environment
from harness.planning.jobs_per_node import Blocked, Room, Snapshot, Trial, Verdict, judge
from harness.targets import kfp
from harness.targets.cleaning import Cleanup
from harness.targets.target import RejectedError

_LOOK_S = 1.0
_FAILED = "reason=FailedScheduling"
_LIVE = ("Pending", "Running")


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """Where and how: the platform, the pool, and how long to wait for a trial and for an empty pool."""

    host: str
    token: str
    namespace: str
    context: str | None
    pool: str
    pipeline: Path | None
    trial_s: float
    settle_s: float


class ClusterPool:
    """Trials on a pool. Made once, it uploads the pipeline and connects.

    Raises:
        ConfigError: no such context or pool.
        TargetUnreachableError: platform or cluster do not answer.
    """

    def __init__(self, settings: PoolSettings, say: Callable[[str], None]) -> None:
        self._settings = settings
        self._say = say
        self._core = connect(settings.context)
        self._exchange = Http("kfp", settings.host, settings.token, Timeouts(10.0, 60.0), lambda _: None)
        texts = dict.fromkeys(("experiment", "namespace", "service-account", "pipeline-id", "version-id"), "")
        texts |= {"pipeline": str(settings.pipeline or ""), "caching": "off"}
        prepared = kfp.prepare(texts, simulated=settings.pipeline is None)
        self.package = prepared.package or b""
        options = dict(prepared.options)
        found = kfp.KfpTarget(options, package=prepared.package).set_up(self._exchange)
        self._target = kfp.KfpTarget(options | dict(found.options), since=time.time_ns())
        self.pool = settings.pool or self._only_pool()
        self._trials = 0

    def room(self) -> Room | None:
        """Of the pool's first node, less what its daemons request; none while the pool is empty."""
        nodes = self._nodes()
        if not nodes:
            return None
        node = node_of(nodes[0])
        daemons = [pod for pod in self._pods("", everywhere=True) if pod["spec"].get("nodeName") == node.name]
        asked = [requests_of(pod["spec"]) for pod in daemons if pod["status"].get("phase") in _LIVE and not run_of(pod)]
        return Room(
            node.cpu - sum(each.cpu for each in asked),
            node.memory - sum(each.memory for each in asked),
            node.pods - len(asked),
        )

    def settle(self) -> None:
        """Wait until no run's pod lives and the pool has one node or none.

        Raises:
            TargetUnreachableError: it does not come to that in time.
        """
        until = time.monotonic() + self._settings.settle_s
        told = False
        while True:
            nodes = len(self._nodes())
            busy = [p for p in self._pods(WORKFLOW) if p["status"].get("phase") in _LIVE]
            if nodes <= 1 and not busy:
                return
            if time.monotonic() > until:
                raise TargetUnreachableError(
                    f"pool '{self.pool}' has {counted(nodes, 'node')} and {counted(len(busy), 'pod')} of runs after "
                    f"{format_duration(self._settings.settle_s)}",
                    "let its autoscaler go down to one node (minimum 0 or 1), or give a longer --settle",
                )
            if not told:
                self._say(f"waiting for an empty pool: {counted(nodes, 'node')}, {counted(len(busy), 'pod')} of runs")
                told = True
            time.sleep(_LOOK_S)

    def trial(self, jobs: int) -> Trial:
        """Start so many runs at once and watch until it is clear whether one node takes them; then end them.

        Raises:
            TargetUnreachableError: it is not clear in time, or a run was refused.
        """
        self._trials += 1
        runs = []
        try:
            for k in range(jobs):
                scenario = Scenario(f"{self._trials}-{k}", f"jobs-per-node-{jobs}", {}, {})
                runs.append(self._target.submit(scenario, self._exchange))
            verdict = self._watch(jobs, set(runs))
        except RejectedError as error:
            raise TargetUnreachableError(f"a run was refused: {error.message}", "is the pipeline right?") from error
        finally:
            self._end(runs)
        found = "one node is enough" if verdict.fits else f"not on one node ({verdict.stopped_by})"
        self._say(f"{counted(jobs, 'run')}: {found}")
        return Trial(jobs, verdict)

    def _watch(self, jobs: int, runs: set[str]) -> Verdict:
        until = time.monotonic() + self._settings.trial_s
        since: dict[str, float] = {}
        while time.monotonic() < until:
            verdict = judge(jobs, self._look(runs, since))
            if verdict is not None:
                return verdict
            time.sleep(_LOOK_S)
        raise TargetUnreachableError(
            f"{format_duration(self._settings.trial_s)} did not tell whether one node takes {counted(jobs, 'run')}",
            "give a longer --trial",
        )

    def _look(self, runs: set[str], since: dict[str, float]) -> Snapshot:
        # Runs first: a run that is over by then had all its pods before.
        over = self._over(runs)
        now = time.monotonic()
        nodes = self._nodes()
        names = {node["metadata"]["name"] for node in nodes}
        pods = {p["metadata"]["name"]: p for p in self._pods(WORKFLOW) if run_of(p) in runs}
        strayed = {str(p["spec"]["nodeName"]) for p in pods.values() if p["spec"].get("nodeName")} - names
        strayed &= {node["metadata"]["name"] for node in listed(self._core.list_node)}
        if strayed:
            raise ConfigError(
                f"pods of the runs go to nodes outside of pool '{self.pool}': {', '.join(sorted(strayed)[:3])}",
                "give the steps a node selector for the pool, or taint the others",
            )
        if over and not pods:
            raise ConfigError(
                "runs went on, but none of their pods is to be seen",
                "is the kubeconfig that of the platform's cluster, and --namespace that of the runs?",
            )
        blocked = {name: message for name, pod in pods.items() if (message := _unschedulable(pod))}
        for name in set(since) - set(blocked):
            del since[name]
        found = tuple(
            Blocked(task_of(pods[name]), message, now - since.setdefault(name, now))
            for name, message in blocked.items()
        )
        if len(nodes) > 1 and not found:
            found = self._were_blocked(pods)
        return Snapshot(len(nodes), sum(ready_since(node) is not None for node in nodes), over, found)

    def _were_blocked(self, pods: Mapping[str, Mapping[str, Any]]) -> tuple[Blocked, ...]:
        """Pods that found no node before the second one came: only the scheduler's events still say so."""
        if self._settings.namespace:
            events = listed(self._core.list_namespaced_event, self._settings.namespace, field_selector=_FAILED)
        else:
            events = listed(self._core.list_event_for_all_namespaces, field_selector=_FAILED)
        named = [(str(e["involvedObject"].get("name")), str(e.get("message") or "")) for e in events]
        return tuple(Blocked(task_of(pods[name]), message, 0.0) for name, message in named if name in pods)

    def _over(self, runs: set[str]) -> int:
        """How many of the runs are over; failed ones tell nothing about room and end the trial with an error."""
        page, over, missing = "", 0, set(runs)
        while missing:
            listing = self._target.list_runs(self._exchange, page)
            for run in listing.runs:
                if run.id in missing:
                    missing.discard(run.id)
                    over += run.state in TERMINAL_STATES
                    if run.state == "FAILED":
                        raise TargetUnreachableError(
                            f"run {run.name} failed: {run.error or 'no reason given'}",
                            "see to it that one run succeeds",
                        )
            if not (page := listing.next_page):
                break
        return over

    def _end(self, runs: list[str]) -> None:
        for run in runs:
            try:
                self._target.clean(run, Cleanup.TERMINATE, self._exchange)
            except (RejectedError, TargetUnreachableError):
                continue  # it is over already, or will be

    def _only_pool(self) -> str:
        pools = {node_of(node).pool for node in listed(self._core.list_node) if not node["spec"].get("taints")}
        if len(pools) != 1:
            raise ConfigError(
                f"the pool is not clear: {', '.join(sorted(pools)) or 'no node is up'}", "give --pool NAME"
            )
        return pools.pop()

    def _nodes(self) -> list[dict[str, Any]]:
        return [node for node in listed(self._core.list_node) if node_of(node).pool == self.pool]

    def _pods(self, selector: str, *, everywhere: bool = False) -> list[dict[str, Any]]:
        if everywhere or not self._settings.namespace:
            return listed(self._core.list_pod_for_all_namespaces, label_selector=selector)
        return listed(self._core.list_namespaced_pod, self._settings.namespace, label_selector=selector)


def listed(call: Callable[..., Any], *given: str, **more: str) -> list[dict[str, Any]]:
    """What a list call of the official client answers, as plain JSON.

    Raises:
        TargetUnreachableError: the cluster does not answer.
    """
    from kubernetes.client.exceptions import ApiException
    from urllib3.exceptions import HTTPError

    try:
        answer = call(*given, **more, _preload_content=False, _request_timeout=(10.0, 60.0))
    except (ApiException, HTTPError) as error:
        raise TargetUnreachableError(f"the cluster does not answer: {error}", "see kubectl get nodes") from error
    items: list[dict[str, Any]] = json.loads(answer.data)["items"]
    return items


def connect(context: str | None) -> Any:
    """The official client, as the kubeconfig says.

    Raises:
        ConfigError: the kubeconfig can't be used.
    """
    from kubernetes import client, config
    from kubernetes.config.config_exception import ConfigException

    # The client reads KUBECONFIG once, when it is imported; we read it now.
    try:
        return client.CoreV1Api(config.new_client_from_config(environment.kubeconfig(), context))
    except (ConfigException, OSError) as error:
        raise ConfigError(f"the kubeconfig can't be used: {error}", "set KUBECONFIG, or give --kube-context") from error


def _unschedulable(pod: Mapping[str, Any]) -> str:
    for condition in pod["status"].get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "Unschedulable":
            return str(condition.get("message") or "unschedulable")
    return ""
