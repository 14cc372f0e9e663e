"""How many workflows Argo's controller may run at once, in all and in each namespace: from its ConfigMap.

The settings are keys of the ConfigMap, or of the YAML under its key ``config``; a namespace's label overrides
``namespaceParallelism``. Source: https://argo-workflows.readthedocs.io/en/latest/parallelism/ and
https://argo-workflows.readthedocs.io/en/latest/workflow-controller-configmap/
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from harness.collectors.journal import Journal
from harness.collectors.kubernetes.kube_api import KubeApi
from harness.collectors.source_health import UnreachableError
from harness.model.errors import ConfigError
from harness.model.phases import CONTROLLER_SETTINGS, LIMITS, NAMESPACE_PARALLELISM, PARALLELISM, PLATFORM
from harness.model.records import Event
from harness.reading import parse_yaml

OF_NAMESPACE = "workflows.argoproj.io/parallelism-limit"


def record_limits(api: KubeApi, journal: Journal, platform: Sequence[str], own: Sequence[str]) -> None:
    """Record the limits in the first namespace of `platform` whose ConfigMap may be read; `own` are those of the runs.

    Nothing is recorded where none may be read, or none is set.
    """
    for namespace in platform:
        with suppress(UnreachableError):
            limits = limits_of(api.get(f"/api/v1/namespaces/{namespace}/configmaps/{CONTROLLER_SETTINGS}"))
            if len(own) == 1:
                with suppress(UnreachableError):
                    limits |= _limit_of(api.get(f"/api/v1/namespaces/{own[0]}"))
            if text := " ".join(f"{name}={limit}" for name, limit in limits.items()):
                at = journal.now()
                journal.write(Event(at, PLATFORM, CONTROLLER_SETTINGS, LIMITS, text, "kubernetes", namespace=namespace))
            return


def limits_of(config_map: Mapping[str, Any]) -> dict[str, int]:
    """The limits in the controller's ConfigMap, by the name of the setting; those that are 0 or unreadable are none."""
    data = config_map.get("data")
    settings = dict(data) if isinstance(data, dict) else {}
    with suppress(ConfigError):
        for document in parse_yaml(str(settings.get("config") or ""), CONTROLLER_SETTINGS):
            settings |= document if isinstance(document, dict) else {}
    return {name: limit for name in (PARALLELISM, NAMESPACE_PARALLELISM) if (limit := _whole(settings.get(name)))}


def _limit_of(namespace: Mapping[str, Any]) -> dict[str, int]:
    limit = _whole((namespace.get("metadata", {}).get("labels") or {}).get(OF_NAMESPACE))
    return {NAMESPACE_PARALLELISM: limit} if limit else {}


def _whole(value: object) -> int:
    """A number above 0; anything else is 0."""
    text = str(value)
    return int(text) if text.isdecimal() and len(text) < 10 else 0
