"""What the KFP API refuses, with the codes and in the words of the real server."""

import json
from base64 import b64encode
from pathlib import Path
from urllib.parse import quote

import kfp
import kfp_server_api
import pytest
import yaml

from tests.support.kfp_api import UNKNOWN, call, ends
from tests.support.serving import Served


def test_there_are_no_recurring_runs(client: kfp.Client, training: Path, experiment: str) -> None:
    assert client.list_recurring_runs(sort_by="created_at desc").recurring_runs is None
    with pytest.raises(kfp_server_api.ApiException) as refused:
        client.create_recurring_run(
            experiment, "nightly", interval_second=60, pipeline_package_path=str(training), enable_caching=False
        )
    assert refused.value.status == 501
    for act in (client.get_recurring_run, client.enable_recurring_run, client.delete_recurring_run):
        with pytest.raises(kfp_server_api.ApiException) as refused:
            act(UNKNOWN)
        assert refused.value.status == 404


def test_the_default_experiment_stays(client: kfp.Client, served: Served) -> None:
    default = client.get_experiment(experiment_name="Default").experiment_id
    status, error = call(served, "DELETE", f"/experiments/{default}")
    assert (status, error["code"]) == (409, 10)
    assert error["details"][0]["message"].endswith("The default experiment cannot be deleted")


def test_a_run_that_went_well_or_is_over_is_neither_retried_nor_terminated(
    client: kfp.Client, experiment: str, version: tuple[str, str], served: Served
) -> None:
    run = client.run_pipeline(experiment, "well", pipeline_id=version[0], version_id=version[1]).run_id
    ends(client, run)
    status, error = call(served, "POST", f"/runs/{run}:retry", {})
    assert (status, error["code"], error["details"][0]["message"]) == (
        409,
        10,
        "Workflow must be Failed/Error to retry",
    )
    status, error = call(served, "POST", f"/runs/{run}:terminate", {})
    message = f"Failed to terminate a run {run}. Row not found"
    assert status == 400
    assert (
        error["message"] == f"Failed to terminate a run: Failed to terminate run {run}: Invalid input error: {message}"
    )


def test_errors_name_all_steps_and_their_details_the_last_one(served: Served) -> None:
    status, error = call(served, "GET", f"/runs/{UNKNOWN}")
    message = f"Run {UNKNOWN} not found"
    assert status == 404
    assert error["message"] == f"Failed to get a run: Failed to fetch run {UNKNOWN}: ResourceNotFoundError: {message}"
    assert error["details"][0]["message"] == message
    _, error = call(served, "GET", "/runs?page_size=abc")  # refused by the gateway, which gives no details
    assert "details" not in error


@pytest.mark.parametrize(
    ("predicate", "message"),
    [
        ({"operation": "EQUALS", "key": "x", "string_value": "y"}, 'unrecognized field "x"'),
        ({"operation": "IN", "key": "name", "string_value": "y"}, "cannot use IN operator with scalar type string"),
        (
            {"operation": 1, "key": "name", "long_values": {"values": [1]}},
            "scalar operator EQUALS on array type []int64",
        ),
        ({"operation": 9, "key": "name", "int_value": 1}, "non string value type int32 with operator IS_SUBSTRING"),
        ({"operation": 4, "key": "name", "string_value": "y"}, "invalid predicate operation"),
        ({"operation": 1, "key": "name", "text": "y"}, "failed to parse valid filter"),
    ],
)
def test_filters_that_make_no_sense_are_refused_in_the_servers_words(
    predicate: dict[str, object], message: str, served: Served
) -> None:
    status, error = call(served, "GET", f"/runs?filter={quote(json.dumps({'predicates': [predicate]}))}")
    assert (status, error["code"]) == (400, 3)
    assert message in error["message"]


@pytest.mark.parametrize(("name", "value"), [("data_multiplier", "4000"), ("url", 7), ("data_multiplier", True)])
def test_parameters_must_have_the_pipelines_types(
    name: str, value: object, served: Served, version: tuple[str, str], experiment: str
) -> None:
    reference = {"pipeline_id": version[0], "pipeline_version_id": version[1]}
    body = {
        "display_name": "r", "experiment_id": experiment, "pipeline_version_reference": reference,
        "runtime_config": {"parameters": {name: value}},
    }  # fmt: skip
    status, error = call(served, "POST", "/runs", body)
    assert (status, error["code"]) == (400, 3)
    assert f"input parameter {name} requires type" in error["message"]


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        ({"pipeline_version_reference": {"pipeline_id": UNKNOWN, "pipeline_version_id": UNKNOWN}}, 500, "not found"),
        ({"experiment_id": UNKNOWN}, 404, "Experiment"),
        ({"display_name": ""}, 500, "name"),
        ({"runtime_config": {"parameters": {"nonsense": 1}}}, 400, "nonsense"),
        ({"no_such_field": 1}, 400, 'unknown field "no_such_field"'),
        ({"pipeline_version_reference": None}, 500, "pipeline"),
    ],
)
def test_a_run_that_can_not_be_is_refused_as_the_real_server_does(  # fixtures and a table's columns
    change: dict[str, object], status: int, message: str, served: Served, version: tuple[str, str], experiment: str
) -> None:
    body: dict[str, object] = {
        "display_name": "refused",
        "experiment_id": experiment,
        "pipeline_version_reference": {"pipeline_id": version[0], "pipeline_version_id": version[1]},
    }
    answered, error = call(served, "POST", "/runs", body | change)
    assert answered == status
    assert message in error["message"]
    assert error.keys() - {"details"} == {"code", "message"}


def test_a_required_parameter_must_be_given(served: Served, training: Path, experiment: str) -> None:
    spec = yaml.safe_load(training.read_text())
    spec["root"]["inputDefinitions"]["parameters"]["url"] = {"parameterType": "STRING"}
    body = {"display_name": "r", "experiment_id": experiment, "pipeline_spec": spec}
    status, error = call(served, "POST", "/runs", body)
    assert (status, error["code"]) == (400, 3)
    assert "parameter url is not optional" in error["message"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/runs?page_size=abc", 400),
        ("/runs?page_size=-1", 400),
        ("/runs?page_token=nonsense", 400),
        ("/runs?sort_by=no_such_key", 400),
        ("/runs?sort_by=created_at%20sideways", 400),
        ("/runs?filter=%7B", 400),
        (
            "/runs?filter=%7B%22predicates%22%3A%5B%7B%22operation%22%3A1%2C%22key%22%3A%22x%22%2C%22string_value%22%3A%22y%22%7D%5D%7D",
            400,
        ),
        (f"/runs?experiment_id={UNKNOWN}", 404),
        (f"/runs/{UNKNOWN}", 404),
        (f"/pipelines/{UNKNOWN}", 404),
        (f"/pipelines/{UNKNOWN}/versions", 404),
        (f"/experiments/{UNKNOWN}", 404),
        ("/nowhere", 404),
    ],
)
def test_unknown_objects_and_malformed_requests_are_refused(path: str, status: int, served: Served) -> None:
    answered, body = call(served, "GET", path)
    assert answered == status
    assert body["code"] == {400: 3, 404: 5}[status]


@pytest.mark.parametrize(
    "change",
    [
        {"display_name": 1}, {"runtime_config": []}, {"runtime_config": {"parameters": "x"}}, {"experiment_id": {}},
        {"pipeline_version_reference": "x"}, {"pipeline_spec": [1], "pipeline_version_reference": None},
    ],
    ids=str,
)  # fmt: skip
def test_messages_of_another_shape_are_malformed(
    change: dict[str, object], served: Served, version: tuple[str, str]
) -> None:
    reference = {"pipeline_id": version[0], "pipeline_version_id": version[1]}
    status, error = call(
        served, "POST", "/runs", {"display_name": "r", "pipeline_version_reference": reference, **change}
    )
    assert (status, error["code"], error.get("details")) == (400, 3, None)


@pytest.mark.parametrize("root", [{"dag": 1}, {"dag": {"tasks": {"a": 1}}}, {"inputDefinitions": []}], ids=str)
def test_malformed_pipelines_are_refused_without_a_crash(root: object, served: Served) -> None:
    spec = {"pipelineInfo": {"name": "broken"}, "root": root}
    status, error = call(served, "POST", "/runs", {"display_name": "r", "pipeline_spec": spec})
    assert (status, error["code"]) in {(400, 3), (500, 13)}
    assert "invalid v2 pipeline spec" in error["message"]


@pytest.mark.parametrize("token", [{"sort": 1}, {"sort": "none"}, {"value": "x"}, {"id": None}], ids=str)
def test_forged_page_tokens_are_refused(token: dict[str, object], served: Served, experiment: str) -> None:
    whole = {"sort": "created_at", "desc": False, "filter": "", "value": 1, "id": "x", **token}
    text = quote(b64encode(json.dumps(whole).encode()).decode())
    status, error = call(served, "GET", f"/experiments?page_token={text}")
    assert (status, error["code"]) == (400, 3), experiment
