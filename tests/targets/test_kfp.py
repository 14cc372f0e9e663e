"""The target against recorded answers; tests/e2e run it against the served platform."""

import json
from pathlib import Path

import pytest
import yaml

from harness.model import ConfigError, Scenario, TargetUnreachableError
from harness.model.http import HttpAnswer
from harness.prepare.changes import platform_of
from harness.prepare.steps import tasks_of
from harness.targets.answers import instant
from harness.targets.kfp import KfpTarget, prepare
from harness.targets.kfp.pipeline import read_pipeline
from harness.targets.target import RejectedError
from tests.support.compiled import OLDER
from tests.support.kfp_exchange import IR, OPTIONS, TEXTS, Server, ready


def uploading():
    return KfpTarget(OPTIONS | {"pipeline_name": "nightly-0123"}, package=b"pipelineInfo: {}")


def test_existing_objects_are_neither_created_nor_uploaded_again():
    server = ready()
    found = uploading().set_up(server)
    assert found.options == {"experiment_id": "e1", "pipeline_id": "p1", "version_id": "v1"}
    assert [(i.name, i.type.value, i.required) for i in found.inputs] == [
        ("url", "STRING", True), ("rows", "NUMBER_INTEGER", False), ("note", "STRING", False),
    ]  # fmt: skip
    assert server.requests("POST") == []


@pytest.mark.parametrize(
    ("told", "versions"),
    [
        ({"tag_name": "2.17.0", "commit_sha": "abc"}, {"kfp": "2.17.0"}),
        ({"tag_name": "unknown", "commit_sha": "abc"}, {"kfp": "abc"}),
        ({"tag_name": "unknown", "commit_sha": "unknown"}, {}),
        ({}, {}),
    ],
)
def test_the_version_of_the_platform_is_what_its_health_tells(told, versions):
    assert uploading().set_up(ready(**{"GET /healthz": told})).versions == versions


def test_missing_objects_are_created_once():
    server = ready(**{"GET /experiments": {}, "GET /pipelines": {}})
    uploading().set_up(server)
    assert [path for path, _ in server.requests("POST")] == ["/experiments", "/pipelines/upload"]
    upload = next(asked for asked in server.asked if asked[1] == "/pipelines/upload")
    assert upload[2] == {"name": ["nightly-0123"]}
    assert b'name="uploadfile"' in upload[3]
    assert b"pipelineInfo: {}" in upload[3]


def test_another_client_may_make_the_experiment_in_between():
    server = ready(
        **{
            "GET /experiments": [{}, {"experiments": [{"experiment_id": "theirs"}]}],
            "POST /experiments": HttpAnswer(409, b'{"code": 6, "message": "exists"}'),
        }
    )
    assert uploading().set_up(server).options["experiment_id"] == "theirs"


def test_a_submission_is_one_small_request_by_version():
    server = Server(**{"POST /runs": {"run_id": "r1"}})
    target = KfpTarget(
        OPTIONS | {"experiment_id": "e1", "pipeline_id": "p1", "version_id": "v1", "service_account": "sa"}
    )
    assert target.submit(Scenario("7", "north", {"rows": 3}, {}), server) == "r1"
    ((_, _, _, body),) = server.asked
    assert json.loads(body) == {
        "display_name": "7-north",
        "experiment_id": "e1",
        "pipeline_version_reference": {"pipeline_id": "p1", "pipeline_version_id": "v1"},
        "runtime_config": {"parameters": {"rows": 3}},
        "service_account": "sa",
    }
    assert len(body) < 400


@pytest.mark.parametrize(
    ("answer", "status", "said"),
    [
        (HttpAnswer(429, b'{"code": 8, "message": "slow down"}'), 429, "slow down"),
        (HttpAnswer(500, b"<html><body>oops"), 500, "an HTML page"),
        (HttpAnswer(502, b""), 502, "nothing"),
        (HttpAnswer(200, b"<!DOCTYPE html>login"), 200, "not a run: an HTML page"),
        (HttpAnswer(200, b'{"run_id": null}'), 200, "not a run: {'run_id': None}"),
        (HttpAnswer(200, b'{"run_id": ""}'), 200, "not a run: {'run_id': ''}"),
        (HttpAnswer(200, b"null"), 200, "not a run: null"),
    ],
)
def test_a_rejected_submission_keeps_status_and_message(answer, status, said):
    target = KfpTarget(OPTIONS | {"experiment_id": "e1"})
    with pytest.raises(RejectedError) as raised:
        target.submit(Scenario("1", "a", {}, {}), Server(**{"POST /runs": answer}))
    assert (raised.value.status, raised.value.message) == (status, said)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (HttpAnswer(200, b"<!doctype html><title>Sign in"), "an HTML page, “Sign in”"),
        (HttpAnswer(400, b"<html><head><title>400 No  certificate</title>"), "“400 No certificate”"),
        (HttpAnswer(400, b"<html><title>400 No required SSL certificate was sent</title>"), "--client-certificate"),
        (HttpAnswer(400, b"<html><title>400 The plain HTTP request was sent to HTTPS port</title>"), "--host https://"),
        (HttpAnswer(403, b'{"error": "no user identity header"}'), "--header 'kubeflow-userid: me@example.org'"),
        (HttpAnswer(401, b'{"message": "no token"}'), "--token-file"),
        (HttpAnswer(302, b"", {"location": "/dex/auth"}), "302, a redirect to /dex/auth"),
        (HttpAnswer(302, b"", {"location": "/dex/auth"}), "--cookie-file"),
        (HttpAnswer(403, b"RBAC: access denied"), "RBAC: access denied"),
        (HttpAnswer(404, b"404 page not found"), "404"),
        (HttpAnswer(503, b"upstream"), "503"),
    ],
)
def test_an_endpoint_that_is_not_kfp_is_unreachable_and_says_why(answer, said):
    with pytest.raises(TargetUnreachableError) as raised:
        uploading().set_up(ready(**{"GET /healthz": answer}))
    assert said in str(raised.value)


def test_an_unknown_pipeline_id_is_a_configuration_error():
    server = ready(
        **{"GET /pipelines/p9/versions": HttpAnswer(404, b'{"code": 5, "message": "Pipeline p9 not found"}')}
    )
    with pytest.raises(ConfigError, match="Pipeline p9 not found"):
        KfpTarget(OPTIONS | {"pipeline_id": "p9"}).set_up(server)


STACK = (
    "\ngithub.com/kubeflow/pipelines/backend/src/apiserver/server.(*PipelineUploadServer).uploadPipeline\n\tfile.go:192"
)


@pytest.mark.parametrize(
    ("status", "message"),
    [  # recorded
        (400, "unknown template format"),
        (400, "Failed to read pipeline from file"),
        (500, "Failed to create a pipeline and a pipeline version"),
    ],
)
def test_a_refused_upload_is_a_configuration_error_in_one_sentence(status, message):
    refusal = HttpAnswer(status, json.dumps({"error_message": message, "error_details": message + STACK}).encode())
    with pytest.raises(ConfigError) as raised:
        uploading().set_up(ready(**{"GET /pipelines": {}, "POST /pipelines/upload": refusal}))
    assert raised.value.exit_code == 2
    assert raised.value.message == f"KFP refuses the pipeline: {message}"
    assert "github.com" not in str(raised.value)


def test_another_client_may_upload_the_pipeline_in_between():
    refusal = HttpAnswer(409, json.dumps({"error_message": "Failed to create", "error_details": STACK}).encode())
    server = ready(
        **{"GET /pipelines": [{}, {"pipelines": [{"pipeline_id": "p1"}]}], "POST /pipelines/upload": refusal}
    )
    assert uploading().set_up(server).options["pipeline_id"] == "p1"


MULTI_USER = "Invalid input error: An experiment cannot have an empty namespace in multi-user mode"


@pytest.mark.parametrize(
    "answers",
    [
        {"GET /healthz": {"multi_user": True}},
        {"GET /experiments": HttpAnswer(400, json.dumps({"code": 3, "message": MULTI_USER}).encode())},
        {"GET /pipelines": HttpAnswer(400, b'{"message": "Namespace is required for pipeline operations"}')},
    ],
)
def test_an_installation_for_several_users_needs_a_namespace(answers):
    with pytest.raises(ConfigError) as raised:
        uploading().set_up(ready(**answers))
    assert "--namespace" in str(raised.value)
    assert "--host" not in str(raised.value)


def test_with_a_namespace_an_installation_for_several_users_is_set_up():
    target = KfpTarget(OPTIONS | {"pipeline_name": "n", "namespace": "team-a"}, package=b"pipelineInfo: {}")
    assert target.set_up(ready(**{"GET /healthz": {"multi_user": True}})).options["experiment_id"] == "e1"


def test_the_listing_asks_for_this_tests_runs_and_reads_1970_as_none():
    runs = [
        {"run_id": "b", "display_name": "2-x", "state": "RUNNING", "created_at": "2026-11-21T10:00:05Z", "finished_at": "1970-01-01T00:00:00Z"},
        {"run_id": "a", "state": "FAILED", "created_at": "2026-11-21T10:00:00Z", "finished_at": "2026-11-21T10:01:00Z", "error": {"code": 2, "message": "disk full"}},
    ]  # fmt: skip
    server = Server(**{"GET /runs": {"runs": runs, "next_page_token": "t"}})
    page = KfpTarget(OPTIONS | {"experiment_id": "e1"}, since=instant("2026-11-21T10:00:00Z")).list_runs(server)
    (asked,) = server.asked
    assert asked[2]["page_size"] == ["200"]
    assert json.loads(asked[2]["filter"][0])["predicates"][0]["timestamp_value"] == "2026-11-21T10:00:00Z"
    assert page.next_page == "t"
    assert [(r.id, r.state, r.ended_at is None, r.error) for r in page.runs] == [
        ("b", "RUNNING", True, ""),
        ("a", "FAILED", False, "disk full"),
    ]
    assert (page.runs[1].ended_at - page.runs[1].created_at) / 1e9 == 60


def test_further_pages_are_requested_by_token_alone():
    server = Server(**{"GET /runs": {}})
    target = KfpTarget(OPTIONS | {"experiment_id": "e1", "namespace": "n"}, since=instant("2026-11-21T10:00:00Z"))
    target.list_runs(server, "t")
    (asked,) = server.asked
    assert asked[2] == {"experiment_id": ["e1"], "namespace": ["n"], "page_size": ["200"], "page_token": ["t"]}


def test_each_run_names_its_pipeline_and_an_uploaded_one_is_asked_for_once():
    uploaded = [{"run_id": name, "pipeline_version_reference": {"pipeline_id": "p1"}} for name in ("a", "b")]
    deleted = {"run_id": "c", "pipeline_version_reference": {"pipeline_id": "p2"}}
    sent = {"run_id": "d", "pipeline_spec": {"pipelineInfo": {"name": "inline"}}}
    server = Server(**{
        "GET /runs": {"runs": [*uploaded, deleted, sent, {"run_id": "e"}]}, "GET /pipelines/p1": {"display_name": "nightly"},
        "GET /pipelines/p2": HttpAnswer(404, b'{"message": "Pipeline p2 not found"}'),
    })  # fmt: skip
    target = KfpTarget(OPTIONS | {"namespace": "team-a"})
    for _ in range(2):
        found = [(run.pipeline, run.namespace) for run in target.list_runs(server).runs]
        assert found == [(name, "team-a") for name in ("nightly", "nightly", "p2", "inline", "")]
    assert [path for _, path, *_ in server.asked if "pipelines" in path] == ["/pipelines/p1", "/pipelines/p2"]


def test_an_observation_sees_the_runs_of_all_tenants_that_it_names():
    server = Server(**{"GET /runs": {"runs": [{"run_id": "a"}]}})
    found = KfpTarget({"tenants": "team-a;team-b", "experiment_id": ""}).list_runs(server).runs
    assert sorted(run.namespace for run in found) == ["team-a", "team-b"]
    assert [query["namespace"] for _, _, query, _ in server.asked] == [["team-a"], ["team-b"]]


def test_an_empty_listing_is_an_empty_object():
    assert KfpTarget(OPTIONS | {"experiment_id": "e1"}).list_runs(Server()).runs == ()


@pytest.mark.parametrize(
    ("state", "history", "read"),
    [
        ("FAILED", "PENDING RUNNING CANCELING FAILED", "CANCELED"),  # recorded: terminated
        ("FAILED", "PENDING RUNNING FAILED", "FAILED"),
        ("FAILED", "PENDING RUNNING CANCELING FAILED RUNNING FAILED", "FAILED"),  # terminated, then retried
        ("SUCCEEDED", "PENDING RUNNING CANCELING SUCCEEDED", "SUCCEEDED"),  # it ended before
        ("CANCELED", "PENDING RUNNING CANCELED", "CANCELED"),
        ("CANCELING", "PENDING RUNNING CANCELING", "CANCELING"),
        ("RUNTIME_STATE_UNSPECIFIED", "", "PENDING"),
        (None, "", "PENDING"),
    ],
)
def test_a_terminated_run_is_canceled_and_one_without_a_state_pending(state, history, read):
    entry = {"run_id": "r", "created_at": "2026-11-22T12:45:21Z", "finished_at": "2026-11-22T12:46:17Z"}
    entry["state_history"] = [
        {"update_time": f"2026-11-22T12:46:{k:02d}Z", "state": each} for k, each in enumerate(history.split())
    ]
    server = Server(**{"GET /runs": {"runs": [entry | ({"state": state} if state else {})]}})
    (run,) = KfpTarget(OPTIONS | {"experiment_id": "e1"}).list_runs(server).runs
    assert run.state == read
    over = state in {"FAILED", "SUCCEEDED", "CANCELED"}
    assert run.ended_at == (instant("2026-11-22T12:46:17Z") if over else None)
    assert run.reported_at == (instant(entry["state_history"][-1]["update_time"]) if over else None)


def test_the_last_report_of_a_retried_run_counts():
    times = [("RUNNING", "10:00:01"), ("FAILED", "10:00:30"), ("RUNNING", "10:02:00"), ("FAILED", "10:03:00")]
    history = [{"state": state, "update_time": f"2026-11-21T{time}Z"} for state, time in times]
    run = {
        "run_id": "a",
        "state": "FAILED",
        "created_at": "2026-11-21T10:00:00Z",
        "finished_at": "2026-11-21T10:02:58Z",
    }
    server = Server(**{"GET /runs": {"runs": [run | {"state_history": history}]}})
    (listed,) = KfpTarget(OPTIONS | {"experiment_id": "e1"}).list_runs(server).runs
    assert listed.reported_at == instant("2026-11-21T10:03:00Z")


# --- the pipeline file ------------------------------------------------------------------------------------------------


def write(tmp_path, text):
    path = tmp_path / "p.yaml"
    path.write_text(text if isinstance(text, str) else yaml.safe_dump_all(text))
    return path


def test_caching_is_switched_off_in_nested_pipelines_too(tmp_path):
    path = write(tmp_path, [IR, {"platforms": {"kubernetes": {}}}])
    first, second = yaml.safe_load_all(read_pipeline(path).package)
    tasks = [first["root"]["dag"]["tasks"], first["components"]["comp-loop"]["dag"]["tasks"]]
    assert [t["cachingOptions"] for dag in tasks for t in dag.values()] == [{}, {}, {}]
    assert second == {"platforms": {"kubernetes": {}}}


def test_with_caching_kept_the_bytes_are_those_of_the_file(tmp_path):
    path = write(tmp_path, [IR])
    assert read_pipeline(path, keep_caching=True).package == path.read_bytes()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "not valid YAML"),
        ("just text", "is not a compiled pipeline"),
        ("", "is not a compiled pipeline"),
        ("apiVersion: argoproj.io/v1alpha1\nkind: Workflow\n", "output of KFP v1"),
        (
            [{"pipelineInfo": {"name": "x"}, "root": {"inputDefinitions": {"artifacts": {"data": {}}}}}],
            "needs an artifact as input: data",
        ),
    ],
)
def test_the_error_for_an_unusable_pipeline_file_says_what_it_is(tmp_path, text, said):
    with pytest.raises(ConfigError, match=said):
        read_pipeline(write(tmp_path, text))


def test_a_missing_file_and_a_source_file_say_how_to_compile(tmp_path):
    with pytest.raises(ConfigError, match="kfp dsl compile"):
        read_pipeline(tmp_path / "none.yaml")
    source = tmp_path / "p.py"
    source.write_text("from kfp import dsl")
    with pytest.raises(ConfigError, match="is Python source"):
        read_pipeline(source)


def test_without_a_pipeline_only_the_simulated_platform_has_an_example():
    assert prepare(TEXTS, simulated=True).title == "training"
    with pytest.raises(ConfigError, match="no pipeline to run"):
        prepare(TEXTS, simulated=False)
    with pytest.raises(ConfigError, match="exclude each other"):
        prepare(TEXTS | {"pipeline": "x", "pipeline-id": "y"}, simulated=False)


def test_the_shipped_example_is_what_its_source_compiles_to(tmp_path):
    import subprocess
    import sys

    root = Path(__file__).parents[2]
    out = tmp_path / "training.yaml"
    kfp = Path(sys.executable).with_name("kfp")
    compile_it = [kfp, "dsl", "compile", "--py", root / "examples/training.py", "--output", out]
    subprocess.run(compile_it, check=True, capture_output=True, cwd=tmp_path)
    compiled, shipped = (yaml.safe_load(path.read_text()) for path in (out, root / "harness/targets/training.yaml"))
    compiled.pop("sdkVersion"), shipped.pop("sdkVersion")
    assert shipped == compiled


def test_a_pipeline_is_prepared_before_its_upload_and_kept_as_it_was():
    given = TEXTS | {"pipeline": str(OLDER), "prepare": "spot=aks,retries=5,backoff=5m; task=train,cpu-request=2"}
    found = prepare(given, simulated=False)
    assert found.original == OLDER.read_bytes()
    spec, platform = yaml.safe_load_all(found.package)
    assert {task.spec["retryPolicy"]["maxRetryCount"] for task in tasks_of(spec) if task.label} == {5}
    assert {len(each["tolerations"]) for each in platform_of(platform).values()} == {1}
    executors = spec["deploymentSpec"]["executors"]
    assert executors["exec-train"]["container"]["resources"]["resourceCpuRequest"] == "2"
    assert "resourceCpuRequest" not in executors["exec-prepare"]["container"]["resources"]
    assert found.options["pipeline_name"] != prepare(given | {"prepare": ""}, simulated=False).options["pipeline_name"]


def test_a_pipeline_that_is_not_prepared_has_no_second_document():
    assert prepare(TEXTS | {"pipeline": str(OLDER)}, simulated=False).original is None


def test_only_caching_decides_about_the_cache_of_a_prepared_pipeline():
    given = TEXTS | {"pipeline": str(OLDER), "prepare": "label=a=b"}
    for caching, cached in (("off", False), ("keep", True)):
        package = prepare(given | {"caching": caching}, simulated=False).package
        assert (b"enableCache: true" in package) is cached


def test_an_uploaded_pipeline_can_no_longer_be_prepared():
    with pytest.raises(ConfigError, match="--prepare changes a pipeline before its upload"):
        prepare(TEXTS | {"pipeline-id": "p1", "prepare": "spot=aks"}, simulated=False)


def test_runs_carry_the_mark_of_their_test_and_those_of_another_have_no_name():
    """Tests that repeat scenarios repeat names; runs without a mark, as of a client of KFP, keep theirs."""
    server = Server(**{"POST /runs": {"run_id": "r"}})
    for test in ("a", "b", ""):
        KfpTarget(OPTIONS | {"experiment_id": "e1"}, test=test).submit(Scenario("7", "north", {}, {}), server)
    made = [json.loads(body) | {"run_id": "r"} for *_, body in server.asked]
    assert [each.get("description") for each in made] == ["pipeswarm test a", "pipeswarm test b", None]

    def names(test):
        return [r.name for r in KfpTarget(OPTIONS, test=test).list_runs(Server(**{"GET /runs": {"runs": made}})).runs]

    assert names("a") == ["7-north", "", "7-north"]
    assert names("") == ["7-north"] * 3
