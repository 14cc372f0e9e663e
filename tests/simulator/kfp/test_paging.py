"""Page tokens beside orders and filters, as a real KFP API server answered."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import kfp
import pytest

from tests.support.kfp_api import call, ends
from tests.support.serving import Served

RECORDED = json.loads(Path(__file__).with_name("recorded").joinpath("paging.json").read_text())["answers"]
FIRST = {each["label"]: each for each in RECORDED if "page_token" not in each["query"]}
LATER = [each for each in RECORDED if "page_token" in each["query"]]


@pytest.fixture(scope="module")
def experiment(client: kfp.Client, version: tuple[str, str]) -> str:
    """An experiment with runs enough for a second page of each query."""
    experiment = str(client.create_experiment("paging").experiment_id)
    for number in range(11):
        made = client.run_pipeline(experiment, f"run-{number}", pipeline_id=version[0], version_id=version[1])
    ends(client, made.run_id)
    return experiment


def ask(served: Served, experiment: str, query: dict[str, str]) -> tuple[int, Any]:
    recorded = RECORDED[0]["query"]["experiment_id"]
    own = {name: experiment if value == recorded else value for name, value in query.items()}
    return call(served, "GET", f"/runs?{urlencode(own)}")


@pytest.mark.parametrize("recorded", LATER, ids=lambda each: each["label"])
def test_a_token_is_taken_and_refused_as_a_real_server_does(
    served: Served, experiment: str, recorded: dict[str, Any]
) -> None:
    query = recorded["query"]
    _, first = ask(served, experiment, FIRST[query["page_token"]]["query"])
    status, answer = ask(served, experiment, query | {"page_token": first["next_page_token"]})
    assert status == recorded["status"], answer
    if status == 200:
        known = {run["run_id"] for run in first["runs"]}
        assert answer["runs"], "the second page has runs"
        assert not known & {run["run_id"] for run in answer["runs"]}
