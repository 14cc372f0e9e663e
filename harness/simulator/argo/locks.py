"""Semaphores, whose limits are in ConfigMaps, and mutexes: who holds them, and who waits.

Source: https://argo-workflows.readthedocs.io/en/latest/synchronization/; names and messages as Argo 4.0.8 gave them.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Limit = Callable[[str, str, str], int | None]  # of namespace, ConfigMap and key; none if there is no such key


class NoLimitError(Exception):
    """A semaphore's ConfigMap or key does not exist."""


@dataclass(slots=True)
class _Lock:
    holders: list[str] = field(default_factory=list)
    waiting: list[tuple[int, str]] = field(default_factory=list)  # by priority, highest first, then by arrival


class Locks:
    """All locks of one controller.

    Args:
        limit: reads a semaphore's limit.
    """

    def __init__(self, limit: Limit) -> None:
        self._limit = limit
        self._locks: dict[str, _Lock] = {}

    def __bool__(self) -> bool:
        """Whether anything was ever locked: most workflows lock nothing."""
        return bool(self._locks)

    def acquire(self, wanted: Mapping[str, Any], namespace: str, holder: str, priority: int) -> str:
        """Take all locks of a ``synchronization``; "" if the holder has them now, otherwise why it waits.

        Raises:
            NoLimitError: a semaphore has no limit.
        """
        names = dict(_names(wanted, namespace, self._limit))
        for name, most in names.items():
            lock = self._locks.setdefault(name, _Lock())
            if holder in lock.holders:
                continue
            if all(waiter != holder for _, waiter in lock.waiting):
                lock.waiting.append((-priority, holder))
                lock.waiting.sort(key=lambda each: each[0])
            first = [waiter for _, waiter in lock.waiting][: max(0, most - len(lock.holders))]
            if holder not in first:
                return f"Waiting for {name} lock. Lock status: {max(0, most - len(lock.holders))}/{most}"
        for name in names:
            lock = self._locks[name]
            lock.waiting = [each for each in lock.waiting if each[1] != holder]
            if holder not in lock.holders:
                lock.holders.append(holder)
        return ""

    def release(self, holder: str) -> list[str]:
        """Give back everything that a holder has or waits for; returns who may be able to go on."""
        freed: list[str] = []
        for lock in self._locks.values():
            held = holder in lock.holders
            lock.holders = [each for each in lock.holders if each != holder]
            lock.waiting = [each for each in lock.waiting if each[1] != holder]
            if held:
                freed += [waiter for _, waiter in lock.waiting]
        return list(dict.fromkeys(freed))

    def status(self, holder: str) -> dict[str, Any]:
        """``status.synchronization`` of a workflow: what it and its nodes hold and wait for."""
        found: dict[str, Any] = {}
        for name, lock in self._locks.items():
            kind = "mutex" if "/Mutex/" in name else "semaphore"
            held = [each for each in lock.holders if _is_of(each, holder)]
            if held:
                entry = {"holder": held[0], "mutex": name} if kind == "mutex" else {"holders": held, "semaphore": name}
                found.setdefault(kind, {}).setdefault("holding", []).append(entry)
            if any(_is_of(waiter, holder) for _, waiter in lock.waiting):
                entry = (
                    {"holder": lock.holders[0] if lock.holders else "", "mutex": name}
                    if kind == "mutex"
                    else {"holders": list(lock.holders), "semaphore": name}
                )
                found.setdefault(kind, {}).setdefault("waiting", []).append(entry)
        return found


def _is_of(holder: str, workflow: str) -> bool:
    return holder == workflow or holder.startswith(f"{workflow}/")


def _names(wanted: Mapping[str, Any], namespace: str, limit: Limit) -> Iterator[tuple[str, int]]:
    """The locks' names as messages show them, and how many may hold each."""
    for each in (*_given(wanted, "mutex"), *(wanted.get("mutexes") or ())):
        yield f"{each.get('namespace') or namespace}/Mutex/{each['name']}", 1
    for each in (*_given(wanted, "semaphore"), *(wanted.get("semaphores") or ())):
        place = each.get("namespace") or namespace
        if "database" in each:  # whose limits only a real platform knows
            yield f"{place}/Database/{each['database']['key']}", 1
            continue
        reference = each["configMapKeyRef"]
        most = limit(place, reference["name"], reference["key"])
        if most is None:
            raise NoLimitError(f'configmaps "{reference["name"]}" not found')
        yield f"{place}/ConfigMap/{reference['name']}/{reference['key']}", most


def _given(wanted: Mapping[str, Any], name: str) -> list[Any]:
    return [wanted[name]] if wanted.get(name) else []
