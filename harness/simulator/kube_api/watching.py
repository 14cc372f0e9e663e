"""Watches: the live history of changes for one client.

A watcher holds only a version. It reads the store's history from there at its client's pace; if the history no longer
reaches back that far, the client gets a 410 and lists again, as with a real server.
"""

import asyncio
import random
from collections.abc import AsyncIterator

import orjson

from harness.simulator.kube_api.errors import expired
from harness.simulator.kube_api.listing import ListOptions
from harness.simulator.kube_api.selectors import Selection
from harness.simulator.kube_api.shapes import Shape
from harness.simulator.kube_api.store import Change, ObjectStore, ObjectVersion, VersionTooOldError

_BATCH = 500  # events in one write
_GATHER_S = 0.01  # a watcher waits for more changes before it writes, so that one write serves a burst
_BOOKMARK_S = 60.0
_LAST_BOOKMARK_S = 2.0  # before the end, so that the client resumes from a fresh version
_SHORTEST_S, _LONGEST_S = 1800.0, 3600.0  # of a watch without a timeout; random, so that not all end at once

# Event type and object.
_Event = tuple[str, ObjectVersion]


async def watch(store: ObjectStore, options: ListOptions, shape: Shape) -> AsyncIterator[bytes]:
    """Yield events as JSON lines until the watch times out; empty bytes as a heartbeat.

    Without a version, or from version 0, it starts with an ``ADDED`` event for everything that exists.
    """
    loop = asyncio.get_running_loop()
    selection = options.selection
    plural = selection.resource.plural
    end = loop.time() + (options.timeout_s or random.uniform(_SHORTEST_S, _LONGEST_S))
    lines = _Lines(shape)
    version = options.version or 0
    if not version or options.initial_events:
        version = store.version
        async for chunk in _existing(store, options, lines):
            yield chunk
    bookmark_at = _next_bookmark(loop.time(), end)
    while True:
        try:
            changes = store.changes(plural, version, _BATCH)
        except VersionTooOldError as error:
            yield lines.error(error)
            return
        events = [event for change in changes if (event := _seen(change, selection))]
        if changes:
            version = changes[-1].after.version
        if events:
            yield b"".join(lines.event(*event) for event in events)
        now = loop.time()
        if now >= end:
            return
        if now >= bookmark_at:
            yield lines.bookmark(selection, store.version if not changes else version) if options.bookmarks else b""
            bookmark_at = _next_bookmark(now, end)
        if len(changes) < _BATCH:
            await _wait(store, plural, version, min(bookmark_at, end) - now)


async def _existing(store: ObjectStore, options: ListOptions, lines: "_Lines") -> AsyncIterator[bytes]:
    """The current objects as ``ADDED`` events."""
    selection = options.selection
    version = store.version
    existing = [
        stored for stored in store.objects(selection.resource, selection.namespace) if selection.matches(stored)
    ]
    for first in range(0, len(existing), _BATCH):
        yield b"".join(lines.event("ADDED", stored) for stored in existing[first : first + _BATCH])
        await asyncio.sleep(0)  # lets other requests run: rendering many objects takes long
    if options.initial_events and options.bookmarks:
        yield lines.bookmark(selection, version, initial_events_end=True)


def _next_bookmark(now: float, end: float) -> float:
    """Once a minute, and shortly before the end."""
    last = end - _LAST_BOOKMARK_S
    return min(now + _BOOKMARK_S, last) if now < last else end


async def _wait(store: ObjectStore, plural: str, version: int, at_most_s: float) -> None:
    if not store.changes(plural, version, 1):
        try:
            async with asyncio.timeout(max(0.0, at_most_s)):
                await store.changed(plural)
        except TimeoutError:
            return
    await asyncio.sleep(_GATHER_S)


def _seen(change: Change, selection: Selection) -> _Event | None:
    """The event of a change for a selection: an object is added when it begins to match, deleted when it ceases to."""
    before = change.before is not None and selection.matches(change.before)
    after = not change.deleted and selection.matches(change.after)
    if after:
        return "MODIFIED" if before else "ADDED", change.after
    if not before:
        return None
    if change.deleted:
        return "DELETED", change.after
    # The event has the last matching state, at the version of the change.
    last = change.before
    assert last is not None
    return "DELETED", ObjectVersion(last.namespace, last.name, last.snapshot, change.after.version)


class _Lines:
    """Encodes events as lines."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape

    def event(self, kind: str, version: ObjectVersion) -> bytes:
        return b'{"type":"%s","object":%s}\n' % (kind.encode(), self._shape.alone(version))

    def bookmark(self, selection: Selection, version: int, *, initial_events_end: bool = False) -> bytes:
        resource = selection.resource
        metadata: dict[str, object] = {"resourceVersion": str(version), "creationTimestamp": None}
        if initial_events_end:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        marked = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
        return orjson.dumps({"type": "BOOKMARK", "object": marked}) + b"\n"

    def error(self, error: VersionTooOldError) -> bytes:
        return orjson.dumps({"type": "ERROR", "object": expired(str(error)).status}) + b"\n"
