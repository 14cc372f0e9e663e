"""A configuration that can't work ends with a clear error and the right exit code, and leaves nothing half-written."""

import socket

import pytest

from harness.model.http import HttpAnswer
from tests.support.e2e import PIPELINE, QUICK, free_port
from tests.support.servers import serving

NOWHERE = ("--host", "http://127.0.0.1:9", "--pipeline", PIPELINE)


def scenarios(tmp_path, text):
    path = tmp_path / "given.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--host", "http://127.0.0.1:9"], "no pipeline to run"),
        (["--host", "http://127.0.0.1:9", "--pipeline", "none.yaml"], "the pipeline file none.yaml does not exist"),
        ([*NOWHERE, "--scenarios", "none.csv"], "none.csv does not exist"),
        ([*NOWHERE, "--runs", "many"], "--runs"),
        ([*NOWHERE, "--schedule", "constant", "--rate", "fast"], "is not a rate"),
        ([*NOWHERE, "--param-mode", "json:"], "parameter mode"),
        (["--slo", "speed > 9000"], "speed"),
        ([*NOWHERE, "--token-file", "none.txt"], "token file none.txt"),
        ([*NOWHERE, "--header", "kubeflow-userid"], "--header: this is not a header field"),
        (["--simulate", "utopia"], "utopia"),
        (["--fault", "gremlins"], "gremlins"),
        (["--redact", "passwort"], "--redact passwort: there is no such parameter"),
        (["--metric-profile", "nonsense"], "no metric profile 'nonsense'"),
        (["--kube-context", "nosuch"], "no context 'nosuch'"),
    ],
)
def test_bad_options_end_with_2_before_anything_is_written(locust, arguments, said):
    finished = locust.headless(*arguments)
    assert (finished.code, finished.folder) == (2, None), finished.err
    assert said in finished.err
    assert "→" in finished.err
    assert "Traceback" not in finished.err
    assert "# reqs" not in finished.err, "Locust's tables are empty then"
    assert "run time limit" not in finished.err, "the schedule ends the test"
    if arguments[0] in {"--simulate", "--fault", "--slo"}:
        assert "Ramping" not in finished.err, "it is wrong whatever the platform"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("id,scenario_name,scenario\n1,a,{}\n1,b,{}\n", "row 3, column id"),
        (
            "id,scenario_name,data_multiplier\n1,a,lots\n",
            "row 2, column data_multiplier: 'lots' is not an integer",
        ),
        ("id,scenario_name,colour\n1,a,red\n", "column colour"),
        ("id,scenario_name\n1\n", "row 2: 1 cells"),
    ],
)
def test_bad_scenarios_name_file_row_and_column(locust, tmp_path, text, said):
    finished = locust.headless(*NOWHERE, "--scenarios", scenarios(tmp_path, text))
    assert (finished.code, finished.folder) == (2, None), finished.err
    assert "given.csv" in finished.err
    assert said in finished.err


def test_an_impossible_runs_folder_is_a_configuration_error(locust, tmp_path):
    (tmp_path / "runs").write_text("a file")
    finished = locust.headless("--simulate", QUICK, "--runs", "1")
    assert finished.code == 2, finished.err
    assert "--runs-dir" in finished.err
    assert (tmp_path / "runs").read_text() == "a file"


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (200, b"<!DOCTYPE html><title>Sign in</title>", "login page"),
        (401, b'{"code": 16, "message": "no identity"}', "no identity"),
        (403, b"RBAC: access denied", "RBAC: access denied"),
        (404, b"404 page not found", "404"),
        (503, b"no healthy upstream", "no healthy upstream"),
    ],
)
def test_an_endpoint_that_is_not_kfp_ends_with_5(locust, status, body, said):
    with serving(lambda _: HttpAnswer(status, body, {"content-type": "text/html"})) as url:
        finished = locust.headless("--host", url, "--pipeline", PIPELINE)
    assert (finished.code, finished.folder) == (5, None), finished.err
    assert said in finished.err
    assert "Traceback" not in finished.err


def test_an_endpoint_that_refuses_ends_with_5(locust):
    finished = locust.headless(*NOWHERE)
    assert (finished.code, finished.folder) == (5, None)
    assert "does not answer" in finished.err
    assert "Aggregated" not in finished.err, "Locust's empty tables would hide the reason"


def test_an_endpoint_that_never_answers_ends_with_5_after_the_time_limit(locust):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        finished = locust.headless("--host", address, "--pipeline", PIPELINE, "--answer-timeout", "1s")
    assert (finished.code, finished.folder) == (5, None)
    assert "timed out" in finished.err


def test_a_web_ui_whose_port_is_in_use_is_a_configuration_error(locust):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        finished = locust.finish(locust.start("--web-host", "127.0.0.1", "--web-port", port))
    assert (finished.code, finished.folder) == (2, None)
    assert f"Address already in use: ('127.0.0.1', {port})" in finished.err
    assert "Traceback" not in finished.err


def test_a_folder_for_the_web_form_that_is_none_is_a_configuration_error(locust):
    finished = locust.finish(locust.start("--web-port", str(free_port()), "--web-files", "missing"))
    assert (finished.code, finished.folder) == (2, None)
    assert "--web-files: missing is not a folder" in finished.err
    assert "Traceback" not in finished.err


def test_a_token_is_sent_to_the_platform(locust, tmp_path):
    asked = []

    def refuse(request):
        asked.append(request.headers.get("Authorization"))
        return HttpAnswer(401, b'{"message": "still no"}')

    (tmp_path / "token").write_text("s3cret\n")
    with serving(refuse) as address:
        locust.headless("--host", address, "--pipeline", PIPELINE, "--token-file", str(tmp_path / "token"))
        locust.headless("--host", address, "--pipeline", PIPELINE, PIPESWARM_TOKEN="from-env")
    assert asked == ["Bearer s3cret", "Bearer from-env"]
