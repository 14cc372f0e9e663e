"""Kubeflow Pipelines for several users: a namespace, and an experiment, for each tenant."""

import json
from urllib.parse import parse_qs, urlsplit

import pytest

from harness.model import ConfigError
from harness.model.http import HttpAnswer
from harness.model.scenario import Scenario
from harness.targets.kfp import KfpTarget, prepare
from tests.support.kfp_exchange import OPTIONS, TEXTS, VERSION


def run_of(name: str, second: int) -> dict[str, str]:
    return {"run_id": name, "display_name": name, "created_at": f"2026-11-21T10:00:{second:02}Z", "state": "RUNNING"}


class OfTenants:
    """A KFP for several users: experiments and listings, in pages, by namespace."""

    def __init__(self, **pages: list[list[dict[str, str]]]) -> None:
        self.pages = pages
        self.created: list[tuple[str, str]] = []
        self.started: list[str] = []

    def __call__(self, request):
        url = urlsplit(request.path)
        path, query = url.path.removeprefix("/apis/v2beta1"), {k: v[0] for k, v in parse_qs(url.query).items()}
        namespace = query.get("namespace", "")
        if path == "/runs" and request.method == "POST":
            body = json.loads(request.body)
            self.started.append(body["experiment_id"])
            answer = {"run_id": body["display_name"]}
        elif path == "/runs":
            assert query["experiment_id"] == f"e-{namespace}"
            number = int(query.get("page_token", "0"))
            more = {"next_page_token": str(number + 1)} if number + 1 < len(self.pages[namespace]) else {}
            answer = {"runs": self.pages[namespace][number], **more}
        elif path == "/experiments" and request.method == "POST":
            namespace = json.loads(request.body)["namespace"]
            self.created.append(("experiment", namespace))
            answer = {"experiment_id": f"e-{namespace}"}
        elif path == "/pipelines/upload":
            self.created.append(("pipeline", namespace))
            answer = {"pipeline_id": "p1"}
        elif path == "/healthz":
            answer = {"multi_user": True}
        else:
            answer = {"/pipelines/p1/versions": {"pipeline_versions": [VERSION]}, "/pipelines/p1/versions/v1": VERSION}
            answer = answer.get(path, {})
        return HttpAnswer(200, json.dumps(answer).encode())


def of_tenants(server: OfTenants) -> KfpTarget:
    options = OPTIONS | {"pipeline_name": "nightly-0123", "tenants": "alpha;beta"}
    found = KfpTarget(options, package=b"pipelineInfo: {}").set_up(server)
    assert found.tenants == ("alpha", "beta")
    return KfpTarget(options | dict(found.options))


def test_each_tenant_gets_an_experiment_in_its_namespace_and_its_own_runs():
    server = OfTenants()
    target = of_tenants(server)
    assert server.created == [
        ("experiment", "alpha"), ("pipeline", "alpha"), ("experiment", "beta"), ("pipeline", "beta"),
    ]  # fmt: skip
    for tenant in ("beta", "alpha", "beta"):
        target.submit(Scenario("1", "a", {}, {}, tenant), server)
    assert server.started == ["e-beta", "e-alpha", "e-beta"]


def test_the_tenants_runs_are_listed_together_up_to_where_all_are_known():
    """Readers stop at a page whose last run is older than what they look for."""
    server = OfTenants(
        alpha=[[run_of("a9", 9), run_of("a8", 8)], [run_of("a2", 2)]],
        beta=[[run_of("b7", 7), run_of("b1", 1)], [run_of("b0", 0)]],
    )
    target = of_tenants(server)
    first = target.list_runs(server)
    assert {run.id for run in first.runs} == {"a9", "a8", "b7", "b1"}
    assert first.runs[-1].id == "a8", "of alpha nothing older is known yet"
    second = target.list_runs(server, first.next_page)
    assert ([run.id for run in second.runs], second.next_page) == (["a2", "b0"], "")


def test_a_tenant_whose_listing_has_ended_is_not_asked_again():
    server = OfTenants(alpha=[[]], beta=[[run_of("b7", 7)], [run_of("b1", 1)]])
    target = of_tenants(server)
    first = target.list_runs(server)
    server.pages.pop("alpha")  # would fail
    assert [run.id for run in target.list_runs(server, first.next_page).runs] == ["b1"]


def test_namespaces_of_tenants_and_one_for_all_exclude_each_other():
    assert prepare(TEXTS | {"tenant-namespace": "alpha; beta"}, simulated=True).options["tenants"] == "alpha;beta"
    with pytest.raises(ConfigError, match="exclude each other"):
        prepare(TEXTS | {"tenant-namespace": "alpha", "namespace": "beta"}, simulated=True)


def test_a_kfp_with_a_single_user_would_mix_the_tenants_and_is_refused():
    target = KfpTarget(OPTIONS | {"pipeline_name": "nightly-0123", "tenants": "alpha;beta"}, package=b"")
    with pytest.raises(ConfigError, match="single user"):
        target.set_up(lambda _: HttpAnswer(200, b'{"tag_name": "2.17.0"}'))
