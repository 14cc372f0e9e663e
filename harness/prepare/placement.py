"""Node placement in the Kubernetes platform spec: selector, tolerations, affinity.

The fields are those of kfp-kubernetes' KubernetesExecutorConfig. Kubernetes joins a pod's required affinity terms by
*or*, so a further requirement goes into each of them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from harness.model.cluster import Requirement
from harness.model.errors import ConfigError
from harness.prepare.pools import SELECTOR, placing
from harness.prepare.settings import Placement, Preference

Document = dict[str, Any]
_JSON = {"nodeSelector": SELECTOR, "nodeAffinity": "nodeAffinityJson"}


def place(given: Mapping[str, Any], placement: Placement, task: str) -> Document:
    """An executor's platform settings with the placement; `task` names the step in errors.

    Raises:
        ConfigError: a run's parameter holds the placement, or no node can fit both selector and affinity.
    """
    changed = dict(given)
    if placement.parameter:
        if placement.parameter not in placing({task: {"nodeSelector": changed.get("nodeSelector", {})}}):
            _refuse_parameters("nodeSelector", [changed.get("nodeSelector", {})], task)
            changed["nodeSelector"] = {SELECTOR: {"componentInputParameter": placement.parameter}}
    elif placement.selector:
        _refuse_parameters("nodeSelector", [changed.get("nodeSelector", {})], task)
        labels = changed.get("nodeSelector", {}).get("labels", {})
        changed["nodeSelector"] = {"labels": labels | dict(placement.selector)}
    if placement.tolerations:
        present = list(changed.get("tolerations", ()))
        wanted = [toleration.document for toleration in placement.tolerations]
        changed["tolerations"] = present + [each for each in wanted if each not in present]
    if placement.affinity:
        changed["nodeAffinity"] = _affinity(changed.get("nodeAffinity", ()), placement.affinity, task)
    if placement != Placement():
        _refuse_contradictions(changed, task)
    return changed


def _affinity(given: Sequence[Mapping[str, Any]], wanted: Sequence[Preference], task: str) -> list[Document]:
    _refuse_parameters("nodeAffinity", given, task)
    preferred = [dict(term) for term in given if "weight" in term]
    required = [dict(term) for term in given if "weight" not in term]
    for preference in wanted:
        if preference.weight:
            term = {"matchExpressions": [preference.expression], "weight": preference.weight}
            preferred += [term] if term not in preferred else []
        else:
            required = [_and(term, preference.expression) for term in required or [{}]]
    return required + preferred


def _and(term: Mapping[str, Any], expression: Document) -> Document:
    """The term with a further expression, once."""
    present = list(term.get("matchExpressions", ()))
    return {**term, "matchExpressions": present if expression in present else [*present, expression]}


def _refuse_parameters(field: str, terms: Sequence[Mapping[str, Any]], task: str) -> None:
    if any(_JSON[field] in term for term in terms):
        raise ConfigError(
            f"step {task}: its {field} comes from {_JSON[field]}, which overrides any other",
            "set the pool through the run's parameter, or leave the step out with --task",
        )


def _refuse_contradictions(platform: Mapping[str, Any], task: str) -> None:
    """Refuse a selector that every required term excludes: such a pod stays Pending forever."""
    labels: Mapping[str, str] = platform.get("nodeSelector", {}).get("labels", {})
    required = [term.get("matchExpressions", ()) for term in platform.get("nodeAffinity", ()) if "weight" not in term]
    excluded = [_excluded_by(term, labels) for term in required]
    if required and all(excluded):
        raise ConfigError(f"step {task}: no node fits both {' and '.join(excluded[0])}", "change one of the two")


def _excluded_by(term: Sequence[Mapping[str, Any]], labels: Mapping[str, str]) -> tuple[str, ...]:
    """Two parts of the placement that exclude each other, in words; none if the term leaves nodes."""
    wanted = [("the selector", key, [value]) for key, value in labels.items()]
    wanted += [("the required affinity", each["key"], _values(each)) for each in term if each["operator"] == "In"]
    for each in term:
        for origin, key, values in wanted:
            if each["key"] == key and not any(_requirement(each).met_by({key: value}) for value in values):
                shown = f"{key} {each['operator']} {','.join(_values(each))}".rstrip()
                return f"{origin} {key}={','.join(values)}", f"the required affinity {shown}"
    return ()


def _values(expression: Mapping[str, Any]) -> list[str]:
    return [str(value) for value in expression.get("values", ())]


def _requirement(expression: Mapping[str, Any]) -> Requirement:
    return Requirement(expression["key"], expression["operator"], tuple(_values(expression)))
