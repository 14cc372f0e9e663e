"""The pods of Argo's workflows: what they request, and what happens in them."""

from collections.abc import Callable, Mapping
from zlib import crc32

from harness.simulator.argo.fields import parameters_of
from harness.simulator.argo.nodes import FAILED, Node, Run
from harness.simulator.argo.templates import Spec, name_of
from harness.simulator.cluster import Pod, Shape, Toleration
from harness.simulator.cluster.kubelet import SIGKILLED, Kubelet
from harness.simulator.cluster.shapes import amounts_of
from harness.simulator.engine.draws import Draws
from harness.simulator.engine.events import EventLoop
from harness.simulator.kfp import endings
from harness.simulator.kfp.artifact_store import ArtifactStore, Refusal
from harness.simulator.kfp.steps import Steps
from harness.simulator.kfp.templates import EXEC_IMAGE

ROLE = "argo"
_OOM_AT = 0.6  # share of the computation after which memory peaks
_DEADLINE, _TOO_LONG = "DeadlineExceeded", "Pod was active on the node longer than the specified deadline"


class Pods:
    """Makes the pods, and runs their main containers by the profile's steps.

    Args:
        loop: the event loop.
        steps: the profile's steps, by task name.
        store: takes their outputs.
        kubelet: of the cluster.
        draws: of durations.
        priorities: the values of the PriorityClasses, by name.
    """

    def __init__(
        self,
        loop: EventLoop,
        steps: Steps,
        store: ArtifactStore,
        kubelet: Kubelet,
        draws: Draws,
        priorities: Mapping[str, int],
    ) -> None:
        self._loop = loop
        self._steps = steps
        self._store = store
        self._kubelet = kubelet
        self._draws = draws
        self._priorities = priorities

    def make(self, run: Run, node: Node, changed: Callable[[Pod], None]) -> Pod:
        """The pod of a node; `changed` is called when it runs and when it has ended."""
        template = run.templates[node.template]
        container: Spec = template.get("container") or template.get("script") or {}
        resources: Spec = container.get("resources") or {}
        number = run.id_of(node.name).rpartition("-")[2]
        pod = Pod(
            run.name if node.name == run.name else f"{run.name}-{name_of(node.template)}-{number}",
            run.namespace,
            self._shape(run, template, resources),
            (str(container.get("image") or ""), EXEC_IMAGE),
            role=ROLE,
            task=node.task,
            path=node.name,
        )
        limits = amounts_of(resources.get("limits") or {})
        pod.limit_cpu, pod.limit_memory = limits[0], limits[1]
        pod.labels = {str(k): str(v) for k, v in ((run.spec.get("podMetadata") or {}).get("labels") or {}).items()}
        deadline = _deadline(run, template, self._loop.now)

        def running(started: Pod) -> None:
            changed(started)
            if deadline is not None:
                self._loop.after(deadline, self._too_long, started)
            self._run(started, run)

        pod.on_running, pod.on_over = running, changed
        return pod

    def ending(self, pod: Pod) -> tuple[str, str]:
        """The phase and message of the node of a pod that did not succeed."""
        return (FAILED, _TOO_LONG) if pod.reason == _DEADLINE else endings.ending(pod)

    def _shape(self, run: Run, template: Spec, resources: Spec) -> Shape:
        cpu, memory, gpu = amounts_of({**(resources.get("limits") or {}), **(resources.get("requests") or {})})
        selector = {**(run.spec.get("nodeSelector") or {}), **(template.get("nodeSelector") or {})}
        tolerations = [*(run.spec.get("tolerations") or ()), *(template.get("tolerations") or ())]
        priority = template.get("priorityClassName") or run.spec.get("podPriorityClassName") or ""
        return Shape(
            cpu, memory, gpu,
            tuple((str(key), str(value)) for key, value in selector.items()),
            tuple(
                Toleration(t.get("key", ""), t.get("operator", "Equal"), t.get("value", ""), t.get("effect", ""))
                for t in tolerations
            ),
            self._priorities.get(str(priority), 0),
        )  # fmt: skip

    def _run(self, pod: Pod, run: Run) -> None:
        model, parameters = self._steps.model(pod.task), parameters_of(run.spec)
        # The names of attempts tell them apart.
        random = self._draws.of(run.number, crc32(pod.path.removeprefix(run.name).encode()), 0)
        takes = model.duration.sample(random, parameters)
        cpu = model.cpu.sample(random, parameters) * self._steps.cpu_factor
        output = model.output.sample(random, parameters)
        fails = random.random() < model.failing
        pod.usage_memory = model.memory.sample(random, parameters) * self._steps.memory_factor
        limit = pod.limit_cpu / 1000
        if limit and cpu > limit:
            takes, cpu = takes * cpu / limit, limit
        pod.usage_cpu = cpu
        assert pod.node is not None
        pod.station = pod.node.processor
        if pod.limit_memory and pod.usage_memory > pod.limit_memory:
            pod.usage_memory = float(pod.limit_memory)
            pod.job = pod.station.add(takes * _OOM_AT, cpu, self._steps.logs.end, pod, SIGKILLED, "OOMKilled")
        elif fails:
            pod.job = pod.station.add(takes, cpu, self._steps.logs.end, pod, 1, "Error")
        else:
            pod.job = pod.station.add(takes, cpu, self._store_output, pod, output)

    def _store_output(self, pod: Pod, size: float) -> None:
        pod.station = pod.job = None
        self._store.write(pod, size, self._stored)

    def _stored(self, pod: Pod, _: float, why: Refusal | None) -> None:
        if why is not None:
            pod.wait_error = f"failed to put file: {why.message}"
        self._steps.logs.end(pod)

    def _too_long(self, pod: Pod) -> None:
        if not pod.over and pod.deleting is None:
            self._kubelet.stop_work(pod)
            self._kubelet.finish(pod, SIGKILLED, _DEADLINE, _TOO_LONG)


def _deadline(run: Run, template: Spec, now: float) -> float | None:
    """Seconds that a pod may run; none without a limit."""
    limits = []
    if template.get("activeDeadlineSeconds"):
        limits.append(float(template["activeDeadlineSeconds"]))
    if run.spec.get("activeDeadlineSeconds"):
        limits.append(max(0.0, float(run.spec["activeDeadlineSeconds"]) - (now - (run.started or now))))
    return min(limits, default=None)
