"""The pods of templates, as nodes of the graph: what they request, and how long they may run."""

from collections.abc import Mapping

from harness.model.argo.nodes import EXECUTOR, task_of_node
from harness.simulator.argo.fields import seconds
from harness.simulator.argo.nodes import Node, Run
from harness.simulator.argo.templates import Spec, name_of
from harness.simulator.cluster import Shape
from harness.simulator.cluster.shapes import shape_of, total_of
from harness.simulator.workflows.containers import Container
from harness.simulator.workflows.graph import STEP, Plan, in_order
from harness.simulator.workflows.templates import AGENT, EXEC_IMAGE

Priorities = Mapping[str, int]  # the values of the PriorityClasses, by name


def plan_of(run: Run, node: Node, priorities: Priorities, now: float) -> Plan:
    """The pod of a node that is due."""
    template = run.templates[node.template]
    labels = {**_labels(run.spec.get("podMetadata")), **_labels(template.get("metadata"))}
    mains = containers_of(template)
    cpu, memory, _ = total_of([main.get("resources") or {} for main in mains], "limits")
    images = [
        str(each.get("image") or "") for each in (*mains, *_beside(template), *(template.get("initContainers") or ()))
    ]
    its = Container(
        images[0], _shape(run, template, priorities), cpu, memory, more_images=tuple(filter(None, images[1:])),
        labels=tuple(labels.items()), deadline_s=_deadline_s(run, template, now), serves=bool(template.get("daemon")),
        parts=_parts(template),
    )  # fmt: skip
    path = node.name.removeprefix(run.name)
    task = task_of_node(path, "") if node.task == EXECUTOR else node.task  # in a workflow that KFP's compiler wrote
    return Plan(STEP, task, path, container=its, template=name_of(node.template))


def agent() -> Plan:
    """The pod that makes the requests of a workflow's HTTP and plugin templates."""
    return Plan(STEP, "agent", AGENT, container=Container(EXEC_IMAGE, serves=True), template="agent")


def containers_of(template: Spec) -> list[Spec]:
    """The main containers of a template's pod."""
    if "containerSet" in template:
        return list(template["containerSet"]["containers"])
    return [template.get("container") or template.get("script") or {"image": EXEC_IMAGE}]


def _beside(template: Spec) -> list[Spec]:
    """The sidecars of a template."""
    return list(template.get("sidecars") or ())


def _parts(template: Spec) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The containers of a set by name, each after those that it waits for.

    Raises:
        ConfigError: they wait for each other.
    """
    if "containerSet" not in template:
        return ()
    before = {str(each["name"]): tuple(map(str, each.get("dependencies") or ())) for each in containers_of(template)}
    names = in_order(before, lambda name: before.get(name, ()))
    return tuple((name, before[name]) for name in names if name in before)


def _labels(metadata: Spec | None) -> dict[str, str]:
    return {str(key): str(value) for key, value in ((metadata or {}).get("labels") or {}).items()}


def _shape(run: Run, template: Spec, priorities: Priorities) -> Shape:
    """What the pod requests: its ``podResources``, or else those of its containers."""
    whole = template.get("podResources") or run.spec.get("podResources")
    of_containers = [each.get("resources") or {} for each in (*containers_of(template), *_beside(template))]
    its = {
        "nodeSelector": {**(run.spec.get("nodeSelector") or {}), **(template.get("nodeSelector") or {})},
        "tolerations": [*(run.spec.get("tolerations") or ()), *(template.get("tolerations") or ())],
        "priorityClassName": template.get("priorityClassName") or run.spec.get("podPriorityClassName"),
    }
    return shape_of(its, [whole] if whole else of_containers, priorities)


def _deadline_s(run: Run, template: Spec, now: float) -> int:
    """Seconds that a pod may be on its node; 0 without a limit."""
    own = (template.get("activeDeadlineSeconds"), template.get("timeout"))
    limits = [max(1.0, seconds(each)) for each in own if each and "{{" not in str(each)]
    if run.spec.get("activeDeadlineSeconds"):
        limits.append(max(1.0, float(run.spec["activeDeadlineSeconds"]) - (now - (run.started or now))))
    return round(min(limits, default=0.0))
