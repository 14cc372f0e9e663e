"""Paths of a workflow's nodes, the groups they imply, and how many nodes and events there are.

A path is Argo's name of the node without that of the workflow. The paths are the same in every workflow of a pipeline,
so that what follows from them is computed once.

The controller records two Kubernetes events of each node, and its own. A pod has two nodes where the installation's
defaults retry it: the pod and a Retry node around it. A task with an executor, a nested pipeline and the workflow
itself are DAGs with a Retry node each. Skipped nodes have no events. After ten similar events of a workflow the next
ones are combined into one, which is patched: a request each, too.
"""

from functools import lru_cache

from harness.simulator.workflows.graph import DAG_DRIVER, EXECUTOR, ITERATIONS, Graph, Plan

IN = "(0)."  # between a group and a node in its first attempt
NO_NODE = "-"  # is no path


@lru_cache(2**14)
def parting(before: str, after: str) -> tuple[str, str]:
    """The outermost groups, or nodes, that contain only one of the two."""
    one, other = before.split(IN), after.split(IN)
    common = next((k for k, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    if common is None:
        return NO_NODE, NO_NODE
    first, then = (IN.join(each[: common + 1]) for each in (one, other))
    return first, task_group(then) or then


@lru_cache(2**14)
def group_of(path: str) -> str:
    """The group around a node."""
    return path.rpartition(IN)[0]


@lru_cache(2**14)
def task_group(path: str) -> str:
    """The group of all iterations, of one iteration's wrapper; "" for other nodes."""
    outside, inside, name = path.rpartition(IN)
    item = name.startswith(f"{ITERATIONS}(") and not name.endswith("(0)")
    return f"{outside}{inside}{ITERATIONS}" if item else ""


_DAG = 2  # nodes: the DAG and its Retry node


def of_whole(graph: Graph) -> int:
    """The events at a workflow's start, and as many at its end."""
    return 1 + (_DAG if graph.plans[0].role == DAG_DRIVER else 0)


def of_pod_start(plan: Plan, retries: int) -> int:
    """The events when a pod is created: its Retry node, and the DAG around an executor."""
    return (1 if retries else 0) + (_DAG if plan.role == EXECUTOR else 0)


def of_pod_end(plan: Plan, retries: int) -> int:
    """The events when a pod has ended: its start and end, and the DAG that it ends or, as a driver, that it begins."""
    events = 2 + (1 if retries else 0)
    if plan.role == EXECUTOR:
        return events + _DAG
    return events + (2 * _begun_by(plan) if plan.role == DAG_DRIVER else 0)


def of_skip(plan: Plan) -> int:
    """The events of a step whose executor is skipped: those of the DAG around it."""
    return 2 * _DAG if plan.role == EXECUTOR else 0


def _begun_by(plan: Plan) -> int:
    """The nodes that begin with a nested pipeline: its DAG; of an iteration two DAGs; of a loop a group of all, too."""
    if plan.path.endswith((")", "iteration-item-driver")):
        return 2 * _DAG
    return _DAG + (1 if plan.path.endswith(".iteration-driver") else 0)
