"""A platform whose runs are over with their answer: a test of a million runs ends when the last one is sent."""

import orjson

from harness.model.http import HttpRequest
from harness.targets.completed_run import CompletedRun
from harness.targets.target import Prepared, SetUp

OPTIONS, DEFAULTS, HOST_VARIABLE = (), {"simulate": "demo"}, "INSTANT_ENDPOINT"


class Instant:
    def set_up(self, exchange):
        exchange(HttpRequest("GET", "/"))
        return SetUp({}, ())

    def submit(self, scenario, exchange):
        answer = exchange(HttpRequest("POST", "/runs", orjson.dumps({"name": scenario.run_name})))
        return CompletedRun(orjson.loads(answer.body)["run_id"], "SUCCEEDED")


def prepare(texts, simulated):  # noqa: ARG001  # it has no options
    return Prepared({}, "instant", ())


def from_plan(plan, package=None):  # noqa: ARG001  # nor any set-up
    return Instant()
