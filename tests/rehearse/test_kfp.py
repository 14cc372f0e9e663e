"""The rehearsal's KFP API answers as a real one was recorded to."""

import json
from typing import Any

import pytest
import yaml

from tests.support.conformance import RECORDED
from tests.support.real_parts.kfp import KfpApi, tasks_of
from tests.support.real_parts.kube import Kube, Manifest
from tests.support.real_parts.perform import PIPELINE
from tests.support.real_parts.run_nodes import PodState, RunNodes
from tests.support.recorded_runs import recorded_run

_ROOT = "/apis/v2beta1"
_ANSWERS = {each["label"]: each["answer"] for each in json.loads((RECORDED / "kfp.json").read_text())["answers"]}
_PIPELINE = PIPELINE.read_bytes()
_BY_NAME = {"filter": json.dumps({"predicates": [{"string_value": "rehearsal"}]})}
_SINCE = {"filter": json.dumps({"predicates": [{"timestamp_value": "2020-01-01T00:00:00Z"}]})}


class Made(Kube):
    """Takes workflows as the API server does."""

    def __init__(self) -> None:
        self.manifests: list[Manifest] = []

    def create(self, path: str, manifest: Manifest) -> Manifest:
        assert path.endswith("/namespaces/ml/workflows")
        self.manifests.append(manifest)
        return manifest


class Asked:
    """The API, set up as a load test does."""

    def __init__(self) -> None:
        self.kube = Made()
        self.api = KfpApi(self.kube, "ml")
        self.experiment = self.ask("POST", "experiments", body={"display_name": "e"})[1]["experiment_id"]
        sent = b"--b\r\nhead\r\n\r\n" + _PIPELINE + b"\r\n--b--\r\n"
        _, made = self.api.answer("POST", f"{_ROOT}/pipelines/upload", {"name": "rehearsal"}, sent)
        self.pipeline = made["pipeline_id"]

    def ask(self, method: str, path: str, query: dict[str, str] | None = None, body: object = None) -> Any:
        return self.api.answer(method, f"{_ROOT}/{path}", query or {}, json.dumps(body).encode())

    def run(self, name: str) -> dict[str, Any]:
        reference = {"pipeline_id": self.pipeline, "pipeline_version_id": "v"}
        given = {"experiment_id": self.experiment, "display_name": name, "pipeline_version_reference": reference}
        status, made = self.ask("POST", "runs", body={**given, "runtime_config": {"parameters": {"rows": 7}}})
        assert status == 200
        return dict(made)

    def page(self, **query: str) -> Any:
        return self.ask("GET", "runs", {"experiment_id": self.experiment, "page_size": "2", **query})


@pytest.fixture
def asked() -> Asked:
    return Asked()


def test_a_run_has_the_fields_that_were_recorded_from_its_creation_to_its_end(asked: Asked) -> None:
    made = asked.run("first")
    assert made.keys() == _ANSWERS["run good"]["body"].keys()
    spec = next(iter(yaml.safe_load_all(_PIPELINE)))
    nodes = RunNodes("rehearsal-x", tasks_of(spec))
    over = {node.name: PodState("Succeeded", 10.0, 20.0, host="node-0") for node in nodes.pod_nodes()}
    first = dict(list(over.items())[:1])
    for pods in (first, over):
        asked.api.report(made["run_id"], "rehearsal-x", nodes.status(pods, 5.0, 30.0))
    _, shown = asked.ask("GET", f"runs/{made['run_id']}")
    recorded = _ANSWERS["good over"]["body"]
    assert shown.keys() == recorded.keys()
    history = recorded_run("three").body["state_history"]
    assert [each["state"] for each in shown["state_history"]] == [each["state"] for each in history]
    fields = {frozenset(task) for task in recorded["run_details"]["task_details"]}
    assert {frozenset(task) for task in shown["run_details"]["task_details"]} <= fields
    assert len(shown["run_details"]["task_details"]) == len(nodes.status(over, 5.0, 30.0)["nodes"])


def test_pages_follow_each_other_and_a_repeated_filter_is_refused(asked: Asked) -> None:
    runs = {asked.run(f"run-{number}")["run_id"] for number in range(5)}
    seen, (_, page) = [], asked.page(sort_by="created_at desc", **_SINCE)
    assert page.keys() == _ANSWERS["list since"]["body"].keys()
    refused, said = asked.page(page_token=page["next_page_token"], **_SINCE)
    recorded = _ANSWERS["list since page 2"]
    assert (refused, said) == (recorded["status"], recorded["body"])
    seen += [run["run_id"] for run in page["runs"]]
    while token := page.get("next_page_token"):
        _, page = asked.page(page_token=token)
        seen += [run["run_id"] for run in page["runs"]]
    assert (len(seen), set(seen)) == (5, runs)


def test_the_same_name_twice_is_a_conflict_and_nothing_found_is_empty(asked: Asked) -> None:
    assert asked.ask("POST", "experiments", body={"display_name": "e"})[0] == _ANSWERS["dup exp"]["status"]
    assert asked.ask("GET", "experiments", _BY_NAME) == (200, _ANSWERS["find none"]["body"])
    _, found = asked.ask("GET", "pipelines", _BY_NAME)
    assert found.keys() == _ANSWERS["find pipeline"]["body"].keys()
    assert asked.ask("GET", "runs/unknown")[0] == _ANSWERS["get unknown run"]["status"]


def test_a_run_is_a_workflow_with_its_id(asked: Asked) -> None:
    made = asked.run("first")
    (workflow,) = asked.kube.manifests
    assert workflow["metadata"]["labels"] == {"pipeline/runid": made["run_id"]}
    assert workflow["metadata"]["generateName"] == "rehearsal-"
