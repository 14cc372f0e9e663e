"""A network that loses answers, between the load and a platform on which the same test ran a minute ago."""

import itertools
import threading

import pytest
import urllib3

from harness.model.http import HttpAnswer
from tests.support.e2e import FEW, PIPELINE
from tests.support.servers import serving


@pytest.fixture
def relay(platform):
    """Requests to the platform; the answers to some submissions are lost, from when `cuts` is set on."""
    upstream, submitted, cuts = urllib3.PoolManager(retries=False), itertools.count(), threading.Event()

    def answer(request):
        found = upstream.request(
            request.method, platform.url + request.path, body=request.body, headers=dict(request.headers)
        )
        submits = (request.method, request.path.endswith("/runs")) == ("POST", True)
        if submits and cuts.is_set() and next(submitted) % 6 == 0:
            return None  # the run was made
        kept = {
            name: found.headers[name]
            for name in ("content-type", "grpc-metadata-content-type")
            if name in found.headers
        }
        return HttpAnswer(found.status, found.data, kept)

    with serving(answer) as url:
        yield url, cuts


def test_lost_answers_are_found_by_name_although_the_same_test_ran_before(locust, relay, platform):
    url, cuts = relay

    def load():
        return locust.headless(
            "--host", url, "--pipeline", PIPELINE, *FEW,
            "--schedule", "constant", "--rate", "8/s", "--for", "3s", KUBECONFIG=platform.kubeconfig,
        )  # fmt: skip

    assert load().code == 0
    cuts.set()
    finished = load()
    report = finished.report()
    lost = [row for row in finished.rows() if row["outcome"] == "rejected"]
    assert len(lost) == 4
    assert {row["status"] for row in lost} == {None}
    assert (report["validity"]["verdict"], report["validity"]["reasons"]) == ("VALID", [])
    assert report["ledger"]["succeeded"] == 24
