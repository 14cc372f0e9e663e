"""The nodes of a KFP run's Argo workflow, from the states of its pods: names, links and shapes as recorded.

A run is a graph of tasks without loops, conditions or exit handlers. Each task is a driver's pod, and then the
executor's; one more driver comes before all.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from harness.model.argo_nodes import node_id
from tests.support.real_parts.kubelet_reports import stamp

SUCCEEDED, FAILED, PENDING, RUNNING = "Succeeded", "Failed", "Pending", "Running"
DAG_DRIVER, DRIVER, EXECUTOR = "system-dag-driver", "system-container-driver", "system-container-impl"
_ENTRYPOINT, _ROOT, _TASK = "entrypoint", "root", "system-container-executor"


@dataclass(frozen=True)
class Task:
    """A task of the pipeline: its name, the tasks it waits for, and what its container requests."""

    name: str
    after: tuple[str, ...] = ()
    image: str = "python:3.11-slim"
    cpu: str = "0"
    memory: str = "0"


@dataclass(frozen=True)
class PodState:
    """A pod of the run, or one that the API server refused to create; times in Unix seconds, 0 while unknown."""

    phase: str = PENDING
    started_s: float = 0.0
    finished_s: float = 0.0
    message: str = ""
    exit_code: int = 0
    host: str = ""

    @property
    def over(self) -> bool:
        """It has ended, one way or the other."""
        return self.phase in (SUCCEEDED, FAILED)

    @property
    def refused(self) -> bool:
        """The API server refused to create it."""
        return bool(self.message) and not self.over


@dataclass(frozen=True)
class PodNode:
    """A node of the workflow that is a pod."""

    name: str
    template: str
    task: Task | None


@dataclass(frozen=True)
class RunNodes:
    """The nodes of one run.

    Args:
        workflow: the workflow's name.
        tasks: of the pipeline, each after those that it waits for.
    """

    workflow: str
    tasks: tuple[Task, ...]

    def pod_nodes(self) -> Iterator[PodNode]:
        """All nodes that are pods, in the order of the pipeline."""
        yield PodNode(f"{self._inside}.root-driver(0)", DAG_DRIVER, None)
        for task in self.tasks:
            yield PodNode(self._driver(task), DRIVER, task)
            yield PodNode(self._executor(task), EXECUTOR, task)

    def due(self, pods: Mapping[str, PodState]) -> list[PodNode]:
        """The pods that may exist now: what they wait for has succeeded, and nothing has failed."""
        if any(pod.phase == FAILED for pod in pods.values()):
            return [each for each in self.pod_nodes() if each.name in pods]
        done = {name for name, pod in pods.items() if pod.phase == SUCCEEDED}
        return [each for each in self.pod_nodes() if self._needs(each) <= done]

    def phase(self, pods: Mapping[str, PodState]) -> str:
        """Running, Succeeded or Failed. What runs beside a failed step ends first."""
        if any(pod.phase == FAILED for pod in pods.values()):
            over = all(pod.over for pod in pods.values())
            return FAILED if over else RUNNING
        done = {name for name, pod in pods.items() if pod.phase == SUCCEEDED}
        return SUCCEEDED if all(each.name in done for each in self.pod_nodes()) else RUNNING

    def status(self, pods: Mapping[str, PodState], created_s: float, now_s: float) -> dict[str, Any]:
        """The workflow's status; it ends when that is noticed."""
        phase = self.phase(pods)
        ended_s = now_s if phase != RUNNING else 0.0
        conditions = [{"status": "False", "type": "PodRunning"}]
        if ended_s:
            conditions.append({"status": "True", "type": "Completed"})
        done, known = sum(pod.phase == SUCCEEDED for pod in pods.values()), len(pods)
        return {
            "phase": phase, "startedAt": stamp(created_s), "finishedAt": stamp(ended_s) if ended_s else None,
            "progress": f"{done}/{known}", "conditions": conditions,
            "nodes": {node["id"]: node for node in self._nodes(pods)},
        }  # fmt: skip

    # --- names ------------------------------------------------------------------------------------------------------

    @property
    def _inside(self) -> str:
        return f"{self.workflow}(0)"

    @property
    def _root(self) -> str:
        return f"{self._inside}.root(0)"

    def _driver(self, task: Task) -> str:
        return f"{self._root}.{task.name}-driver(0)"

    def _executor(self, task: Task) -> str:
        return f"{self._root}.{task.name}(0).executor(0)"

    def _needs(self, node: PodNode) -> set[str]:
        if node.task is None:
            return set()
        if node.template == EXECUTOR:
            return {self._driver(node.task)}
        before = {self._executor(task) for task in self.tasks if task.name in node.task.after}
        return before or {f"{self._inside}.root-driver(0)"}

    # --- nodes ------------------------------------------------------------------------------------------------------

    def _nodes(self, pods: Mapping[str, PodState]) -> Iterator[dict[str, Any]]:
        """Every node that has begun: a pod, the attempt around it, and the groups they are in."""
        inside = self._within(pods, self._inside)
        yield self._group(self.workflow, "Retry", _ENTRYPOINT, inside, [self._inside], "")
        yield self._group(self._inside, "DAG", _ENTRYPOINT, inside, [f"{self._inside}.root-driver"], "")
        yield from self._pod(f"{self._inside}.root-driver", DAG_DRIVER, pods, self._inside, f"{self._inside}.root")
        of_root = self._within(pods, self._root)
        if not of_root:
            return
        first = [f"{self._root}.{task.name}-driver" for task in self.tasks if not task.after]
        yield self._group(f"{self._inside}.root", "Retry", _ROOT, of_root, [self._root], self._inside)
        yield self._group(self._root, "DAG", _ROOT, of_root, first, self._inside)
        for task in self.tasks:
            yield from self._task(task, pods)

    def _task(self, task: Task, pods: Mapping[str, PodState]) -> Iterator[dict[str, Any]]:
        name = f"{self._root}.{task.name}"
        yield from self._pod(f"{name}-driver", DRIVER, pods, self._root, name)
        inside = self._within(pods, f"{name}(0)")
        if not inside:
            return
        following = [f"{self._root}.{each.name}-driver" for each in self.tasks if task.name in each.after]
        children = [f"{name}(0).executor", *(each for each in following if f"{each}(0)" in pods)]
        yield self._group(name, "Retry", _TASK, inside, [f"{name}(0)"], self._root)
        yield self._group(f"{name}(0)", "DAG", _TASK, inside, children, self._root)
        yield from self._pod(f"{name}(0).executor", EXECUTOR, pods, f"{name}(0)", "")

    def _within(self, pods: Mapping[str, PodState], group: str) -> list[PodState]:
        """The pods inside a group; one that runs stands for those that are still to come."""
        names = [each.name for each in self.pod_nodes() if each.name.startswith(f"{group}.")]
        found = [pods[name] for name in names if name in pods]
        more = 0 < len(found) < len(names) and not any(pod.phase == FAILED for pod in found)
        return [*found, PodState(RUNNING)] if more else found

    def _pod(
        self, name: str, template: str, pods: Mapping[str, PodState], boundary: str, following: str
    ) -> Iterator[dict[str, Any]]:
        pod = pods.get(f"{name}(0)")
        if pod is None:
            return
        outputs = {"outputs": {"exitCode": str(pod.exit_code)}} if pod.over else {}
        said = {"message": pod.message} if pod.message else {}
        after = {"children": [self._id(following)]} if following and pod.phase == SUCCEEDED else {}
        host = {"hostNodeName": pod.host} if pod.host else {}
        attempt = self._group(name, "Retry", template, [pod], [f"{name}(0)"], boundary)
        yield attempt | outputs | (said if pod.over else {})
        own = self._node(f"{name}(0)", "Pod", template, pod.phase, pod.started_s, pod.finished_s, boundary)
        yield own | outputs | said | after | host | {"nodeFlag": {"retried": True}}

    def _group(
        self, name: str, kind: str, template: str, inside: list[PodState], children: list[str], boundary: str
    ) -> dict[str, Any]:
        over = all(pod.over for pod in inside)
        failed = any(pod.phase == FAILED for pod in inside)
        phase = (FAILED if failed else SUCCEEDED) if over and inside else RUNNING
        started_s = min((pod.started_s for pod in inside if pod.started_s), default=0.0)
        ended_s = max((pod.finished_s for pod in inside), default=0.0) if phase != RUNNING else 0.0
        node = self._node(name, kind, template, phase, started_s, ended_s, boundary)
        retried = {"nodeFlag": {"retried": True}} if kind == "DAG" else {}
        return node | retried | {"children": [self._id(child) for child in children]}

    def _node(
        self, name: str, kind: str, template: str, phase: str, started_s: float, finished_s: float, boundary: str
    ) -> dict[str, Any]:
        return {
            "id": self._id(name), "name": name, "displayName": name.rpartition(".")[2], "type": kind,
            "templateName": template, "templateScope": f"local/{self.workflow}", "phase": phase,
            "startedAt": stamp(started_s), "finishedAt": stamp(finished_s) if finished_s else None,
            "progress": "1/1" if phase == SUCCEEDED else "0/1",
        } | ({"boundaryID": self._id(boundary)} if boundary else {})  # fmt: skip

    def _id(self, name: str) -> str:
        return node_id(name, self.workflow)
