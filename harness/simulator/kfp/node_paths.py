"""Paths of a workflow's nodes: Argo's node names without the workflow's name, and the groups they imply.

The paths are the same in every workflow of a pipeline, so that what follows from them is computed once.
"""

from collections.abc import Sequence
from functools import lru_cache

from harness.simulator.kfp.graph import EXECUTOR, ITERATION, ITERATIONS, JOIN, ON_EXIT, Plan, fnv1a

IN = "(0)."  # between a group and a node in its first attempt
NO_NODE = "-"  # is no path


@lru_cache(2**16)
def node_id(workflow: str, path: str) -> str:
    """Argo's id of a node: stable, and unique within the workflow."""
    return f"{workflow}-{fnv1a(workflow + path)}" if path else workflow


def ends(plans: Sequence[Plan]) -> dict[str, int]:
    """By path of a group: the plan whose end is the group's end."""
    found: dict[str, int] = {}
    for index, plan in enumerate(plans):
        path = f"{IN}{plan.path}"
        if plan.role == JOIN:
            found[path] = index
            if plans[plan.parent].path.endswith(".iteration-driver"):
                found[f"{path}{IN}{ITERATIONS}"] = index
            if path.endswith(f"{IN}{ITERATION}"):
                found[group_of(path)] = index
        elif plan.role == EXECUTOR:
            found[group_of(path)] = index
            if group_of(group_of(path)).endswith(ON_EXIT):
                found[group_of(group_of(path))] = index
    return found


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
