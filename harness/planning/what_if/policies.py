"""Changes of how a platform is shared: quotas, priorities, Kueue's queues, and what Argo's workflows say themselves.

``quota.cpu=20`` (of each tenant), ``tenant.team-a.quota.cpu=20``, ``tenant.team-a.priority=100``,
``step.train.priority=100``, ``queue.team-a.cpu=20``, ``queue.team-a.cohort=all``, ``workflow.parallelism=2``,
``workflow.podGC.strategy=OnPodCompletion``, ``configmap.limits.gpu=4`` (a semaphore's limit).
"""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

import yaml

from harness.model.argo.manifest import spec_of
from harness.model.errors import ConfigError
from harness.planning.what_if.scenario import Apply, Scenario
from harness.planning.what_if.values import parsed
from harness.reading import parse_yaml
from harness.simulator.fast.submitting import ignored, is_argo
from harness.simulator.profile import Amounts, ClusterQueue, Profile, Quota, Step, Tenant

_QUOTA = tuple(field.name for field in fields(Quota))
_AMOUNTS = ("nominal", "borrowing", "lending")
_OF_QUEUES = ("cohort", "queueing", "within_queue", "reclaim")
_OTHERS = Step()  # what a step is like that no setting of the profile is for


def applying(text: str, name: str, value: str, scenario: Scenario) -> Apply | None:
    """The change of a setting; none if there is no such setting.

    Raises:
        ConfigError: an impossible value.
    """
    profile = scenario.profile
    head, _, rest = name.partition(".")
    owner, _, setting = rest.partition(".")
    tenants = {tenant.namespace for tenant in profile.tenants}
    if head == "quota" and rest in _QUOTA:
        return partial(_with_quota, tenant="", changed={rest: parsed(text, ("quota", rest), value)})
    if head == "tenant" and owner in tenants:
        return _of_tenant(text, owner, setting, value)
    if head == "step" and rest.endswith(".priority") and rest.removesuffix(".priority") in profile.measured:
        priority = parsed(text, ("tenants", "priority"), value)
        return partial(_with_step_priority, task=rest.removesuffix(".priority"), priority=priority)
    if head == "queue" and owner in tenants | {queue.name for queue in profile.queues} | {profile.namespace}:
        return _of_queue(text, owner, setting, value)
    if head in {"workflow", "configmap"} and rest and is_argo(scenario.test.package):
        change = _with_field if head == "workflow" else _with_limit
        return partial(change, text=text, path=tuple(rest.split(".")), value=_plain(text, value))
    return None


def known(profile: Profile) -> list[str]:
    """The names of all settings but the workflows' own."""
    quotas = [f"quota.{each}" for each in _QUOTA]
    tenants = [f"tenant.{t.namespace}.{quota}" for t in profile.tenants for quota in (*quotas, "priority")]
    names = dict.fromkeys((*(q.name for q in profile.queues), *(t.namespace for t in profile.tenants)))
    settings = (*_QUOTA, *(f"{part}.{each}" for part in _AMOUNTS for each in _QUOTA), *_OF_QUEUES)
    return [*quotas, *tenants, *(f"queue.{name}.{setting}" for name in names for setting in settings)]


def _plain(text: str, value: str) -> object:
    try:
        return next(iter(parse_yaml(value, "--set")), None)
    except ConfigError as error:
        raise ConfigError(f"--set {text}: {error.message}", error.hint) from error


# --- tenants ----------------------------------------------------------------------------------------------------------


def _of_tenant(text: str, tenant: str, setting: str, value: str) -> Apply | None:
    part, _, resource = setting.partition(".")
    if part == "quota" and resource in _QUOTA:
        return partial(_with_quota, tenant=tenant, changed={resource: parsed(text, ("quota", resource), value)})
    if setting == "priority":
        changed: Any = {"priority": parsed(text, ("tenants", "priority"), value)}
        return partial(_with_tenants, change=lambda of: replace(of, **changed) if of.namespace == tenant else of)
    return None


def _with_quota(scenario: Scenario, *, tenant: str, changed: Mapping[str, Any]) -> Scenario:
    """Of one tenant; without a name of each, and of runs without a tenant."""

    def limited(of: Tenant) -> Tenant:
        return replace(of, quota=replace(of.quota, **changed)) if tenant in {"", of.namespace} else of

    quota = scenario.profile.quota if tenant else replace(scenario.profile.quota, **changed)
    return _with_tenants(replace(scenario, profile=replace(scenario.profile, quota=quota)), change=limited)


def _with_tenants(scenario: Scenario, *, change: Callable[[Tenant], Tenant]) -> Scenario:
    tenants = tuple(map(change, scenario.profile.tenants))
    return replace(scenario, profile=replace(scenario.profile, tenants=tenants))


def _with_step_priority(scenario: Scenario, *, task: str, priority: Any) -> Scenario:
    """A PriorityClass of the pods of one task."""
    profile, name = scenario.profile, f"what-if-{priority}"
    like = next((step for step in profile.steps if fnmatchcase(task, step.match)), _OTHERS)
    steps = (replace(like, match=task, priority_class=name), *profile.steps)
    classes = {**profile.priority_classes, name: priority}
    return replace(scenario, profile=replace(profile, steps=steps, priority_classes=classes))


# --- Kueue ------------------------------------------------------------------------------------------------------------


def _of_queue(text: str, queue: str, setting: str, value: str) -> Apply | None:
    part, _, resource = setting.rpartition(".")
    part = part or "nominal"
    if part in _AMOUNTS and resource in _QUOTA:
        amount = {resource: parsed(text, ("queues", part, resource), value)}
        return partial(_with_queue, queue=queue, part=part, changed=amount)
    if setting in _OF_QUEUES:
        return partial(_with_queue, queue=queue, part="", changed={setting: parsed(text, ("queues", setting), value)})
    return None


def _with_queue(scenario: Scenario, *, queue: str, part: str, changed: Mapping[str, Any]) -> Scenario:
    """A ClusterQueue of this name; if there is none, one for the tenant of that name."""
    profile = scenario.profile
    queues = {cluster_queue.name: cluster_queue for cluster_queue in profile.queues}
    was = queues.get(queue, ClusterQueue(queue, (queue,)))
    if part:
        amounts: Amounts = getattr(was, part)
        changed = {part: replace(amounts, **changed)}
    queues[queue] = replace(was, **changed)
    return replace(scenario, profile=replace(profile, queues=tuple(queues.values())))


# --- Argo's manifests -------------------------------------------------------------------------------------------------


def _with_field(scenario: Scenario, *, text: str, path: tuple[str, ...], value: object) -> Scenario:
    """A field of the workflow's own specification."""
    documents = _documents(scenario)
    place: Any = spec_of(documents[0])
    for key in path[:-1]:
        place = place.setdefault(key, {}) if isinstance(place, dict) else None
    if not isinstance(place, dict):
        raise ConfigError(f"--set {text}: there is no such field", "write it as --set workflow.parallelism=2")
    place[path[-1]] = value
    changed = _with_package(scenario, documents)
    field = ".".join(("spec", *path))
    if any(f"{field}.".startswith(f"{each}.") for each in ignored(changed.test.package, scenario.profile.ignore)):
        raise ConfigError(f"--set {text}: it has no bearing on simulated times", "leave it out")
    return changed


def _with_limit(scenario: Scenario, *, text: str, path: tuple[str, ...], value: object) -> Scenario:
    """A value of a ConfigMap that came with the workflow, such as a semaphore's limit."""
    documents = _documents(scenario)
    name, _, key = ".".join(path).partition(".")
    maps = [of for of in documents if of.get("kind") == "ConfigMap" and of["metadata"].get("name") == name]
    if not maps or key not in (maps[0].get("data") or {}):
        raise ConfigError(
            f"--set {text}: the test has no ConfigMap '{name}' with '{key}'", "name one that was given with --with"
        )
    maps[0]["data"][key] = str(value)
    return _with_package(scenario, documents)


def _documents(scenario: Scenario) -> list[Any]:
    return [each for each in parse_yaml(scenario.test.package, "the workflow") if each is not None]


def _with_package(scenario: Scenario, documents: list[Any]) -> Scenario:
    package = yaml.dump_all(documents, Dumper=yaml.CSafeDumper, sort_keys=False).encode()
    return replace(scenario, test=replace(scenario.test, package=package))
