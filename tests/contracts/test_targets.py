"""The contract of targets, for the built-in ones and that of examples/plugins. A new target adds one row to CASES."""

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import configargparse
import pytest

from harness.drive.http.clients import ProcessClient
from harness.model.http import HttpAnswer, HttpRequest
from harness.model.text.redaction import HIDDEN, Redaction
from harness.plan.options import register
from harness.targets.discovery import find, names
from harness.targets.target import PROCESSES, Platform, Target
from pipeswarm import (
    CleansUp,
    Cleanup,
    CompletedRun,
    DescribesTasks,
    HasServices,
    Input,
    ListsRuns,
    PipeswarmError,
    Plan,
    Prepared,
    Redactable,
    RejectedError,
    ReportsBack,
    RunPage,
    Scenario,
    SetUp,
    TargetUnreachableError,
    TaskDetail,
    WatchesRuns,
)
from tests.support import argo_exchange, hetida_platform, kfp_exchange
from tests.support.job_service import JobService

ROOT = Path(__file__).parents[2]
CAPABILITIES = (ListsRuns, WatchesRuns, ReportsBack, DescribesTasks, HasServices, CleansUp, Redactable)


@dataclass(frozen=True)
class Case:
    """One target: a platform that answers, the expected capabilities, options beside the defaults, a run's values."""

    platform: Callable[[], Callable[[HttpRequest], HttpAnswer]]
    capabilities: frozenset[type]
    texts: Mapping[str, str]
    values: Mapping[str, object]
    documents: tuple[Path, ...] = ()  # to redact
    secret: str = ""  # an input whose value is in the documents


def kfp_api() -> Callable[[HttpRequest], HttpAnswer]:
    run = {"run_id": "r1", "display_name": "1-a", "state": "RUNNING", "created_at": "2026-11-21T10:00:00Z"}
    return kfp_exchange.ready(**{"POST /runs": run, "GET /runs": {"runs": [run]}, "GET /runs/r1": run})


def sessions(request: HttpRequest) -> HttpAnswer:
    """Answers as if processes had run, which take seconds with Dask."""
    if request.method == "GET":
        return HttpAnswer(200, PROCESSES.encode())
    return HttpAnswer(200, b'{"exit_code": 0, "took_s": 1.0, "cpu_s": 1.0, "peak_bytes": 1}')


CASES = {
    "argo": Case(
        argo_exchange.Argo,
        frozenset({WatchesRuns, CleansUp, Redactable}),
        {},
        {"rows": "5"},
        (find("argo").EXAMPLE,),
        "model",
    ),
    "kfp": Case(
        kfp_api,
        frozenset({ListsRuns, DescribesTasks, CleansUp, Redactable}),
        {},
        {"data_multiplier": 5},
        (find("kfp").EXAMPLE,),
        "data_multiplier",
    ),
    "hetida": Case(
        hetida_platform.Platform,
        frozenset({ReportsBack, HasServices, Redactable}),
        {"transformation": str(find("hetida").EXAMPLE)},
        {},
        (find("hetida").EXAMPLE,),
        "threshold",
    ),
    "command": Case(ProcessClient, frozenset(), {"command": "true {n}"}, {"n": "5"}),
    "dask_tenants": Case(lambda: sessions, frozenset(), {}, {"width": 1}),
    "jobs": Case(JobService, frozenset({ListsRuns, CleansUp, HasServices}), {}, {"work_s": 0.5}),
}
MODULES = {"jobs": "pipeswarm_jobs.target"}  # of examples/plugins, which are not installed here
every_target = pytest.mark.parametrize("name", sorted(CASES))


@pytest.fixture(autouse=True)
def plugins(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "examples/plugins"))


def platform_of(name: str) -> Platform:
    return find(MODULES.get(name, name))


def texts_of(name: str) -> dict[str, str]:
    """The options as `prepare` gets them: each at its default, except those of the case."""
    defaults = {option.name: str(option.default) for option in platform_of(name).OPTIONS}
    return {"namespace": "", **defaults, **CASES[name].texts}


def prepared(name: str) -> Prepared:
    return platform_of(name).prepare(texts_of(name), simulated=True)


def ready(name: str, exchange: Callable[[HttpRequest], HttpAnswer]) -> tuple[Target, SetUp]:
    """A target after its set-up, as the load and the observer get it from the plan."""
    platform, offline = platform_of(name), prepared(name)
    options = dict(offline.options)
    found = platform.from_plan(Plan(name, "http://h", {}, 1, 0, False, options), offline.package).set_up(exchange)
    return platform.from_plan(Plan(name, "http://h", {}, 1, 0, False, options | dict(found.options))), found


def scenario(name: str) -> Scenario:
    return Scenario("1", "a", dict(CASES[name].values), {})


class Answering:
    """Answers always the same, and counts."""

    def __init__(self, answer: HttpAnswer | Exception) -> None:
        self.answer = answer
        self.asked: list[HttpRequest] = []

    def __call__(self, request: HttpRequest) -> HttpAnswer:
        self.asked.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def outcome_of(target: Target, given: Scenario, exchange: Answering) -> CompletedRun | RejectedError:
    try:
        ended = target.submit(given, exchange)
    except RejectedError as error:
        return error
    assert isinstance(ended, CompletedRun), "a rejected submission is not a run"
    return ended


def test_every_built_in_target_has_a_row():
    assert set(CASES) - set(MODULES) == set(names())


@every_target
def test_its_options_can_be_registered_and_understood_offline(name):
    offline = prepared(name)
    assert all(isinstance(value, str) for value in offline.options.values())
    assert offline.title
    assert all(isinstance(each, Input) for each in offline.inputs or ())
    register(configargparse.ArgumentParser(add_help=False), platform_of(name))
    assert all(option.help for option in platform_of(name).OPTIONS), "every option has a help"


@every_target
def test_set_up_finds_what_runs_need_and_their_inputs(name):
    _, found = ready(name, CASES[name].platform())
    json.dumps(dict(found.options))  # they go into the manifest
    assert found.inputs
    assert all(isinstance(each, Input) for each in found.inputs)


@every_target
def test_a_submission_is_one_request(name):
    platform = CASES[name].platform()
    target, _ = ready(name, platform)
    asked = []
    started = target.submit(scenario(name), lambda request: asked.append(request) or platform(request))
    assert len(asked) == 1
    assert asked[0].method == "POST"
    assert (started.run if isinstance(started, CompletedRun) else started) not in {"", "None"}


@every_target
@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_rejected_submission_is_never_retried(name, status):
    target, _ = ready(name, CASES[name].platform())
    busy = Answering(HttpAnswer(status, b'{"message": "busy", "detail": "busy"}'))
    outcome = outcome_of(target, scenario(name), busy)
    if isinstance(outcome, RejectedError):
        assert outcome.status == status
        assert "busy" in outcome.message
    else:
        assert "busy" in outcome.error, "an execution that failed is a run that failed"
    assert len(busy.asked) == 1


@every_target
def test_a_submission_without_an_answer_is_neither_retried_nor_hidden(name):
    target, _ = ready(name, CASES[name].platform())
    silent = Answering(TargetUnreachableError("timed out"))
    with pytest.raises(TargetUnreachableError):
        target.submit(scenario(name), silent)
    assert len(silent.asked) == 1


@every_target
@pytest.mark.parametrize("answer", [
    HttpAnswer(200, b"<!doctype html><title>Sign in</title>"), HttpAnswer(401, b"{}"), HttpAnswer(502, b""),
])  # fmt: skip
def test_another_service_at_the_address_is_noticed_during_set_up(name, answer):
    with pytest.raises(PipeswarmError) as raised:
        ready(name, Answering(answer))
    assert raised.value.hint


@every_target
def test_it_has_the_capabilities_that_it_is_said_to_have(name):
    target, _ = ready(name, CASES[name].platform())
    platform = platform_of(name)
    has = {each for each in CAPABILITIES if isinstance(platform if each is Redactable else target, each)}
    assert has == CASES[name].capabilities
    for capability in has:
        for method in (each for each in vars(capability) if not each.startswith("_")):
            offered = inspect.signature(getattr(platform if capability is Redactable else target, method))
            wanted = inspect.signature(getattr(capability, method)).replace()
            assert list(offered.parameters) == list(wanted.parameters)[1:], f"{capability.__name__}.{method}"


@every_target
def test_its_capabilities_work_on_the_run_that_was_submitted(name):
    platform = CASES[name].platform()
    target, _ = ready(name, platform)
    started = target.submit(scenario(name), platform)
    if isinstance(target, ListsRuns):
        page = target.list_runs(platform)
        assert isinstance(page, RunPage)
        assert [run.id for run in page.runs] == [started]
        assert page.runs[0].created_at > 0
    if isinstance(target, WatchesRuns):
        assert target.watched().path
        assert target.watched().over
        assert target.read_run({"metadata": {"name": started}}).id == started
        assert target.tasks_in({"metadata": {"name": started}}) == ()
    if isinstance(target, DescribesTasks):
        assert all(isinstance(task, TaskDetail) for task in target.read_tasks(platform, str(started)))
    if isinstance(target, ReportsBack):
        assert target.read_callback(b"{}") is None
    if isinstance(target, HasServices):
        assert all(service.name and service.url for service in target.services(platform))
    if isinstance(target, CleansUp):
        target.clean(str(started), Cleanup.DELETE, platform)
        target.clean("gone", Cleanup.DELETE, Answering(HttpAnswer(404, b"{}")))
        with pytest.raises(RejectedError):
            target.clean(str(started), Cleanup.TERMINATE, Answering(HttpAnswer(503, b"{}")))


@pytest.mark.parametrize("name", sorted(name for name, case in CASES.items() if Redactable in case.capabilities))
def test_its_documents_are_kept_without_values(name):
    case, platform = CASES[name], platform_of(name)
    assert isinstance(platform, Redactable)
    for document in case.documents:
        bare = platform.without_values(document.read_bytes(), Redaction(names=[case.secret]))
        assert HIDDEN.encode() in bare
        assert case.secret.encode() in bare, "only the value is hidden"


@every_target
def test_a_page_of_the_documentation_names_it(name):
    pages = "".join(page.read_text() for page in (ROOT / "docs").glob("*.md")) + (ROOT / "README.md").read_text()
    assert ("examples/plugins" if name in MODULES else f"locustfiles/{name}.py") in pages
