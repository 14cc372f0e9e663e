"""How many pods a workflow lets run at once (``parallelism``), and how many could, by its specification."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

_NAME = re.compile(r"[A-Za-z0-9][\w-]{0,200}")
_SEVERAL = 2  # of a list that is known only once the workflow runs
_WORDS = frozenset({"Succeeded", "Failed", "Errored", "Skipped", "Omitted", "Daemoned", "AnySucceeded", "AllFailed"})


def limits_of(manifest: Mapping[str, Any]) -> str:
    """As ``parallelism=2 width=8``, the least limit and the widest part; "" where the workflow limits nothing.

    A limit of a template counts as the workflow's: it holds for the children of that template.
    """
    stored = (manifest.get("status") or {}).get("storedWorkflowTemplateSpec") or {}
    spec = {**stored, **(manifest.get("spec") or {})}
    templates = [
        template for template in spec.get("templates") or stored.get("templates") or () if isinstance(template, Mapping)
    ]
    said = [template.get("parallelism") for template in (spec, *templates)]
    limits = [each for each in said if isinstance(each, int) and each > 0]
    if not limits:
        return ""
    return f"parallelism={min(limits)} width={max(map(_width, templates), default=1)}"


def _width(template: Mapping[str, Any]) -> int:
    with suppress(AttributeError, TypeError, RecursionError):  # not what Argo would take
        if tasks := (template.get("dag") or {}).get("tasks"):
            levels = Counter[int]()
            after = {str(task["name"]): _dependencies(task) for task in tasks if "name" in task}
            for task in tasks:
                levels[_depth(str(task.get("name")), after)] += _count(task)
            return max(levels.values())
        return max((sum(map(_count, _group(step))) for step in template.get("steps") or ()), default=1)
    return 1


def _group(steps: Any) -> Sequence[Mapping[str, Any]]:
    found: Sequence[Mapping[str, Any]] = steps if isinstance(steps, list) else steps["steps"]
    return found


def _count(task: Mapping[str, Any]) -> int:
    items = task.get("withItems")
    if isinstance(items, list):
        return len(items)
    return _SEVERAL if task.get("withParam") or task.get("withSequence") else 1


def _dependencies(task: Mapping[str, Any]) -> set[str]:
    return {*map(str, task.get("dependencies") or ()), *_names(str(task.get("depends") or ""))}


def _names(depends: str) -> Iterator[str]:
    return (each for each in _NAME.findall(depends) if each not in _WORDS)


def _depth(name: str, after: Mapping[str, set[str]]) -> int:
    """The longest way to a task; raises `RecursionError` where tasks wait for each other."""
    return 1 + max((_depth(each, after) for each in after.get(name, ()) if each in after), default=0)
