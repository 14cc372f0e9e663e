"""Effects of component settings on the model: environment variables, arguments, the controller's configuration."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

from harness.model.units import parse_duration
from harness.simulator.kube_objects.components import AGENT, API_SERVER, CONTROLLER
from harness.simulator.platform import Platform

_MOST = 1_000_000
LIMITS = ("parallelism", "namespaceParallelism")  # keys of the controller's configuration: running workflows


def _rate(platform: Platform, value: float, replicas: int) -> None:
    for bucket in platform.server.buckets:
        bucket.rate = value * max(replicas, 1)  # each replica has its own clients


def _burst(platform: Platform, value: float, replicas: int) -> None:
    for bucket in platform.server.buckets:
        bucket.burst = value * max(replicas, 1)


def _agent_workers(platform: Platform, value: float, _: int) -> None:
    platform.agent.settings = replace(platform.agent.settings, workers=int(value))


def _kept_s(platform: Platform, value: float, _: int) -> None:
    platform.controller.settings = replace(platform.controller.settings, ttl_s=value)


def _controller_rate(platform: Platform, value: float, _: int) -> None:
    platform.controller.client.rate = value


def _controller_burst(platform: Platform, value: float, _: int) -> None:
    platform.controller.client.burst = value


def _controller_workers(platform: Platform, value: float, _: int) -> None:
    platform.controller.queue.workers = int(value)


def _cleanup_workers(platform: Platform, value: float, _: int) -> None:
    platform.controller.client.cleanup.employ(int(value))


def _requeue_s(platform: Platform, value: float, _: int) -> None:
    platform.controller.queue.requeue_s = value


def _above_0(text: str) -> float:
    value = float(text)
    if not 0 < value <= _MOST:
        raise ValueError(f"{text[:20]} is not above 0, or is too large")
    return value


def _count(text: str) -> float:
    return _above_0(str(int(text)))


_Apply = Callable[[Platform, float, int], None]
_SETTINGS: Mapping[tuple[str, str], tuple[_Apply, Callable[[str], float]]] = {
    (API_SERVER, "CLIENTQPS"): (_rate, _above_0),
    (API_SERVER, "CLIENTBURST"): (_burst, _count),
    (AGENT, "NUM_WORKERS"): (_agent_workers, _count),
    (AGENT, "TTL_SECONDS_AFTER_WORKFLOW_FINISH"): (_kept_s, _count),
    (CONTROLLER, "--qps"): (_controller_rate, _above_0),
    (CONTROLLER, "--burst"): (_controller_burst, _count),
    (CONTROLLER, "--workflow-workers"): (_controller_workers, _count),
    (CONTROLLER, "--pod-cleanup-workers"): (_cleanup_workers, _count),
    (CONTROLLER, "DEFAULT_REQUEUE_TIME"): (_requeue_s, parse_duration),
}


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
