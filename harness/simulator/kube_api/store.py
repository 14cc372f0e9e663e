"""The objects behind the Kubernetes API, and the ordered history of their changes.

`put` and `delete` cost a dictionary entry and a list entry, no rendering. A version is rendered on its first read, and
all readers share the bytes. Watchers have no queues: each reads the common history at its own pace, so a slow watcher
costs no memory and eventually finds that the history no longer reaches back to its position.
"""

import asyncio
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import orjson

from harness.simulator.kube_api.resource import Manifest, Resource, Snapshot

# A version's bytes are kept for this many changes, for the watchers that have not read it yet.
_KEEP_RENDERED = 2_000


@dataclass(slots=True)
class ObjectVersion:
    """An object between two changes. `version` 0 marks computed objects, which have no versions."""

    namespace: str
    name: str
    snapshot: Snapshot
    version: int
    _rendered: bytes | None = None

    @property
    def key(self) -> str:
        """The sort key in lists, as in etcd."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def manifest(self, resource: Resource) -> Manifest:
        """The object without `apiVersion` and `kind`, as a new document."""
        document = dict(resource.render(self.snapshot))
        if self.version:
            document["metadata"] = {**document["metadata"], "resourceVersion": str(self.version)}
        return document

    def encoded(self, resource: Resource) -> bytes:
        """`manifest` as JSON, rendered once for all readers."""
        if self._rendered is None:
            self._rendered = orjson.dumps(self.manifest(resource))
        return self._rendered

    def forget_rendering(self) -> None:
        """Free the bytes; another read renders them again."""
        self._rendered = None


class Change(NamedTuple):
    """One change in the history. For a deletion, `after` is the last state, at the deletion's version."""

    before: ObjectVersion | None
    after: ObjectVersion
    deleted: bool


class VersionTooOldError(Exception):
    """The history no longer reaches back to `asked`; the oldest version it can resume from is `oldest`."""

    def __init__(self, asked: int, oldest: int) -> None:
        super().__init__(f"too old resource version: {asked} ({oldest})")
        self.asked = asked
        self.oldest = oldest


class _Collection:
    """The objects of one plural, and their changes."""

    def __init__(self, history: int, forgotten: int) -> None:
        self.objects: dict[str, ObjectVersion] = {}
        self.changes: list[Change] = []
        self.versions: list[int] = []  # of the changes, for bisection
        self.forgotten = forgotten  # newest version that was dropped from the history
        self.waiters: set[asyncio.Future[None]] = set()
        self._history = history
        self._keys: list[str] = []
        self._new_keys: list[str] = []
        self._lost_keys = False

    def record(self, change: Change) -> None:
        if change.deleted:
            self.objects.pop(change.after.key, None)
            self._lost_keys = True
        else:
            key = change.after.key
            if change.before is None:
                self._new_keys.append(key)
            self.objects[key] = change.after
        self.changes.append(change)
        self.versions.append(change.after.version)
        self._trim()
        if self.waiters:
            for waiter in self.waiters:
                if not waiter.done():
                    waiter.set_result(None)
            self.waiters.clear()

    def _trim(self) -> None:
        if len(self.changes) > _KEEP_RENDERED:
            before, after, _ = self.changes[-_KEEP_RENDERED]
            after.forget_rendering()
            if before is not None:
                before.forget_rendering()
        excess = len(self.changes) - self._history
        # A quarter at once: dropping the head of a list costs its length.
        if excess > self._history // 4:
            self.forgotten = self.versions[excess - 1]
            del self.changes[:excess]
            del self.versions[:excess]

    def keys(self) -> list[str]:
        """All keys in order. Python's sort merges the sorted old keys and the new ones quickly."""
        if self._lost_keys:
            new = set(self._new_keys) & self.objects.keys()
            self._keys = [key for key in self._keys if key in self.objects and key not in new]
            self._new_keys = list(new)
            self._lost_keys = False
        if self._new_keys:
            self._keys += sorted(self._new_keys)
            self._keys.sort()
            self._new_keys = []
        return self._keys

    def after(self, version: int) -> int:
        """Index of the first change later than `version`."""
        if version < self.forgotten:
            raise VersionTooOldError(version, self.forgotten)
        return bisect_right(self.versions, version)


class ObjectStore:
    """All objects of the simulated cluster, under one counter of resource versions.

    Args:
        resources: the served types.
        history: number of changes of one plural that watches and lists can go back.
        begun_at: the version at which it begins; that of a cluster with a past, which is forgotten, is above 1.
    """

    def __init__(self, resources: Sequence[Resource], history: int = 50_000, begun_at: int = 1) -> None:
        self.resources = tuple(resources)
        self.version = begun_at
        stored = [resource.plural for resource in resources if resource.listing is None]
        self._collections = {plural: _Collection(history, begun_at if begun_at > 1 else 0) for plural in stored}

    def put(self, plural: str, namespace: str, name: str, snapshot: Snapshot) -> int:
        """Create or replace an object; returns its resource version. `namespace` is "" for cluster-scoped types."""
        collection = self._collections[plural]
        before = collection.objects.get(f"{namespace}/{name}" if namespace else name)
        if before is not None and before.snapshot is snapshot:
            return before.version  # as on a real server, a write without a change has no new version
        self.version += 1
        after = ObjectVersion(namespace, name, snapshot, self.version)
        collection.record(Change(before, after, deleted=False))
        return self.version

    def delete(self, plural: str, namespace: str, name: str, snapshot: Snapshot | None = None) -> int:
        """Remove an object; `snapshot` is its last state if that differs. Returns the deletion's version.

        Raises:
            KeyError: no such object.
        """
        collection = self._collections[plural]
        before = collection.objects[f"{namespace}/{name}" if namespace else name]
        self.version += 1
        latest = before.snapshot if snapshot is None else snapshot
        last = ObjectVersion(namespace, name, latest, self.version)
        collection.record(Change(before, last, deleted=True))
        return self.version

    def get(self, resource: Resource, namespace: str, name: str) -> ObjectVersion | None:
        """The current version of an object; none if it does not exist."""
        if resource.listing is not None:
            return next((each for each in _computed(resource, namespace) if each.name == name), None)
        return self._collections[resource.plural].objects.get(f"{namespace}/{name}" if namespace else name)

    def objects(self, resource: Resource, namespace: str = "", start: str = "") -> list[ObjectVersion]:
        """The current objects in order of keys, from the key `start`; of one namespace if given."""
        if resource.listing is not None:
            computed = _computed(resource, namespace)
            return sorted((each for each in computed if each.key >= start), key=lambda each: each.key)
        collection = self._collections[resource.plural]
        objects = collection.objects
        return [objects[key] for key in _stretch(collection.keys(), namespace, start)]

    def objects_at(self, resource: Resource, version: int, namespace: str = "", start: str = "") -> list[ObjectVersion]:
        """The objects at `version`: the current ones with later changes undone.

        Raises:
            VersionTooOldError: the history does not reach back that far.
        """
        if resource.listing is not None or version >= self.version:
            return self.objects(resource, namespace, start)
        collection = self._collections[resource.plural]
        undone: dict[str, ObjectVersion | None] = {}
        for change in collection.changes[collection.after(version) :]:
            undone.setdefault(change.after.key, change.before)
        if not undone:
            return self.objects(resource, namespace, start)
        then: list[ObjectVersion] = []
        keys = sorted({*collection.keys(), *undone}) if undone.keys() - collection.objects.keys() else collection.keys()
        for key in _stretch(keys, namespace, start):
            was = undone[key] if key in undone else collection.objects[key]
            if was is not None:
                then.append(was)
        return then

    def changes(self, plural: str, version: int, at_most: int) -> list[Change]:
        """The next changes after `version`, oldest first.

        Raises:
            VersionTooOldError: the history does not reach back that far.
        """
        collection = self._collections[plural]
        first = collection.after(version)
        return collection.changes[first : first + at_most]

    async def changed(self, plural: str) -> None:
        """Wait for the next `put` or `delete` of that plural."""
        waiters = self._collections[plural].waiters
        waiter = asyncio.get_running_loop().create_future()
        waiters.add(waiter)
        try:
            await waiter
        finally:
            waiters.discard(waiter)


def _computed(resource: Resource, namespace: str) -> Iterable[ObjectVersion]:
    assert resource.listing is not None
    for its_namespace, name, snapshot in resource.listing():
        if not namespace or its_namespace == namespace:
            yield ObjectVersion(its_namespace, name, snapshot, 0)


def _stretch(keys: list[str], namespace: str, start: str) -> list[str]:
    """The sorted keys of one namespace from `start` on."""
    first = max(start, f"{namespace}/") if namespace else start
    low = bisect_left(keys, first) if first else 0
    high = bisect_left(keys, f"{namespace}0") if namespace else len(keys)  # "0" comes right after "/"
    return keys[low:high]
