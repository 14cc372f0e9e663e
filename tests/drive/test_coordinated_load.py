"""The controlling process: what is loaded, with which credentials, and by which processes."""

from types import SimpleNamespace

import pytest

from harness.drive.http.clients import BoundCredentials
from harness.targets import hetida
from harness.targets.credentials import Credentials
from tests.support.coordinators import HOST, ID, SIMULATED, TOKEN, Local, Master, begun, maker, module


@pytest.fixture
def make(monkeypatch, tmp_path):
    return maker(monkeypatch, tmp_path, [])


def test_without_a_host_a_simulated_platform_is_started_for_each_test(make):
    coordinator, environment = make(simulate="hetida-pattern-1", fault="slow-worker")
    coordinator.check()
    assert environment.host == f"{SIMULATED}0"
    assert begun(coordinator).ready.context.simulator.url == environment.host == f"{SIMULATED}1"
    coordinator.stop()
    assert begun(coordinator).ready.context.simulator.url == f"{SIMULATED}2", (
        "its own address is no host that was given"
    )
    assert coordinator.simulated == tuple(f"{SIMULATED}{k}" for k in range(3))
    assert set(coordinator._simulator.started) == {("hetida-pattern-1", "slow-worker", 7)}
    assert coordinator.latest.ready.checked.target == "hetida"
    coordinator.stop()


def test_a_host_of_the_environment_is_loaded_with_the_credentials_that_were_given_for_it(make, monkeypatch, capsys):
    monkeypatch.setenv(hetida.HOST_VARIABLE, HOST)
    coordinator, environment = make(transformation=ID, credentials=BoundCredentials(HOST, TOKEN))
    coordinator.check()
    ready = begun(coordinator).ready
    assert (ready.checked.settings.host, ready.context.simulator, environment.host) == (HOST, None, "")
    assert (ready.context.credentials, ready.context.with_credentials) == (TOKEN, True)
    assert ready.context.platform is hetida
    assert coordinator.reporter.state()["warning"] == ""
    coordinator.stop()


def test_another_host_gets_no_credentials_and_that_is_told(make, capsys):
    coordinator, _ = make(host="https://other.example", transformation=ID, credentials=BoundCredentials(HOST, TOKEN))
    ready = begun(coordinator).ready
    assert (ready.context.credentials, ready.context.with_credentials) == (Credentials(), False)
    told = (
        f"https://other.example gets no credentials: they were given for {HOST}; "
        "start with --host https://other.example to send it there"
    )
    assert f"warning: {told}\n" in capsys.readouterr().err
    assert coordinator.reporter.state()["warning"] == told
    coordinator.stop()


@pytest.mark.parametrize(("runner", "workers"), [(Local, 1), (Master, 2)])
def test_a_test_knows_how_many_workers_share_its_load(make, runner, workers):
    coordinator, _ = make(runner=runner())
    assert begun(coordinator).ready.context.workers == workers
    coordinator.stop()


def test_notes_on_what_was_given_are_told(make, capsys):
    coordinator, _ = make(drain="20", num_users=3)
    begun(coordinator)
    told = capsys.readouterr().err
    assert "-u 3 is ignored" in told
    coordinator.stop()


def load_test(host=HOST, problem=""):
    notes = []
    return SimpleNamespace(
        plan=SimpleNamespace(host=host, id="aaaa"), folder="folder", notes=notes, note=lambda *note: notes.append(note),
        observer=SimpleNamespace(cluster_problem=lambda: problem),
    )  # fmt: skip


def test_one_process_sends_by_itself_with_the_credentials_of_the_host(make, monkeypatch):
    made = []
    monkeypatch.setattr(module, "LocalGenerator", lambda *given: made.append(given) or "local")
    coordinator, _ = make(credentials=BoundCredentials(HOST, TOKEN))
    book = object()
    assert coordinator._generator_for(load_test(), SimpleNamespace(book=book)) == "local"
    assert coordinator._generator_for(load_test(SIMULATED), SimpleNamespace(book=book)) == "local"
    assert made == [(TOKEN, book), (Credentials(), book)]
    assert coordinator.reporter.state()["warning"] == ""


@pytest.mark.parametrize(("host", "told"), [(HOST, True), (module.PROCESSES, False)])
def test_a_cluster_that_can_not_be_observed_is_told_with_what_can_not_be_judged(make, monkeypatch, capsys, host, told):
    monkeypatch.setattr(module, "LocalGenerator", lambda *given: None)
    coordinator, _ = make()
    coordinator._generator_for(load_test(host, "no kubeconfig"), SimpleNamespace(book=None))
    warning = (
        "the cluster can't be observed (no kubeconfig): nodes, pods, the artifact store, quotas and the autoscaler "
        "can't be judged"
    )
    assert coordinator.reporter.state()["warning"] == (warning if told else "")
    assert (warning in capsys.readouterr().err) is told


def test_workers_whose_clocks_are_off_are_noted(make, monkeypatch):
    offsets = {0: 0.004, 1: -0.25, 2: 0.01, 3: 3.0}
    generator, made = SimpleNamespace(sync_clocks=lambda: offsets), []
    cluster = SimpleNamespace(generator=lambda *given: made.append(given) or generator, recover_leftovers=lambda: None)
    monkeypatch.setattr(module, "Cluster", lambda runner, runs_dir: cluster)
    coordinator, _ = make(runner=Master())
    test = load_test()
    assert coordinator._generator_for(test, "runner") is generator
    assert made == [("aaaa", "folder", "runner")]
    assert test.notes == [
        ("ClockSkew", "the clock of worker 1 is -0.250 s off the master's; its timestamps are corrected"),
        ("ClockSkew", "the clock of worker 3 is +3.000 s off the master's; its timestamps are corrected"),
    ]


def test_a_master_looks_for_what_earlier_workers_left(make, monkeypatch, tmp_path):
    recovered = []
    monkeypatch.setattr(
        module, "Cluster",
        lambda runner, runs_dir: SimpleNamespace(recover_leftovers=lambda: recovered.append((runner, runs_dir))),
    )  # fmt: skip
    _, environment = make(runner=Master())
    assert recovered == [(environment.runner, tmp_path)]
    make()
    assert len(recovered) == 1
