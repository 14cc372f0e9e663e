"""Placement that a run's parameters hold: the ``…Json`` fields of the Kubernetes platform spec.

As in KFP's driver (backend/src/v2/driver/k8s.go): a parameter is one of the pipeline that the task is in, and one that
is optional and not given sets nothing.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from harness.model.errors import ConfigError
from harness.simulator.kfp.conditions import Source
from harness.simulator.kfp.parameters import value_of

Spec = Mapping[str, Any]
_SELECTOR, _TOLERATION, _AFFINITY = "nodeSelectorJson", "tolerationJson", "nodeAffinityJson"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def has_parameters(platform: Spec) -> bool:
    """Whether the settings of an executor depend on parameters."""
    fields = (platform.get("nodeSelector", {}), *platform.get("tolerations", ()), *platform.get("nodeAffinity", ()))
    return any(name in field for field in fields for name in (_SELECTOR, _TOLERATION, _AFFINITY))


def placed(platform: Spec, scope: Mapping[str, Source], given: Mapping[str, object]) -> Spec:
    """The settings of an executor with the parameters' values.

    Args:
        platform: the settings.
        scope: the sources of the parameters of the task's pipeline.
        given: the parameters of the run.

    Raises:
        ConfigError: a value has the wrong form, or is a step's output, which is not known before the run.
    """
    if not has_parameters(platform):
        return platform

    def read(field: str, holder: Spec) -> Any:
        try:
            return value_of(holder[field], scope, given)
        except LookupError as error:
            raise ConfigError(f"{field}: the simulated platform does not know its value before the run") from error

    tolerations = [
        inner
        for each in platform.get("tolerations", ())
        for inner in (_tolerations(read(_TOLERATION, each)) if _TOLERATION in each else (each,))
    ]
    affinity = [
        term
        for each in platform.get("nodeAffinity", ())
        for term in (_terms(read(_AFFINITY, each)) if _AFFINITY in each else (each,))
    ]
    selector = platform.get("nodeSelector", {})
    if _SELECTOR in selector:
        selector = {"labels": _labels(read(_SELECTOR, selector))}
    return {**platform, "nodeSelector": selector, "tolerations": tolerations, "nodeAffinity": affinity}


def _labels(value: Any) -> Spec:
    if not isinstance(value or {}, dict) or not all(isinstance(each, str) for each in (value or {}).values()):
        raise ConfigError(f"{_SELECTOR}: {value} does not map labels to texts", 'for example {"agentpool": "spot"}')
    return value or {}


def _tolerations(value: Any) -> list[Spec]:
    """Of one toleration, or of a list."""
    found = [value] if isinstance(value, dict) else value or []
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise ConfigError(
            f"{_TOLERATION}: {value} is no toleration", 'for example {"key": "sku", "operator": "Exists"}'
        )
    return [each for each in found if each]


def _terms(value: Any) -> Iterator[Spec]:
    """The terms of a pod's node affinity in the form of the platform spec; those with a weight are preferred."""
    try:
        yield from ((value or {}).get(_REQUIRED) or {}).get("nodeSelectorTerms") or ()
        for each in (value or {}).get(_PREFERRED) or ():
            yield {"weight": each["weight"], **each["preference"]}
    except (AttributeError, KeyError, TypeError) as error:
        raise ConfigError(f"{_AFFINITY}: {value} is no node affinity", "write it as in the spec of a pod") from error
