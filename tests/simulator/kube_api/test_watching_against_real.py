"""Watches, and what becomes of versions that are forgotten, as with the real server."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.kube_cluster import Cluster
from tests.support.kube_pair import (
    COPIED,
    HISTORY,
    MERGE_PATCH,
    NAMESPACE,
    PARTIAL,
    PODS,
    Answer,
    Pair,
    Side,
    a_pod,
    assert_same,
)


def _versions(pair: Pair) -> tuple[str, str]:
    theirs, ours = (side.get(PODS)["metadata"]["resourceVersion"] for side in (pair.real, pair.ours))
    return theirs, ours


def _watched(pair: Pair, versions: tuple[str, str], options: str = "", accept: str = "") -> list[Answer]:
    """What the real server and ours tell, from a version of each, in one second's watch of both."""

    def watch(side: Side, version: str) -> Answer:
        path = f"{PODS}?watch=true&timeoutSeconds=1&resourceVersion={version}{options}"
        return side.ask("GET", path, accept=accept)

    with ThreadPoolExecutor(2) as threads:
        return list(threads.map(watch, (pair.real, pair.ours), versions))


def test_watches_see_the_same_changes(pair: Pair) -> None:
    begun = _versions(pair)
    for name in ("v", "w"):
        made = pair.real.ask("POST", PODS, a_pod(name, 0))[2]
        made["metadata"] = {
            key: each for key, each in made["metadata"].items() if key not in ("managedFields", "resourceVersion")
        }
        pair.server.do(lambda cluster, made=made: cluster.add("pods", made))
    pair.compare("DELETE", f"{PODS}/v", {"gracePeriodSeconds": 0})
    for labels in ({"app": "z"}, {"n": "1"}, {"app": "y"}):
        pair.compare("PATCH", f"{PODS}/w", {"metadata": {"labels": labels}}, MERGE_PATCH)
    pair.compare("DELETE", f"{PODS}/w", {"gracePeriodSeconds": 20})
    pair.compare("DELETE", f"{PODS}/w", {"gracePeriodSeconds": 0})
    for options in (
        "", "&labelSelector=app%3Dz", "&labelSelector=app%3Dy", "&fieldSelector=metadata.name%3Dw",
        "&labelSelector=none", "&limit=1&continue=abc", "&labelSelector=!n",
    ):  # fmt: skip
        theirs, ours = _watched(pair, begun, options)
        assert_same(ours, theirs)
        if not options:
            assert len(ours[2]) == 10
    theirs, ours = _watched(pair, begun, accept=PARTIAL.format(""))
    assert_same(ours, theirs)


@pytest.mark.parametrize("version", ["", "0"])
def test_a_watch_without_a_version_begins_with_existing_objects(pair: Pair, version: str) -> None:
    theirs, ours = _watched(pair, (version, version))
    for _, _, events in (theirs, ours):
        events.sort(key=lambda each: each["object"]["metadata"]["name"])  # no order is promised
    assert_same(ours, theirs)


def test_a_version_in_the_future_is_waited_for(pair: Pair) -> None:
    theirs, ours = _watched(pair, ("999999999", "999999999"))
    assert_same(ours, theirs)


def _forget(pair: Pair) -> None:
    """Make both forget what was: the real one compacts its etcd, we write more than the history holds."""
    for count in range(3):
        pair.real.ask("PATCH", f"{PODS}/p0", {"metadata": {"labels": {"n": str(count)}}}, MERGE_PATCH)
    pair.cluster.compact()

    def overflow(cluster: Cluster) -> None:
        for plural, name in (("pods", "p0"), ("events", "p0.1")):
            kept = cluster.manifest(plural, NAMESPACE, name)
            for count in range(2 * HISTORY):
                cluster.store.put(plural, NAMESPACE, name, {**kept, "count": count})
            cluster.store.put(plural, NAMESPACE, name, kept)

    pair.server.do(overflow)
    pair.copy()


def test_dropped_history_is_gone(pair: Pair) -> None:
    sides = (pair.real, pair.ours)
    begun = _versions(pair)
    # Events, which a real server doesn't cache: it reads them from etcd, and forgets them with it.
    page = f"{COPIED['events']}?limit=1"
    tokens = [side.get(page)["metadata"]["continue"] for side in sides]
    _forget(pair)
    expired = [side.ask("GET", f"{page}&continue={token}") for side, token in zip(sides, tokens, strict=True)]
    assert_same(expired[1], expired[0])
    assert expired[1][0] == 410
    # The token in the refusal continues where the first page ended, with what is there now.
    rest = [
        side.get(f"{page}&continue={answer[2]['metadata']['continue']}")
        for side, answer in zip(sides, expired, strict=True)
    ]
    assert_same(rest[1], rest[0])
    assert len(rest[1]["items"]) == 1
    exact = "resourceVersionMatch=Exact&resourceVersion="
    events = f"{COPIED['events']}?{exact}"
    theirs, ours = (side.ask("GET", f"{events}{version}") for side, version in zip(sides, begun, strict=True))
    assert_same(ours, theirs)
    path = f"{COPIED['events']}?watch=1&timeoutSeconds=1&resourceVersion="
    watched = [side.ask("GET", f"{path}{version}") for side, version in zip(sides, begun, strict=True)]
    for _, _, (event,) in watched:
        event["object"].pop("message")  # a cache and etcd say it in other words
    assert_same(watched[1], watched[0])
    assert watched[1][2][0]["object"]["code"] == 410
