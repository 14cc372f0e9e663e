"""How many nodes a workflow has, and how many Kubernetes events the controller records: two of each node, and its own.

A pod has two nodes where the installation's defaults retry it: the pod and a Retry node around it. A task with an
executor, a nested pipeline and the workflow itself are DAGs with a Retry node each. Skipped nodes have no events.
After ten similar events of a workflow the next ones are combined into one, which is patched: a request each, too.
"""

from harness.simulator.kfp.graph import DAG_DRIVER, EXECUTOR, JOIN, Graph, Plan

_DAG = 2  # nodes: the DAG and its Retry node


def nodes(graph: Graph) -> int:
    """The nodes of a workflow whose steps all run, with a Retry node around each."""
    count = of_start(graph) - 1
    for plan in graph.plans:
        if plan.role != JOIN:
            count += 2 + (_DAG if plan.role == EXECUTOR else _DAG * _dags(plan) if plan.role == DAG_DRIVER else 0)
    return count


def of_start(graph: Graph) -> int:
    """The events at a workflow's start."""
    return 1 + (_DAG if graph.plans[0].role == DAG_DRIVER else 0)


def of_end(graph: Graph) -> int:
    """The events at a workflow's end."""
    return of_start(graph)


def of_pod_start(plan: Plan, retries: int) -> int:
    """The events when a pod is created: its Retry node, and the DAG around an executor."""
    return (1 if retries else 0) + (_DAG if plan.role == EXECUTOR else 0)


def of_pod_end(plan: Plan, retries: int) -> int:
    """The events when a pod has ended: its start and end, and the DAG that it ends or, as a driver, that it begins."""
    events = 2 + (1 if retries else 0)
    if plan.role == EXECUTOR:
        return events + _DAG
    return events + (2 * _DAG * _dags(plan) if plan.role == DAG_DRIVER else 0)


def of_skip(plan: Plan) -> int:
    """The events of a step whose executor is skipped: those of the DAG around it."""
    return 2 * _DAG if plan.role == EXECUTOR else 0


def _dags(plan: Plan) -> int:
    """The DAGs of a nested pipeline; an iteration of a loop is one inside another."""
    return 2 if plan.path.endswith((")", "iteration-item-driver")) else 1
