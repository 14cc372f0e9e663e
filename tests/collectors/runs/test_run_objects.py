"""The workflows of an Argo server, asked for as its interface has it."""

import json
from urllib.parse import parse_qs, urlsplit

import pytest

from harness.collectors.collector import ObserverSettings
from harness.collectors.journal import Journal
from harness.collectors.runs.run_watch import HostApi, ServerApi
from harness.collectors.source_health import UnreachableError
from harness.model.http import HttpAnswer
from harness.targets.credentials import Credentials
from tests.support.servers import serving

EVENT = {"type": "MODIFIED", "object": {"metadata": {"name": "wf", "resourceVersion": "8"}}}


class ArgoServer:
    def __init__(self):
        self.asked, self.url = [], ""

    def __call__(self, request):
        url = urlsplit(request.path)
        self.asked.append((url.path, parse_qs(url.query), request.headers["Authorization"]))
        if request.headers["Authorization"] != "Bearer abc":
            return HttpAnswer(401, b'{"message": "token not valid"}')
        body = (
            {"result": EVENT} if "workflow-events" in url.path else {"metadata": {"resourceVersion": "7"}, "items": []}
        )
        return HttpAnswer(200, json.dumps(body).encode() + b"\n")


@pytest.fixture
def server():
    server = ArgoServer()
    with serving(server) as server.url:
        yield server


def settings(server, token="abc"):
    return ObserverSettings(host=server.url, credentials=Credentials(token), kube_requests_per_s=1000.0)


def test_options_of_lists_have_the_servers_names_and_the_token_is_sent(server, small_journal):
    api = ServerApi(settings(server), small_journal, "/api/v1/workflow-events/team")
    assert api.get("/api/v1/workflows/team", {"labelSelector": "a=b", "limit": "5"})["items"] == []
    (path, query, token) = server.asked[0]
    assert (path, token) == ("/api/v1/workflows/team", "Bearer abc")
    assert query == {"listOptions.labelSelector": ["a=b"], "listOptions.limit": ["5"], "fields": ["-items.spec"]}


def test_changes_come_from_a_stream_of_their_own_without_its_envelope(server, small_journal):
    api = ServerApi(settings(server), small_journal, "/api/v1/workflow-events/team")
    query = {"labelSelector": "a=b", "resourceVersion": "7", "allowWatchBookmarks": "true"}
    assert list(api.watch("/api/v1/workflows/team", query, metadata_only=True)) == [EVENT]
    (path, asked, _) = server.asked[0]
    assert path == "/api/v1/workflow-events/team"
    assert asked["fields"] == ["result.type,result.object.metadata"]
    assert "listOptions.allowWatchBookmarks" not in asked


def test_a_refused_token_is_an_unreachable_source(server, small_journal):
    with pytest.raises(UnreachableError, match="token not valid"):
        HostApi(settings(server, token="old"), small_journal).get("/api/v1/workflows/team")


@pytest.fixture
def small_journal(tmp_path):
    from harness.store import RunFolder

    with RunFolder.create(tmp_path, "run", exactly=True).recorder() as recorder:
        yield Journal(recorder)
