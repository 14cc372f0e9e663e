"""A run folder from somebody else decides neither where a token goes nor which code is imported."""

import signal
import sys
import threading
from pathlib import Path

import pytest

from harness.cli import main
from harness.model import Outcome, Plan, Submission
from harness.model.plan import ObserverPlan
from harness.plan.reach import arguments_for, confirm
from harness.store import RunFolder
from harness.store.answers import Answers
from tests.support.servers import Served, kubeconfig, unsigned

OPTIONS = {"experiment": "", "experiment_id": "", "namespace": ""}
SENT = Submission(0, "s", "r", 1, 1, 2, Outcome.ACCEPTED, "run-0", 0, 200, None)


def folder_of(tmp_path, host, target="kfp", **plan):
    folder = RunFolder.create(tmp_path, "a")
    folder.write_schedule([0.0])
    folder.write_plan(Plan(target, host, {"name": "burst"}, 1, 7, simulated=False, target_options=OPTIONS, **plan))
    with folder.recorder() as recorder:
        recorder.write(SENT)
    return str(folder.path)


@pytest.fixture
def server():
    with Served(lambda path, query: (200, {"runs": []})) as served:
        yield served


@pytest.fixture
def token(monkeypatch):
    monkeypatch.setenv("PIPESWARM_TOKEN", "secret")
    monkeypatch.delenv("KF_PIPELINES_ENDPOINT", raising=False)


def observed(*arguments):
    """The exit code of an observation that is ended as soon as it has begun."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    ended = threading.Timer(1.0, signal.raise_signal, (signal.SIGTERM,))
    ended.start()
    try:
        return main(["observe", "--run", *arguments])
    finally:
        ended.join()
        for number, handler in before.items():
            signal.signal(number, handler)


@pytest.mark.usefixtures("token")
@pytest.mark.parametrize("given", [(), ("--host", "http://127.0.0.1:1"), ("--host", "https://127.0.0.1")])
@pytest.mark.parametrize("verb", [("cleanup",), ("observe", "--run")])
def test_the_token_is_not_sent_where_only_the_folder_says(verb, given, server, tmp_path, capsys):
    assert main([*verb, folder_of(tmp_path, server.url), *given]) == 2
    assert f"the token is not sent to {server.url}, which only the run folder names" in capsys.readouterr().err
    assert server.asked == []


@pytest.mark.usefixtures("token")
@pytest.mark.parametrize("named", ["--prometheus", "--host"])
def test_a_reading_that_is_resumed_asks_nobody_whom_only_the_folder_names(named, server, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PIPESWARM_PROMETHEUS_TOKEN", "secret")
    monkeypatch.setenv("KUBECONFIG", "/dev/null")
    address = {"observer": ObserverPlan(prometheus=server.url)} if named == "--prometheus" else {}
    path = folder_of(tmp_path, "" if address else server.url, **address)
    Answers(RunFolder.open(Path(path))).keep("request", {"since_at": 1, "until_at": 2})
    assert main(["explain", "--resume", path]) == 2
    said = capsys.readouterr().err
    assert "only the run folder names" in said
    assert named in said
    assert server.asked == []


@pytest.mark.usefixtures("token")
@pytest.mark.parametrize("by_variable", [False, True])
def test_the_token_is_sent_where_the_user_says(by_variable, server, tmp_path, monkeypatch):
    given = () if by_variable else ("--host", server.url + "/")
    if by_variable:
        monkeypatch.setenv("KF_PIPELINES_ENDPOINT", server.url)
    assert main(["cleanup", folder_of(tmp_path, server.url), *given, "--quiet"]) == 0
    assert server.tokens == ["Bearer secret"]


@pytest.mark.parametrize(
    ("recorded", "needed"),
    [
        ({"prometheus": "http://127.0.0.1:1"}, ("--prometheus", "http://127.0.0.1:1")),
        ({"metrics": (("argo", "http://127.0.0.1:1/metrics"),)}, ("--metrics", "argo=http://127.0.0.1:1/metrics")),
        ({"store_probe": "s3://theirs"}, ("--store-probe", "s3://theirs")),
        ({"kube_context": "production"}, ("--kube-context", "production")),
        ({"collector_options": (("spy", "http://127.0.0.1:1"),)}, ("--collector-option", "spy=http://127.0.0.1:1")),
    ],
)
def test_the_observer_reaches_nothing_that_only_the_folder_names(recorded, needed, server, tmp_path, capsys):
    path = folder_of(tmp_path, server.url, observer=ObserverPlan(**recorded))
    assert main(["observe", "--run", path, "--host", server.url]) == 2
    message = capsys.readouterr().err
    assert f"only the run folder names {needed[1]!r}" in message
    assert " ".join(["add", *needed]) in message
    assert main(["observe", "--run", path, "--host", server.url, needed[0], needed[1] + "/other"]) == 2
    confirm(ObserverPlan(**recorded), ObserverPlan(**recorded))
    assert arguments_for(ObserverPlan(**recorded)) == list(needed)
    assert server.asked == []


@pytest.mark.usefixtures("token")
def test_the_observer_of_a_test_is_told_the_host(server, tmp_path, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", "/dev/null")
    assert observed(folder_of(tmp_path, server.url), "--host", server.url) == 0
    assert set(server.tokens) == {"Bearer secret"}


@pytest.fixture
def secured(server, tmp_path):
    """A server whose certificate nobody has signed; returns its address."""
    server.secure(unsigned(tmp_path))
    return server.url.replace("http", "https")


@pytest.mark.usefixtures("token")
def test_a_folder_does_not_say_whether_certificates_are_checked(secured, server, tmp_path, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", "/dev/null")
    folder = folder_of(tmp_path, secured, verify_tls=False)
    assert main(["cleanup", folder, "--host", secured, "--quiet"]) == 5
    observed(folder, "--host", secured)
    assert server.tokens == []
    assert main(["cleanup", folder, "--host", secured, "--insecure", "--quiet"]) == 0
    asked = len(server.tokens)
    assert observed(folder, "--host", secured, "--insecure") == 0
    assert len(server.tokens) > asked > 0


def test_a_folder_does_not_say_whether_the_certificates_of_other_sources_are_checked(
    secured, server, tmp_path, monkeypatch
):
    monkeypatch.setenv("KUBECONFIG", "/dev/null")
    folder = folder_of(tmp_path, "http://127.0.0.1:1", observer=ObserverPlan(prometheus=secured, verify_tls=False))
    given = ("--host", "http://127.0.0.1:1", "--prometheus", secured)
    observed(folder, *given)
    assert server.asked == []
    observed(folder, *given, "--insecure")
    assert server.asked


@pytest.mark.parametrize("verb", [("cleanup",), ("observe", "--run")])
@pytest.mark.parametrize(
    "target", ["evil_module", "evil.module", "..", "", ".", "os", "bearer", "kfp.api", "a b", "../x"]
)
def test_a_folder_can_not_have_a_module_imported(verb, target, tmp_path, capsys, monkeypatch):
    (tmp_path / "evil_module.py").write_text("raise SystemExit(99)")
    (tmp_path / "evil").mkdir()
    (tmp_path / "evil/module.py").write_text("raise SystemExit(99)")
    monkeypatch.syspath_prepend(tmp_path)
    assert main([*verb, folder_of(tmp_path, "http://127.0.0.1:1", target)]) == 2
    assert f"the run folder names the target '{target}', which is not registered" in capsys.readouterr().err
    assert "evil_module" not in sys.modules


def test_a_module_that_the_user_names_too_is_imported(tmp_path, capsys, monkeypatch):
    (tmp_path / "mine_of_the_test.py").write_text(
        "HOST_VARIABLE = 'MINE'\nclass Keeps: pass\ndef from_plan(plan, package=None): return Keeps()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    folder = folder_of(tmp_path, "http://127.0.0.1:1", "mine_of_the_test")
    assert main(["cleanup", folder, "--target", "mine_of_the_test"]) == 2
    assert "mine_of_the_test keeps no runs" in capsys.readouterr().err


@pytest.mark.parametrize("target", ["..", "", ".", "a b", "kfp..", "../kfp"])
def test_a_target_that_is_no_name_is_unknown(target, tmp_path, capsys):
    assert main(["observe", "--for", "1s", "--host", "http://127.0.0.1:1", "--target", target]) == 2
    assert f"unknown target '{target}'" in capsys.readouterr().err


def test_a_context_of_the_command_line_leads_the_clean_up(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", kubeconfig(tmp_path / "config", "http://127.0.0.1:9"))
    folder = folder_of(tmp_path, "kube://kubeflow/ml-pipeline")
    assert main(["cleanup", folder, "--host", "kube://kubeflow/ml-pipeline", "--kube-context", "nowhere"]) == 2
    assert "no context 'nowhere'" in capsys.readouterr().err
