"""Effects of component settings on the model: environment variables, arguments, the controller's configuration."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

from harness.model.units import parse_duration
from harness.simulator.kube_objects.components import AGENT, API_SERVER, CONTROLLER
from harness.simulator.platform import Platform

_MOST_OF_A_SETTING = 1_000_000
LIMITS = ("parallelism", "namespaceParallelism")  # keys of the controller's configuration: running workflows


def _above_0(text: str) -> float:
    value = float(text)
    if not 0 < value <= _MOST_OF_A_SETTING:
        raise ValueError(f"{text[:20]} is not above 0, or is too large")
    return value


def _count(text: str) -> int:
    return int(_above_0(str(int(text))))


_Apply = Callable[[Platform, float, int], None]


def _of_clients(name: str) -> _Apply:
    """A limit of the API server's clients: each replica has its own."""

    def apply(platform: Platform, value: float, replicas: int) -> None:
        for bucket in platform.server.buckets:
            setattr(bucket, name, value * max(replicas, 1))

    return apply


def _of(part: Callable[[Platform], Any], name: str) -> _Apply:
    """A value of a part of the platform."""
    return lambda platform, value, _: setattr(part(platform), name, value)


def _kept_s(platform: Platform, value: float, _: int) -> None:
    platform.controller.settings = replace(platform.controller.settings, ttl_s=value)


def _agent_workers(platform: Platform, value: float, _: int) -> None:
    platform.agent.settings = replace(platform.agent.settings, workers=int(value))


_SETTINGS: Mapping[tuple[str, str], tuple[_Apply, Callable[[str], float]]] = {
    (API_SERVER, "CLIENTQPS"): (_of_clients("rate"), _above_0),
    (API_SERVER, "CLIENTBURST"): (_of_clients("burst"), _count),
    (AGENT, "NUM_WORKERS"): (_agent_workers, _count),
    (AGENT, "TTL_SECONDS_AFTER_WORKFLOW_FINISH"): (_kept_s, _count),
    (CONTROLLER, "--qps"): (_of(lambda its: its.controller.client, "rate"), _above_0),
    (CONTROLLER, "--burst"): (_of(lambda its: its.controller.client, "burst"), _count),
    (CONTROLLER, "--workflow-workers"): (_of(lambda its: its.controller.queue, "workers"), _count),
    (CONTROLLER, "--pod-cleanup-workers"): (
        lambda platform, value, _: platform.controller.client.cleanup.employ(int(value)), _count,
    ),
    (CONTROLLER, "DEFAULT_REQUEUE_TIME"): (_of(lambda its: its.controller.queue, "requeue_s"), parse_duration),
}  # fmt: skip


def read(component: str, container: Mapping[str, Any]) -> list[tuple[_Apply, float]]:
    """The settings in the container's arguments and environment that the model has.

    Raises:
        ValueError, ConfigError: invalid value, with which the real program would not start.
    """
    found = []
    for name, text in (*_environment(container), *_arguments(container)):
        if (component, name) in _SETTINGS:
            apply, parse = _SETTINGS[component, name]
            found.append((apply, parse(text)))
    return found


def apply(platform: Platform, component: str, container: Mapping[str, Any], replicas: int) -> None:
    """Apply the settings of a running container to the model."""
    for each, value in read(component, container):
        each(platform, value, replicas)


def _environment(container: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for each in container.get("env") or ():
        if "value" in each:
            yield each["name"], each["value"]


def _arguments(container: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Names and values of the arguments, written as ``--qps=100`` or ``--qps 100``."""
    for argument, following in pairwise((*(container.get("args") or ()), "--")):
        name, written, value = argument.partition("=")
        if written:
            yield name, value
        elif argument.startswith("--") and not following.startswith("-"):
            yield argument, following


def limits(configuration: Mapping[str, str]) -> tuple[int, int]:
    """The maximum of running workflows in the controller's configuration, in all and of each namespace; 0 is no limit.

    Raises:
        ValueError: a limit is not a number.
    """
    most, most_of_each = (int(configuration.get(name) or 0) for name in LIMITS)
    if min(most, most_of_each) < 0:
        raise ValueError("a limit on workflows must not be below 0")
    return most, most_of_each
