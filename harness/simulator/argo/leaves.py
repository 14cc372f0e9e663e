"""What has no steps of its own: pods, suspensions, and the requests of the agent."""

from collections.abc import Mapping

from harness.simulator.argo.fields import outputs_of
from harness.simulator.argo.limits import suspended_s
from harness.simulator.argo.nodes import CONTAINER, FAILED, HTTP, PENDING, PLUGIN, POD, RUNNING, SUCCEEDED, Node
from harness.simulator.argo.plans import agent, containers_of, plan_of
from harness.simulator.argo.templates import Spec
from harness.simulator.argo.work import Call, Work
from harness.simulator.workflows.retry import ending
from harness.simulator.workflows.workflow import Step

_TOO_LATE = "Step exceeded its deadline"
_RETURNS = ("script", "container", "containerSet", "http", "plugin", "data", "resource")  # a result


def advance_leaf(work: Work, node: Node, template: Spec, scope: Mapping[str, str]) -> None:
    """Begin a node, or see how far it has come; the workflow's deadline ends what has not begun to run."""
    late = work.reached(work.run.deadline) if work.run.deadline is not None else False
    if late and (node.pod is None or node.pod.started is None) and not node.over:
        work.served += [node.pod] if node.pod is not None else []
        work.end(node, FAILED, _TOO_LATE)
    elif node.type == POD:
        _advance_pod(work, node, template)
    elif node.type in {HTTP, PLUGIN}:
        _advance_request(work, node)
    elif work.reached(node.started + (suspended_s(template, scope) or work.guesses.takes_s(work.run, node))):
        work.end(node, SUCCEEDED)
    if node.phase == SUCCEEDED or node.daemoned:
        _write(work, node, template, scope)


def _advance_pod(work: Work, node: Node, template: Spec) -> None:
    pod = node.pod
    if node.step is None:
        plan, node.step = plan_of(work.run, node, work.priorities, work.now), Step(work.now)
        work.due.append(work.run.ask(node.step, plan))
        if "containerSet" in template:
            _begin_containers(work, node, template)
    elif pod is not None and pod.over:
        work.assessed += 1
        work.end(node, *((SUCCEEDED, "") if pod.phase == "Succeeded" else ending(pod)))
    elif pod is not None and pod.started is not None:
        node.phase = RUNNING
        node.daemoned = bool(template.get("daemon"))
    if "containerSet" in template:
        for part in [part for part in map(work.run.nodes.__getitem__, node.children) if not part.over]:
            part.phase = node.phase  # its containers run and end with the pod
            if node.over:
                work.end(part, node.phase, node.message)


def _begin_containers(work: Work, node: Node, template: Spec) -> None:
    """The nodes of a set's containers; those that wait for others are their children."""
    for each in containers_of(template):
        call = Call(f"{node.name}.{each['name']}", node.template, "", node.name, {}, after=node.after)
        work.link([node], work.new(call, CONTAINER, PENDING))


def _advance_request(work: Work, node: Node) -> None:
    """A request begins when the workflow's agent runs, which the first one starts."""
    run = work.run
    if run.agent is None:
        run.agent = Step(work.now)
        work.due.append(run.ask(run.agent, agent()))
    pod = run.agent.pod
    if pod is not None and pod.over:
        work.end(node, FAILED, "agent pod deleted")
    elif pod is not None and pod.started is not None:
        begun = max(node.started, pod.started)
        if work.reached(begun + work.guesses.takes_s(run, node)):
            work.end(node, SUCCEEDED)
    else:
        node.phase = PENDING if node.phase == PENDING else RUNNING


def _write(work: Work, node: Node, template: Spec, scope: Mapping[str, str]) -> None:
    """The outputs of a node that has ended well, or serves."""

    def written(output: str) -> str:
        return work.guesses.output(work.run, node, output)

    if any(kind in template for kind in _RETURNS) and node.result is None:
        node.result = written("result")
    node.outputs = dict(outputs_of(template, scope, written))
    for parameter in (template.get("outputs") or {}).get("parameters") or ():
        if parameter.get("globalName"):
            work.run.known[f"workflow.outputs.parameters.{parameter['globalName']}"] = node.outputs[
                str(parameter["name"])
            ]
