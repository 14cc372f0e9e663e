"""Settings of Argo's workflow controller: limits on running workflows, and the settings of its process.

The limits are keys of its ConfigMap, or of the YAML under its key ``config``; a namespace's label overrides
``namespaceParallelism``. Source: https://argo-workflows.readthedocs.io/en/latest/parallelism/ and
https://argo-workflows.readthedocs.io/en/latest/workflow-controller-configmap/
Arguments and variables are read from its pod, which says what runs, whatever its Deployment says by now.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

from harness.collectors.journal import Journal
from harness.collectors.kubernetes.kube_api import KubeApi
from harness.collectors.kubernetes.reflector import Manifest
from harness.collectors.source_health import UnreachableError
from harness.model import ConfigError, Event
from harness.model.phases import (
    ARGUMENTS,
    BURST,
    CLEANUP_WORKERS,
    CONTROLLER_SETTINGS,
    LIMITS,
    NAMESPACE_PARALLELISM,
    PARALLELISM,
    PLATFORM,
    QPS,
    REQUEUE_TIME,
    WORKFLOW_CONTROLLER,
    WORKFLOW_WORKERS,
)
from harness.reading import parse_yaml

OF_NAMESPACE = "workflows.argoproj.io/parallelism-limit"
_ARGUMENTS = frozenset({QPS, BURST, WORKFLOW_WORKERS, CLEANUP_WORKERS})
_VALUE = re.compile(r"[\w.]{1,20}")
_UNKNOWN = "?"


class ControllerArguments:
    """Records the arguments of the controller when its pod is seen first, and when another one has others."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._said: dict[str, str] = {}  # by namespace

    def see(self, change: str, manifest: Manifest) -> None:
        """Take in a pod; those that are no living controller are ignored."""
        metadata, phase = manifest["metadata"], (manifest.get("status") or {}).get("phase")
        if change == "DELETED" or metadata.get("deletionTimestamp") or phase in {"Succeeded", "Failed"}:
            return
        text, namespace = arguments_of(manifest.get("spec") or {}), str(metadata.get("namespace") or "")
        if text is None or self._said.get(namespace) == text:
            return
        self._said[namespace] = text
        at = self._journal.now()
        event = Event(at, PLATFORM, WORKFLOW_CONTROLLER, ARGUMENTS, text, "kubernetes", namespace=namespace)
        self._journal.write(event)


def arguments_of(spec: Mapping[str, Any]) -> str | None:
    """The settings that a pod of the controller states, as `ARGUMENTS` records them; none for another pod."""
    container = next(filter(_is_controller, spec.get("containers") or ()), None)
    if container is None:
        return None
    found: dict[str, str] = {}
    words = [str(each) for key in ("command", "args") for each in container.get(key) or ()]
    for word, following in pairwise((*words, "")):
        name, written, value = word.partition("=")
        if name in _ARGUMENTS:
            found[name] = value if written else following
    if container.get("envFrom"):
        found[REQUEUE_TIME] = _UNKNOWN
    for each in container.get("env") or ():
        if each.get("name") == REQUEUE_TIME:
            found[REQUEUE_TIME] = str(each.get("value") or _UNKNOWN)
    return " ".join(f"{name}={value if _VALUE.fullmatch(value) else _UNKNOWN}" for name, value in found.items())


def _is_controller(container: Mapping[str, Any]) -> bool:
    command = str(next(iter(container.get("command") or ()), ""))
    return WORKFLOW_CONTROLLER in {container.get("name"), command.rpartition("/")[2]}


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
            _record(journal, namespace, limits)
            return


def see_config_map(journal: Journal, manifest: Manifest) -> None:
    """Record the limits in a dumped ConfigMap; any other than the controller's is ignored."""
    metadata = manifest["metadata"]
    if metadata["name"] == CONTROLLER_SETTINGS:
        _record(journal, str(metadata.get("namespace") or ""), limits_of(manifest))


def _record(journal: Journal, namespace: str, limits: Mapping[str, int]) -> None:
    if text := " ".join(f"{name}={limit}" for name, limit in limits.items()):
        at = journal.now()
        journal.write(Event(at, PLATFORM, CONTROLLER_SETTINGS, LIMITS, text, "kubernetes", namespace=namespace))


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
