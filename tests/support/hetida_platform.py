"""Recorded answers of hetida designer (version 0.9.8), and a backend whose answers a test decides."""

import json
from pathlib import Path

from harness.model.http import HttpAnswer
from harness.model.plan import Plan
from harness.model.scenario import Scenario
from harness.targets import hetida

RECORDED = Path(__file__).with_name("recorded_hetida")
RUNTIME_REQUEST = RECORDED / "runtime_request.json"
EXAMPLE = hetida.EXAMPLE
TEXTS = dict.fromkeys(("mode", "transformation", "revision-group", "wiring", "expect-output", "callback-url"), "")


def recorded(name):
    return json.loads((RECORDED / f"{name}.json").read_text())


def answer(body, status=200, **headers):
    return HttpAnswer(status, body if isinstance(body, bytes) else json.dumps(body).encode(), headers)


class Platform:
    """A backend and a runtime: records requests, and answers executions with `answer`."""

    def __init__(self, **stored):
        self.asked = []
        self.stored = stored
        self.answer = answer(recorded("backend_execute_response"))

    def __call__(self, request):
        self.asked.append(request)
        path = request.path.partition("?")[0].removeprefix("/api")
        if path == "/adapters/":
            return answer([{"id": "plants"}, {"id": "slow"}])
        if path == "/engine/info":
            return answer({"version": "0.9.8"})
        if path == "/transformations/":
            return answer(list(self.stored.values()))
        if request.method == "PUT":
            self.stored[path.rsplit("/", 1)[1]] = json.loads(request.body)
            return answer(json.loads(request.body), 201)
        if request.method == "GET":
            name = path.rsplit("/", 1)[1]
            return answer(self.stored[name]) if name in self.stored else answer({"detail": "Found no"}, 404)
        return self.answer

    @property
    def sent(self):
        return json.loads(self.asked[-1].body)


def example(**changes):
    return json.loads(EXAMPLE.read_text()) | changes


def written(path, document):
    path.write_text(json.dumps(document))
    return str(path)


def target(host="http://hd.example", platform=None, **texts):
    """A target that is set up, and its inputs."""
    prepared = hetida.prepare({**TEXTS, **texts}, simulated=False)
    plan = Plan("hetida", host, {}, 1, 0, False, dict(prepared.options))
    found = hetida.from_plan(plan, prepared.package).set_up(platform or Platform())
    plan = Plan("hetida", host, {}, 1, 0, False, {**prepared.options, **found.options})
    return hetida.from_plan(plan), {each.name: each for each in found.inputs}


def run_of(**values):
    return Scenario("1", "a", values, {})
