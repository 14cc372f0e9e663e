"""The store against a plain list of dictionaries: one copy of everything per version."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.simulator.kube_api.resource import Resource
from harness.simulator.kube_api.store import ObjectStore, VersionTooOldError
from tests.support.kube_cluster import types

KEYS = [("a", "x"), ("a", "y"), ("a-b", "x"), ("b", "x")]
Steps = list[tuple[int, bool]]


def _pods(store: ObjectStore) -> Resource:
    return next(each for each in store.resources if each.plural == "pods")


def _written(steps: Steps, history: int = 1000) -> tuple[ObjectStore, dict[int, dict[str, object]]]:
    """A store after some writes, and by version what it held."""
    store = ObjectStore(types(), history)
    state: dict[str, object] = {}
    states = {store.version: dict(state)}
    for count, (which, deletes) in enumerate(steps):
        namespace, name = KEYS[which]
        key = f"{namespace}/{name}"
        if deletes and key in state:
            version = store.delete("pods", namespace, name)
            del state[key]
        else:
            state[key] = snapshot = {"metadata": {"name": name, "namespace": namespace}, "count": count}
            version = store.put("pods", namespace, name, snapshot)
        states[version] = dict(state)
    return store, states


_steps = st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=30)


@given(_steps)
def test_every_former_state_can_be_listed(steps: Steps) -> None:
    store, states = _written(steps)
    for version, state in states.items():
        found = store.objects_at(_pods(store), version)
        assert [(each.key, each.snapshot) for each in found] == sorted(state.items())


@given(_steps, st.sampled_from(["a", "a-b", "b", "c"]), st.sampled_from(["", "a/x", "a/x\0", "b/"]))
def test_a_namespace_is_a_stretch_of_the_order(steps: Steps, namespace: str, start: str) -> None:
    store, states = _written(steps)
    version = min(states)
    for version, state in states.items():
        found = store.objects_at(_pods(store), version, namespace, start)
        assert [each.key for each in found] == sorted(
            key for key in state if key.startswith(f"{namespace}/") and key >= start
        )


@given(_steps, st.integers(1, 8))
def test_the_history_is_complete_or_reports_a_gap(steps: Steps, history: int) -> None:
    store, states = _written(steps, history)
    versions = sorted(states)
    for version in versions:
        later = [each for each in versions if each > version]
        try:
            known = [each.after.version for each in store.changes("pods", version, 1000)]
        except VersionTooOldError:
            assert len(later) > history
        else:
            assert known == later


def test_a_write_of_the_same_snapshot_is_no_change() -> None:
    store = ObjectStore(types())
    snapshot = {"metadata": {"name": "x"}}
    first = store.put("pods", "a", "x", snapshot)
    assert store.put("pods", "a", "x", snapshot) == first == store.version


def test_an_object_that_is_not_there_cannot_be_deleted() -> None:
    with pytest.raises(KeyError):
        ObjectStore(types()).delete("pods", "a", "x")


def test_a_deletion_keeps_the_last_state_at_its_own_version() -> None:
    store = ObjectStore(types())
    store.put("pods", "a", "x", {"metadata": {"name": "x"}, "status": 1})
    version = store.delete("pods", "a", "x", {"metadata": {"name": "x"}, "status": 2})
    last = store.changes("pods", version - 1, 10)[-1].after
    assert last.manifest(_pods(store)) == {"metadata": {"name": "x", "resourceVersion": str(version)}, "status": 2}


def test_writing_renders_nothing_and_reading_renders_once() -> None:
    rendered: list[object] = []

    def render(snapshot: object) -> dict[str, object]:
        rendered.append(snapshot)
        return {"metadata": {"name": "x"}}

    resource = Resource("", "v1", "pods", "Pod", True, render, lambda _: {}, lambda _: {})
    store = ObjectStore([resource])
    for count in range(10):
        store.put("pods", "a", "x", (count,))
    assert rendered == []
    version = store.get(resource, "a", "x")
    assert version is not None
    assert version.encoded(resource) == version.encoded(resource)
    assert rendered == [(9,)]


def test_a_change_wakes_only_waiters_for_its_type() -> None:
    async def wait() -> tuple[bool, bool]:
        store = ObjectStore(types())
        pods = asyncio.ensure_future(store.changed("pods"))
        nodes = asyncio.ensure_future(store.changed("nodes"))
        await asyncio.sleep(0)
        store.put("pods", "a", "x", {"metadata": {"name": "x"}})
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        done = pods.done(), nodes.done()
        nodes.cancel()
        return done

    assert asyncio.run(wait()) == (True, False)
