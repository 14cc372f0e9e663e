"""Tenants whose clusters the Dask Kubernetes operator runs: a session is some requests to the Kubernetes API.

Each request that changes something is sent once; in between the session looks at its pods once a second, which is the
resolution of Kubernetes' own timestamps.
"""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any
from urllib.parse import quote, urlencode

import orjson

from harness.model.errors import PipeswarmError, TargetUnreachableError
from harness.model.http import LONG_ANSWER, Exchange, HttpAnswer, HttpRequest
from harness.model.phases import COMPUTING, FAILED, QUEUED, SUCCEEDED
from harness.model.scenario import Scenario
from harness.model.units import counted, format_duration
from harness.targets.answers import JSON, MOST_TEXT, demand_access, document, error_text
from harness.targets.completed_run import CompletedRun, Part
from harness.targets.dask_tenants import objects
from harness.targets.dask_tenants.phases import CLOSE, COMPUTE, FOR_ALL, FOR_FIRST, FOR_SCHEDULER, WAITS
from harness.targets.scenarios import Input
from harness.targets.target import RejectedError, SetUp

Pods = Sequence[Mapping[str, Any]]
_ROOT = f"/apis/{objects.GROUP_VERSION}"
_LOOK_S = 1.0
_INVALID, _NOT_FOUND, _TOO_MANY = 422, 404, 429
_BACKGROUND = "propagationPolicy=Background"
_CLOSING_S = 120.0  # a pod has 30 s to end
_NEEDED = {"daskclusters", "daskautoscalers"}
_QUOTA = re.compile(r"exceeded quota: ([^,]+)")
_UNCOUNTED = re.compile(r"status unknown for quota: ([^,]+)")  # the quota, or the type it counts, is new
_ACCESS_HINT = "give a bearer token with --token-file, or --host kubeconfig"
_OPERATOR_HINT = (
    "install it: helm install --repo https://helm.dask.org --create-namespace -n dask-operator --generate-name "
    "dask-kubernetes-operator; for the cluster of your kubeconfig give --host kubeconfig"
)


class _FailedError(Exception):
    """The session can't go on."""


class KubeTenants:
    """Sessions of tenants on one Kubernetes cluster, each in the namespace that its tenant is called.

    Args:
        recipe: of their Dask clusters.
        namespace: of scenarios without a tenant.
        observed: the only namespace that the user wants observed; "" for all.
        inputs: of a scenario.
        time_limit_s: of one session, before it is closed.
        clock: monotonic seconds.
        pause: lets others run for a number of seconds.
    """

    pod_label = objects.CLUSTER

    def __init__(
        self,
        recipe: objects.Recipe,
        namespace: str,
        observed: str,
        inputs: tuple[Input, ...],
        time_limit_s: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._recipe = recipe
        self._namespace = namespace
        self._observed = observed
        self._inputs = inputs
        self._time_limit_s = time_limit_s
        self._clock = clock
        self._pause = pause

    def set_up(self, exchange: Exchange) -> SetUp:
        """Check that the operator's types are there; see `Target.set_up`."""
        answer = exchange(HttpRequest("GET", _ROOT))
        demand_access(answer, f"GET {_ROOT}", error_text, lambda _: _ACCESS_HINT)
        found = {str(resource.get("name")) for resource in (document(answer) or {}).get("resources") or ()}
        if answer.status != 200 or not found >= _NEEDED:
            raise TargetUnreachableError(
                f"the Dask Kubernetes operator is not there: GET {_ROOT} answered {answer.status} {error_text(answer)}",
                _OPERATOR_HINT,
            )
        # The pods are in the tenants' namespaces: all are observed, unless the user names one.
        return SetUp({"own_namespace": self._namespace, "namespace": self._observed}, self._inputs)

    def submit(self, scenario: Scenario, exchange: Exchange) -> CompletedRun:
        """One session; see `Target.submit`."""
        values = {each.name: each.default for each in self._inputs} | dict(scenario.values)
        session = _Session(
            exchange, self._recipe, scenario.tenant or self._namespace, objects.cluster_name(scenario.run_name),
            time_limit_s=self._time_limit_s, clock=self._clock, pause=self._pause,
        )  # fmt: skip
        return session.play(_checked(values))


def _checked(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The values of a session, with the bounds of one on this machine.

    Raises:
        RejectedError: a value is out of its bounds.
    """
    if values["width"] < 1 or values["tasks"] < 1:
        raise RejectedError(_INVALID, "width and tasks are whole numbers from 1 on")
    if not (values["task_s"] >= 0 and 0 <= values["variation"] <= 1):
        raise RejectedError(_INVALID, "task_s is at least 0, variation from 0 to 1")
    return values


class _Session:
    """One tenant's session with a Dask cluster of its own, called `name`."""

    def __init__(
        self,
        exchange: Exchange,
        recipe: objects.Recipe,
        namespace: str,
        name: str,
        *,
        time_limit_s: float,
        clock: Callable[[], float],
        pause: Callable[[float], None],
    ) -> None:
        self._exchange = exchange
        self._recipe = recipe
        self._namespace = namespace
        self._name = name
        self._time_limit_s = time_limit_s
        self._deadline = clock() + time_limit_s
        self._clock = clock
        self._pause = pause
        self._entered: list[tuple[str, float]] = []  # phases
        self._remarks: list[str] = []

    def play(self, values: Mapping[str, Any]) -> CompletedRun:
        """Start a cluster, scale it, compute, and close it.

        Raises:
            RejectedError: the cluster may not be created.
            TargetUnreachableError: there was no answer; the cluster is deleted, as far as that can be asked for.
        """
        self._enter(FOR_SCHEDULER)
        made = self._create("daskclusters", objects.dask_cluster(self._recipe, self._namespace, self._name))
        try:
            error = self._attempt(made, values)
            self._enter(CLOSE)
            self._close()
        except BaseException:
            with suppress(PipeswarmError):
                self._delete()
            raise
        said = "; ".join(filter(None, (error, *self._remarks)))
        state = FAILED if error else SUCCEEDED
        return CompletedRun(self._name, state, said, "dask_tenants", parts=self._parts(), before=QUEUED)

    def _attempt(self, made: Mapping[str, Any], values: Mapping[str, Any]) -> str:
        """Everything between the creation of the cluster and its deletion; returns why it failed, "" if it didn't."""
        try:
            self._work(made, values)
        except (_FailedError, RejectedError) as failed:
            return failed.args[0] if isinstance(failed, _FailedError) else failed.message
        return ""

    def _work(self, made: Mapping[str, Any], values: Mapping[str, Any]) -> None:
        width, recipe, place = values["width"], self._recipe, self._namespace
        self._until(lambda pods: len(_ready(pods, objects.SCHEDULER)) > 0)
        self._enter(FOR_FIRST)
        self._create("daskautoscalers", objects.dask_autoscaler(recipe, place, self._name, width))
        self._until(lambda pods: len(_ready(pods, objects.WORKER)) > 0)
        self._enter(FOR_ALL)
        before = _ready(self._until(lambda pods: len(_ready(pods, objects.WORKER)) >= width), objects.WORKER)
        self._enter(COMPUTE)
        self._create("pods", objects.stage_pod(recipe, place, made, width, values))
        after = _ready(self._until(_stage_is_over), objects.WORKER)
        if lost := len(before - after):
            self._remarks.append(f"{lost} of {counted(width, 'worker')} died while they computed")

    def _enter(self, phase: str) -> None:
        self._entered.append((phase, self._clock()))

    def _parts(self) -> tuple[Part, ...]:
        """The phases up to now; those of waiting are named so."""
        ends = [*self._entered, ("", self._clock())]
        return tuple(
            Part(phase, QUEUED if phase in WAITS else COMPUTING, ended_s - began_s)
            for (phase, began_s), (_, ended_s) in pairwise(ends)
        )

    # --- requests -------------------------------------------------------------------------------------------------

    def _path(self, plural: str, name: str = "") -> str:
        root = "/api/v1" if plural == "pods" else "/apis/apps/v1" if plural == "deployments" else _ROOT
        path = f"{root}/namespaces/{quote(self._namespace, safe='')}/{plural}"
        return f"{path}/{quote(name, safe='')}" if name else path

    def _create(self, plural: str, manifest: Mapping[str, Any]) -> Mapping[str, Any]:
        """Create an object, once; returns it as the server has it.

        Raises:
            RejectedError: it is refused.
        """
        answer = self._exchange(HttpRequest("POST", self._path(plural), orjson.dumps(manifest), JSON))
        found = document(answer) or {}
        if answer.status // 100 != 2 or not (found.get("metadata") or {}).get("uid"):
            raise RejectedError(answer.status, refusal(answer, str(manifest["kind"]), self._namespace))
        return found

    def _delete(self) -> None:
        """Delete the cluster, and with it all that belongs to it.

        Raises:
            RejectedError: it is refused.
        """
        answer = self._exchange(HttpRequest("DELETE", f"{self._path('daskclusters', self._name)}?{_BACKGROUND}"))
        if answer.status // 100 != 2 and answer.status != _NOT_FOUND:
            raise RejectedError(answer.status, refusal(answer, "DaskCluster", self._namespace))

    def _list(self, plural: str) -> Pods:
        """The objects of this cluster; none where the server is too busy to say, which the next look repairs.

        Raises:
            RejectedError: they may not be listed.
        """
        selection = urlencode({"labelSelector": f"{objects.CLUSTER}={self._name}"})
        answer = self._exchange(HttpRequest("GET", f"{self._path(plural)}?{selection}", most_bytes=LONG_ANSWER))
        if answer.status == _TOO_MANY or answer.status >= 500:
            return ()
        if answer.status != 200:
            raise RejectedError(answer.status, refusal(answer, plural, self._namespace))
        found: Pods = (document(answer) or {}).get("items") or ()
        return found

    # --- waiting --------------------------------------------------------------------------------------------------

    def _until(self, holds: Callable[[Pods], bool]) -> Pods:
        """Look at the pods until something holds for them.

        Raises:
            _FailedError: it can't, or not in time.
        """
        while not holds(pods := self._list("pods")):
            if self._clock() >= self._deadline:
                limit = f"it was not over after {format_duration(self._time_limit_s)} (--answer-timeout)"
                why = "; ".join(dict.fromkeys((*_hindrances(pods), *_refused(self._list("deployments")))))
                raise _FailedError(f"{limit} and was closed: {why or 'its pods were not ready'}")
            self._pause(_LOOK_S)
        return pods

    def _close(self) -> None:
        """Delete the cluster, and wait until its pods are gone."""
        try:
            self._delete()
        except RejectedError as refused:
            self._remarks.append(f"the cluster could not be deleted: {refused.message}")
            return
        until_s = self._clock() + _CLOSING_S
        while left := self._list("pods"):
            if self._clock() >= until_s:
                self._remarks.append(f"{counted(len(left), 'pod')} remained {_CLOSING_S:.0f} s after the deletion")
                return
            self._pause(_LOOK_S)


# --- what pods say ----------------------------------------------------------------------------------------------


def _ready(pods: Pods, component: str) -> frozenset[str]:
    """The names of the pods of a component that are ready."""
    return frozenset(str(pod["metadata"]["name"]) for pod in _of(pods, component) if _condition(pod, "Ready"))


def _of(pods: Pods, component: str) -> Pods:
    return [pod for pod in pods if (pod["metadata"].get("labels") or {}).get(objects.COMPONENT) == component]


def _condition(pod: Mapping[str, Any], kind: str, status: str = "True") -> Mapping[str, Any] | None:
    conditions: Sequence[Mapping[str, Any]] = (pod.get("status") or {}).get("conditions") or ()
    return next(
        (condition for condition in conditions if (condition.get("type"), condition.get("status")) == (kind, status)),
        None,
    )


def _stage_is_over(pods: Pods) -> bool:
    """Whether the stage has succeeded.

    Raises:
        _FailedError: it has failed.
    """
    for pod in _of(pods, objects.STAGE):
        status = pod.get("status") or {}
        if status.get("phase") == "Failed":
            ends = [
                container["state"]["terminated"]
                for container in _containers(pod)
                if "terminated" in (container.get("state") or {})
            ]
            said = [f"exit code {end.get('exitCode')}: {end.get('message') or end.get('reason') or ''}" for end in ends]
            why = "; ".join(filter(None, (status.get("reason"), status.get("message"), *said)))
            raise _FailedError(f"the stage failed: {why[-MOST_TEXT:].strip()}")
        if status.get("phase") == "Succeeded":
            return True
    return False


def _containers(pod: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    found: Sequence[Mapping[str, Any]] = (pod.get("status") or {}).get("containerStatuses") or ()
    return found


def _hindrances(pods: Pods) -> list[str]:
    """Why pods are not ready, in the scheduler's and the kubelets' words."""
    said = []
    for pod in pods:
        unplaced = _condition(pod, "PodScheduled", "False")
        waits = [(container.get("state") or {}).get("waiting") or {} for container in _containers(pod)]
        texts = [str(unplaced.get("message") or unplaced.get("reason"))] if unplaced else []
        texts += [f"{wait.get('reason')}: {wait['message']}" for wait in waits if wait.get("message")]
        component = (pod["metadata"].get("labels") or {}).get(objects.COMPONENT, "pod")
        said += [f"{component}: {text[:MOST_TEXT]}" for text in texts]
    return said


def _refused(deployments: Pods) -> list[str]:
    """Why no pods are created, as by a quota."""
    found = filter(None, (_condition(deployment, "ReplicaFailure") for deployment in deployments))
    return [quota_first(str(each.get("message") or "")) for each in found]


# --- what answers say -------------------------------------------------------------------------------------------


def refusal(answer: HttpAnswer, kind: str, namespace: str) -> str:
    """Why the API server refuses a request about a kind of objects, with what to do."""
    message = error_text(answer)
    if _QUOTA.search(message):
        return f"namespace {namespace}: {quota_first(message)}"
    if young := _UNCOUNTED.search(message):
        return f"namespace {namespace}: the quota {young[1]} has not been counted yet, try again in minutes: {message}"
    if answer.status == _NOT_FOUND and message.startswith("namespaces "):
        return f"{message}: create it with kubectl create namespace, or correct the column tenant"
    if answer.status in {401, 403}:
        return f"{message}: grant the account create, get, list and delete on {kind} in the namespace {namespace}"
    return message


def quota_first(message: str) -> str:
    """A message about an exceeded quota, which is named first."""
    match = _QUOTA.search(message)
    return f"the quota {match[1]} is used up: {message}" if match else message
