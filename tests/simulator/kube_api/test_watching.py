"""Watches: whatever happens in between, a client that lists and watches ends with what the store holds."""

import asyncio
import json
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.simulator.kube_api import watching
from harness.simulator.kube_api.errors import ApiError
from harness.simulator.kube_api.listing import parse_options, read_page
from harness.simulator.kube_api.resource import Resource
from harness.simulator.kube_api.shapes import Shape
from harness.simulator.kube_api.store import ObjectStore
from tests.support.kube_cluster import Cluster, Server, pod, serve, types

LAST = "the-last"


def _pods(store: ObjectStore) -> Resource:
    return next(each for each in store.resources if each.plural == "pods")


class Follower:
    """A client like client-go's reflector: lists page by page, watches, and lists again after a 410."""

    def __init__(self, store: ObjectStore, query: dict[str, str], limit: int) -> None:
        self._store = store
        self._query = query
        self._limit = limit
        self.known: dict[str, Any] = {}
        self.relists = 0

    async def follow(self) -> None:
        while LAST not in self.known:
            try:
                version = await self._list()
            except ApiError as error:
                if error.code != 410:
                    raise
                self.relists += 1
                continue
            if LAST not in self.known:  # else nothing more would come
                await self._watch(version)

    async def _list(self) -> str:
        found: dict[str, Any] = {}
        token = ""
        while True:
            query = {**self._query, "limit": str(self._limit), "continue": token}
            page = read_page(self._store, parse_options(_pods(self._store), "", query))
            for each in page.objects:
                found[each.name] = json.loads(each.encoded(_pods(self._store)))
            token = page.metadata.get("continue", "")
            if not token:
                self.known = found
                return str(page.metadata["resourceVersion"])
            await asyncio.sleep(0)

    async def _watch(self, version: str) -> None:
        query = {**self._query, "watch": "1", "resourceVersion": version, "timeoutSeconds": "60"}
        options = parse_options(_pods(self._store), "", query)
        async for lines in watching.watch(self._store, options, Shape(_pods(self._store))):
            for line in lines.splitlines():
                self._apply(json.loads(line))
            if LAST in self.known:
                return

    def _apply(self, event: dict[str, Any]) -> None:
        thing = event["object"]
        if event["type"] == "ERROR":
            assert thing["code"] == 410
            self.relists += 1
            return
        name = thing["metadata"]["name"]
        # Exactly one kind of event fits what the client knows.
        expected = {"ADDED": name not in self.known, "MODIFIED": name in self.known, "DELETED": name in self.known}
        assert expected[event["type"]]
        if event["type"] == "DELETED":
            del self.known[name]
        else:
            self.known[name] = {key: each for key, each in thing.items() if key not in ("kind", "apiVersion")}


async def _write(store: ObjectStore, steps: list[tuple[int, str, int]]) -> None:
    for which, app, turns in steps:
        name = f"p{which}"
        if app == "delete":
            if store.get(_pods(store), "default", name):
                store.delete("pods", "default", name)
        else:
            store.put("pods", "default", name, pod(name, labels={"app": app}))
        for _ in range(turns):
            await asyncio.sleep(0)
    store.put("pods", "default", LAST, pod(LAST, labels={"app": "x"}))


_steps = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from(["x", "y", "delete"]), st.integers(0, 4)), min_size=1, max_size=60
)


@settings(deadline=None, max_examples=60)
@given(
    before=_steps,
    during=_steps,
    limit=st.integers(0, 3),
    history=st.sampled_from([4, 12, 1000]),
    query=st.sampled_from([{}, {"labelSelector": "app=x"}, {"fieldSelector": "metadata.name!=p1"}]),
)
def test_a_client_ends_with_the_objects_in_the_store(
    before: list[tuple[int, str, int]],
    during: list[tuple[int, str, int]],
    limit: int,
    history: int,
    query: dict[str, str],
) -> None:
    async def run() -> None:
        store = ObjectStore(types(), history)
        for which, app, _ in before:
            if app != "delete":
                store.put("pods", "default", f"p{which}", pod(f"p{which}", labels={"app": app}))
        follower = Follower(store, query, limit)
        async with asyncio.timeout(20):
            await asyncio.gather(follower.follow(), _write(store, during))
        selected = read_page(store, parse_options(_pods(store), "", query)).objects
        assert follower.known == {each.name: json.loads(each.encoded(_pods(store))) for each in selected}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(watching, "_GATHER_S", 0.0)
        asyncio.run(run())


@pytest.mark.parametrize("count", [2, 3, 4, 6, 7])
@pytest.mark.parametrize("version", [0, 1])
def test_each_object_comes_once_at_the_border_of_a_batch_too(count: int, version: int) -> None:
    """What exists comes in batches of three, and so do changes."""

    async def run() -> list[str]:
        store = ObjectStore(types(), 1000)
        store.put("pods", "default", "first", pod("first"))
        begun = store.version if version else 0
        for k in range(count):
            store.put("pods", "default", f"p{k}", pod(f"p{k}"))
        query = {"watch": "1", "resourceVersion": str(begun), "timeoutSeconds": "60"}
        seen: list[str] = []
        async for chunk in watching.watch(store, parse_options(_pods(store), "", query), Shape(_pods(store))):
            seen += [json.loads(line)["object"]["metadata"]["name"] for line in chunk.splitlines()]
            if LAST in seen:
                return seen
            if f"p{count - 1}" in seen:
                store.put("pods", "default", LAST, pod(LAST))
        return seen

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(watching, "_BATCH", 3)
        patch.setattr(watching, "_GATHER_S", 0.0)
        seen = asyncio.run(run())
    assert sorted(seen) == sorted([LAST, *(["first"] if not version else []), *(f"p{k}" for k in range(count))])


def _open_watch(server: Server, query: str) -> socket.socket:
    """A watch whose response has begun, and whose client reads no further."""
    host, _, port = server.url.removeprefix("http://").partition(":")
    connection = socket.create_connection((host, int(port)), timeout=30)
    connection.sendall(f"GET /api/v1/pods?watch=1&{query} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    assert connection.recv(17) == b"HTTP/1.1 200 OK\r\n"
    return connection


def test_a_watcher_that_falls_behind_gets_an_error(tmp_path: Path) -> None:
    cluster = Cluster(history=200)
    with serve(cluster, tmp_path) as server:
        connection = _open_watch(server, "resourceVersion=1&timeoutSeconds=60")
        body = {**pod("big"), "filling": "x" * 10_000}
        written = 0

        def write(cluster: Cluster) -> None:
            for count in range(500):
                cluster.add("pods", {**body, "count": count})

        for _ in range(40):
            server.do(write)
            written += 500 * 10_000
        read = bytearray()
        while b'"code":410' not in read[-1000:]:
            piece = connection.recv(1_000_000)
            assert piece
            read += piece
        connection.close()
    # What was held for it is what fits into socket buffers and one batch, not what was written.
    assert len(read) < written / 4


def test_a_server_that_ends_does_not_wait_for_its_watches(tmp_path: Path) -> None:
    over = threading.Event()
    with serve(Cluster(), tmp_path) as server:
        connection = _open_watch(server, "timeoutSeconds=3600")

        def read() -> None:
            while connection.recv(1000):
                pass
            over.set()

        thread = threading.Thread(target=read)
        thread.start()
    assert over.wait(10)
    thread.join()
    connection.close()
