"""Checks of a whole profile: settings that are valid one by one, but not together."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from harness.simulator.profile.kueue import Amounts
from harness.simulator.profile.settings import Pool, Profile
from harness.simulator.profile.spot import Eviction

_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


class Problem(NamedTuple):
    """A wrong setting: its key (``pools[1].max``), what is wrong with it, and what to do."""

    key: str
    message: str
    hint: str


def problem(profile: Profile) -> Problem | None:
    """The first problem of a profile, if it has one."""
    return next(_problems(profile), None)


def _problems(profile: Profile) -> Iterator[Problem]:
    if not profile.pools:
        yield Problem("pools", "has no pool, so no pod could run", "add one: {name: default}")
    for index, pool in enumerate(profile.pools):
        yield from _of_pool(pool, f"pools[{index}]", grows=profile.autoscaler is not None)
    yield from _repeated("pools[{}].name", "pools", [pool.name for pool in profile.pools])
    for key, used, capacity in (
        ("database", profile.database.used, profile.database.capacity),
        ("store", profile.store.used, profile.store.capacity),
    ):
        if used > capacity:
            yield Problem(f"{key}.used", f"{used:g} bytes are more than the capacity, {capacity:g}", "raise capacity")
    for index, step in enumerate(profile.steps):
        if step.priority_class and step.priority_class not in profile.priority_classes:
            classes = ", ".join(profile.priority_classes) or "none"
            yield Problem(
                f"steps[{index}].priority_class",
                f"unknown class '{step.priority_class}'",
                f"define it under priority_classes, which has: {classes}",
            )
    yield from _of_tenants(profile)
    yield from _of_queues(profile)
    if profile.hetida is not None:
        yield from _repeated("hetida.adapters[{}].id", "adapters", [adapter.id for adapter in profile.hetida.adapters])


def _of_tenants(profile: Profile) -> Iterator[Problem]:
    yield from _repeated("tenants[{}].namespace", "tenants", [each.namespace for each in profile.tenants])
    for index, tenant in enumerate(profile.tenants):
        if not _NAMESPACE.fullmatch(tenant.namespace) or tenant.namespace == profile.namespace:
            hint = "use at most 63 of a-z, 0-9 and -, and not the platform's own namespace"
            yield Problem(f"tenants[{index}].namespace", f"'{tenant.namespace}' can't be a tenant's namespace", hint)
    if profile.tenants and profile.hetida is not None:
        yield Problem("tenants", "only KFP and Argo have tenants, not hetida designer", "leave out one of the two")


def _of_queues(profile: Profile) -> Iterator[Problem]:
    yield from _repeated("queues[{}].name", "queues", [queue.name for queue in profile.queues])
    known = {profile.namespace, *(tenant.namespace for tenant in profile.tenants)}
    led: list[str] = []
    for index, queue in enumerate(profile.queues):
        if unknown := [tenant for tenant in queue.tenants if tenant not in known]:
            hint = f"the namespaces of runs are: {', '.join(sorted(known))}"
            yield Problem(f"queues[{index}].tenants", f"there is no namespace '{unknown[0]}'", hint)
        if twice := [tenant for tenant in queue.tenants if tenant in led]:
            yield Problem(
                f"queues[{index}].tenants", f"'{twice[0]}' has a queue already", "give each namespace one queue"
            )
        led += queue.tenants
        if not queue.cohort and (queue.borrowing != Amounts() or queue.lending != Amounts()):
            yield Problem(f"queues[{index}].cohort", "a queue without a cohort neither borrows nor lends", "name one")


def _repeated(key: str, kind: str, names: list[str]) -> Iterator[Problem]:
    for index, name in enumerate(names):
        if name in names[:index]:
            yield Problem(key.format(index), f"there are two {kind} '{name}'", "give each its own name")


def _of_pool(pool: Pool, key: str, *, grows: bool) -> Iterator[Problem]:
    if grows and pool.initial > pool.max:
        yield Problem(f"{key}.initial", f"{pool.initial} nodes at the start are more than max, {pool.max}", "raise max")
    if not pool.spot and pool.eviction != Eviction():
        yield Problem(f"{key}.eviction", "the pool has no spot machines", "add spot: true, or leave it out")
    if pool.eviction.max_price is not None and not pool.eviction.prices.prices:
        yield Problem(f"{key}.eviction.max_price", "there are no prices to compare it with", "add prices: FILE.csv")
    if pool.min > pool.max:
        yield Problem(f"{key}.min", f"{pool.min} is more than max, {pool.max}", "raise max or lower min")
    for name, reserved, machine in (
        ("cpu", pool.reserved_cpu, pool.cpu),
        ("memory", pool.reserved_memory, pool.memory),
    ):
        if reserved >= machine:
            yield Problem(
                f"{key}.{name}",
                f"all of it ({machine:g}) is reserved for the node itself",
                f"raise {name}, or lower reserved_{name} ({reserved:g})",
            )
