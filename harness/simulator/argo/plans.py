"""The pods of templates, as nodes of the graph: what they request, and how long they may run."""

from collections.abc import Mapping

from harness.simulator.argo.nodes import Node, Run
from harness.simulator.argo.templates import Spec, name_of
from harness.simulator.cluster import Shape, Toleration
from harness.simulator.cluster.shapes import amounts_of
from harness.simulator.kfp.containers import Container
from harness.simulator.kfp.graph import STEP, Plan

Priorities = Mapping[str, int]  # the values of the PriorityClasses, by name


def plan_of(run: Run, node: Node, priorities: Priorities, now: float) -> Plan:
    """The pod of a node that is due."""
    template = run.templates[node.template]
    container: Spec = template.get("container") or template.get("script") or {}
    resources: Spec = container.get("resources") or {}
    cpu, memory, _ = amounts_of(resources.get("limits") or {})
    labels = {**_labels(run.spec.get("podMetadata")), **_labels(template.get("metadata"))}
    its = Container(
        str(container.get("image") or ""), _shape(run, template, resources, priorities), cpu, memory,
        labels=tuple(labels.items()), deadline_s=_deadline_s(run, template, now),
    )  # fmt: skip
    path = node.name.removeprefix(run.name)
    return Plan(STEP, node.task, path, container=its, template=name_of(node.template))


def _labels(metadata: Spec | None) -> dict[str, str]:
    return {str(key): str(value) for key, value in ((metadata or {}).get("labels") or {}).items()}


def _shape(run: Run, template: Spec, resources: Spec, priorities: Priorities) -> Shape:
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
        priorities.get(str(priority), 0),
    )  # fmt: skip


def _deadline_s(run: Run, template: Spec, now: float) -> int:
    """Seconds that a pod may be on its node; 0 without a limit."""
    limits = []
    if template.get("activeDeadlineSeconds"):
        limits.append(float(template["activeDeadlineSeconds"]))
    if run.spec.get("activeDeadlineSeconds"):
        limits.append(max(1.0, float(run.spec["activeDeadlineSeconds"]) - (now - (run.started or now))))
    return round(min(limits, default=0.0))
