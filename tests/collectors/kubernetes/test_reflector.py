"""List and watch against a server that plays each case of the protocol, including failures."""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from harness.collectors.collector import ObserverSettings
from harness.collectors.journal import Journal
from harness.collectors.kubernetes.kube_api import _NAME_IN_PATH, KubeApi
from harness.collectors.kubernetes.reflector import Reflector
from harness.collectors.source_health import SourceHealth, UnreachableError
from harness.model import ConfigError, Event
from harness.store import RunFolder
from tests.support.servers import Answer, Served, kubeconfig, until

LIST, WATCH = "list", "watch"


def thing(name: str, version: int) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": str(version)}}


def items(*things: dict[str, Any], version: int, token: str = "") -> Answer:
    return 200, {"metadata": {"resourceVersion": str(version), "continue": token}, "items": list(things)}


def change(kind: str, name: str, version: int) -> dict[str, Any]:
    return {"type": kind, "object": thing(name, version)}


def status(code: int, message: str = "no") -> dict[str, Any]:
    return {"kind": "Status", "code": code, "message": message, "reason": "x"}


class Script:
    """Plays (verb, answer) in order; a watch beyond the script stays open until the server stops."""

    def __init__(self, *lines: tuple[str, Answer]) -> None:
        self.lines = list(lines)
        self.problems: list[str] = []
        self.over = threading.Event()

    def __call__(self, path: str, query: dict[str, str]) -> Answer:
        verb = WATCH if "watch" in query else LIST
        if not self.lines:
            if verb == LIST:
                self.problems.append(f"listed again: {query}")
            return 200, self._silence()
        expected, answer = self.lines.pop(0)
        if expected != verb:
            self.problems.append(f"{verb} {query} where {expected} was due")
        return answer

    def _silence(self) -> Iterator[dict[str, Any]]:
        self.over.wait(20)
        yield from ()


@contextmanager
def playing(
    tmp_path: Path, script: Script, *, wait_for: int
) -> Iterator[tuple[list[tuple[str, str]], Served, RunFolder]]:
    """Follow the script for the given number of changes, then stop; returns (change, name), the server, the folder."""
    folder = RunFolder.create(tmp_path, "run")
    told: list[tuple[str, str]] = []
    stop = threading.Event()
    with Served(script) as server, folder.recorder() as recorder:
        journal = Journal(recorder)
        settings = ObserverSettings(
            host="http://x", kubeconfig=kubeconfig(tmp_path / "config", server.url), kube_requests_per_s=1000
        )
        api = KubeApi(settings, journal)
        reflector = Reflector(
            api, "/api/v1/pods", {"labelSelector": "a"}, lambda kind, each: told.append((kind, each["metadata"]["name"])),
            health=SourceHealth("pods", journal), journal=journal,
        )  # fmt: skip
        thread = threading.Thread(target=reflector.follow, args=(stop,), daemon=True)
        thread.start()
        try:
            until(
                lambda: len(told) >= wait_for and not script.lines,
                f"{wait_for} changes, told {told}, left {script.lines}",
            )
        finally:
            stop.set()
            api.interrupt()
            script.over.set()
            thread.join(10)
        assert not thread.is_alive()
        assert not script.problems
        yield told, server, folder


def notes(folder: RunFolder) -> list[str]:
    return [event.reason for event in folder.records(Event)]


def test_it_lists_pages_then_watches_from_the_lists_version(tmp_path: Path) -> None:
    script = Script(
        (LIST, items(thing("a", 3), version=9, token="next/page")),
        (LIST, items(thing("b", 4), version=9)),
        (WATCH, (200, [change("MODIFIED", "a", 10), change("ADDED", "c", 11), change("DELETED", "b", 12)])),
    )
    with playing(tmp_path, script, wait_for=5) as (told, server, folder):
        assert told == [("LISTED", "a"), ("LISTED", "b"), ("MODIFIED", "a"), ("ADDED", "c"), ("DELETED", "b")]
        (_, first), (_, second), (_, third), *_ = server.asked
        assert (first["limit"], second["continue"], third["resourceVersion"]) == ("500", "next/page", "9")
        assert all(query["labelSelector"] == "a" for _, query in server.asked)
        assert set(server.tokens) == {"Bearer t0ken-of-the-test"}
        assert notes(folder) == []


def test_a_bookmark_moves_the_version_and_nothing_else(tmp_path: Path) -> None:
    bookmark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "500"}}}
    script = Script((LIST, items(version=9)), (WATCH, (200, [bookmark])), (WATCH, (200, [change("ADDED", "a", 501)])))
    with playing(tmp_path, script, wait_for=1) as (told, server, _):
        assert told == [("ADDED", "a")]
        assert server.asked[2][1]["resourceVersion"] == "500"
        assert server.asked[2][1]["allowWatchBookmarks"] == "true"


def test_an_interrupted_watch_resumes_from_the_last_change(tmp_path: Path) -> None:
    script = Script(
        (LIST, items(version=9)),
        (WATCH, (200, [change("ADDED", "a", 10), "DROP"])),
        (WATCH, (200, [change("MODIFIED", "a", 11)])),
    )
    with playing(tmp_path, script, wait_for=2) as (told, server, folder):
        assert told == [("ADDED", "a"), ("MODIFIED", "a")]
        assert server.asked[2][1]["resourceVersion"] == "10"
        assert notes(folder) == ["Retry"]


@pytest.mark.parametrize(
    "gone",
    [(410, status(410, "too old resource version")), (200, [{"type": "ERROR", "object": status(410, "too old")}])],
)
def test_after_expired_history_vanished_objects_and_the_gap_are_reported(tmp_path: Path, gone: Answer) -> None:
    script = Script(
        (LIST, items(thing("a", 3), thing("b", 4), version=9)),
        (WATCH, gone),
        (LIST, items(thing("b", 40), thing("c", 41), version=90)),
        (WATCH, (200, [change("MODIFIED", "c", 91)])),
    )
    with playing(tmp_path, script, wait_for=6) as (told, _, folder):
        assert told == [
            ("LISTED", "a"),
            ("LISTED", "b"),
            ("LISTED", "b"),
            ("LISTED", "c"),
            ("DELETED", "a"),
            ("MODIFIED", "c"),
        ]
        assert notes(folder) == ["Gap"]


def test_a_listing_whose_token_expired_starts_again(tmp_path: Path) -> None:
    script = Script(
        (LIST, items(thing("a", 3), version=9, token="t")),
        (LIST, (410, status(410, "The provided continue parameter is too old"))),
        (LIST, items(thing("a", 3), thing("b", 4), version=20)),
        (WATCH, (200, [])),
    )
    with playing(tmp_path, script, wait_for=3) as (told, server, _):
        assert {name for _, name in told} == {"a", "b"}
        assert "continue" not in server.asked[2][1]


def test_errors_are_retried_and_the_gap_recorded(tmp_path: Path) -> None:
    script = Script(
        (LIST, items(version=9)),
        (WATCH, (200, [change("ADDED", "a", 10)])),
        (WATCH, (503, status(503, "etcd leader changed"))),
        (WATCH, (200, [change("ADDED", "b", 11)])),
    )
    with playing(tmp_path, script, wait_for=2) as (told, _, folder):
        assert told == [("ADDED", "a"), ("ADDED", "b")]
        assert notes(folder) == ["Retry", "Resumed"]


def test_changes_before_the_end_are_still_reported(tmp_path: Path) -> None:
    """When stopped during a silent watch, it requests the changes since the last version once more."""
    last = threading.Event()

    def answer(path: str, query: dict[str, str]) -> Answer:
        if "watch" not in query:
            return items(version=9)
        if query["timeoutSeconds"] == "1":
            return 200, [change("ADDED", "late", 10)]
        last.wait(20)
        return 200, []

    folder = RunFolder.create(tmp_path, "run")
    told: list[str] = []
    stop = threading.Event()
    with Served(answer) as server, folder.recorder() as recorder:
        journal = Journal(recorder)
        api = KubeApi(ObserverSettings(host="http://x", kubeconfig=kubeconfig(tmp_path / "c", server.url)), journal)
        reflector = Reflector(
            api,
            "/x",
            {},
            lambda _, each: told.append(each["metadata"]["name"]),
            health=SourceHealth("x", journal),
            journal=journal,
        )
        thread = threading.Thread(target=reflector.follow, args=(stop,), daemon=True)
        thread.start()
        until(lambda: len(server.asked) >= 2, "the watch")
        stop.set()
        last.set()
        api.interrupt()
        thread.join(10)
    assert told == ["late"]


class TestAccess:
    def test_an_expired_token_is_read_again(self, tmp_path: Path) -> None:
        tokens = iter([(401, status(401, "Unauthorized")), (200, {"ok": 1})])
        with (
            Served(lambda _path, _query: next(tokens)) as server,
            RunFolder.create(tmp_path, "r").recorder() as recorder,
        ):
            config = tmp_path / "c"
            kubeconfig(config, server.url, token="old-token")
            api = KubeApi(ObserverSettings(host="http://x", kubeconfig=str(config)), Journal(recorder))
            api._connected()
            kubeconfig(config, server.url, token="new-token")
            assert api.get("/version") == {"ok": 1}
            assert server.tokens == ["Bearer old-token", "Bearer new-token"]

    def test_a_refusal_says_what_was_refused(self, tmp_path: Path) -> None:
        refused = status(403, 'nodes is forbidden: User "u" cannot list resource "nodes"')
        with (
            Served(lambda _path, _query: (403, refused)) as server,
            RunFolder.create(tmp_path, "r").recorder() as recorder,
        ):
            api = KubeApi(
                ObserverSettings(host="http://x", kubeconfig=kubeconfig(tmp_path / "c", server.url)), Journal(recorder)
            )
            with pytest.raises(UnreachableError, match="GET /api/v1/nodes: 403 nodes is forbidden") as caught:
                api.get("/api/v1/nodes")
            assert caught.value.status == 403

    def test_a_missing_kubeconfig_is_reported(self, tmp_path: Path) -> None:
        with RunFolder.create(tmp_path, "r").recorder() as recorder:
            api = KubeApi(ObserverSettings(host="http://x", kubeconfig="/does/not/exist"), Journal(recorder))
            with pytest.raises(UnreachableError, match="the kubeconfig can't be used"):
                api.get("/version")

    @pytest.mark.parametrize(("given", "refused"), [({}, pytest.raises(ConfigError, match="has no context 'prod'")),
                                                    ({"kubeconfig": "/does/not/exist"}, nullcontext())])  # fmt: skip
    def test_a_context_that_is_not_in_the_kubeconfig_is_refused_at_once(
        self, tmp_path: Path, given: dict[str, Any], refused: AbstractContextManager[Any]
    ) -> None:
        known = {"kubeconfig": kubeconfig(tmp_path / "c", "http://127.0.0.1:1")}
        settings = ObserverSettings(host="http://x", kube_context="prod", **(known | given))
        with RunFolder.create(tmp_path, "r").recorder() as recorder, refused:
            KubeApi(settings, Journal(recorder))

    def test_an_unreachable_server_is_reported_with_its_address(self, tmp_path: Path) -> None:
        with RunFolder.create(tmp_path, "r").recorder() as recorder:
            api = KubeApi(
                ObserverSettings(host="http://x", kubeconfig=kubeconfig(tmp_path / "c", "http://127.0.0.1:1")),
                Journal(recorder),
            )
            with pytest.raises(UnreachableError, match=r"http://127\.0\.0\.1:1 does not answer"):
                api.get("/version")


def test_requests_are_counted_by_what_is_asked_for_not_by_its_name() -> None:
    """Live views show these counts: one for each workflow that is read would let them grow as long as the test lasts."""
    prefix = "/apis/argoproj.io/v1alpha1/namespaces/kubeflow"
    assert _NAME_IN_PATH.sub(r"/\1/*", f"{prefix}/workflows/one-qgkr8") == f"{prefix}/workflows/*"
    assert _NAME_IN_PATH.sub(r"/\1/*", "/api/v1/namespaces/n/pods/p/log") == "/api/v1/namespaces/n/pods/*/log"
    assert _NAME_IN_PATH.sub(r"/\1/*", f"{prefix}/workflows") == f"{prefix}/workflows"
