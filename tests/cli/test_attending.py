"""How `pipeswarm run-in-cluster` attends a test: Ctrl-C, and every way in which a test can end."""

import pytest

from harness.cli.loading import run_in_cluster
from harness.in_cluster.inputs import Inputs
from harness.in_cluster.manifests import ClusterTest
from harness.in_cluster.pod_state import PodState, Step
from harness.model.errors import ConfigError, PipeswarmError

TEST = ClusterTest(
    name="pipeswarm-a", run="a", namespace="load", image="i:1", target="kfp", inputs=Inputs(()), account="observer",
    volume="claim", upload_to="s3://bucket/nightly",
)  # fmt: skip
WAITING, RUNNING = PodState(Step.WAITING, "no node"), PodState(Step.RUNNING)


def ended(code):
    return PodState(Step.ENDED, "", code)


class Scripted:
    """A test whose states are given; Ctrl-C among them is pressed then."""

    def __init__(self, *states, home="runs/a"):
        self.states, self.home, self.done = list(states), home, []

    def state(self):
        state = self.states.pop(0)
        if state is KeyboardInterrupt:
            raise state
        return state

    def pass_on_log(self, write):
        write("line")

    def interrupt(self):
        self.done.append("interrupt")

    def remove(self):
        self.done.append("remove")

    def bring_home(self, runs_dir):
        self.done.append("bring home")
        if isinstance(self.home, Exception):
            raise self.home
        return self.home


@pytest.fixture
def attend(monkeypatch, tmp_path):
    monkeypatch.setattr("time.sleep", lambda _: None)
    return lambda running: run_in_cluster._attend(running, TEST, tmp_path)


@pytest.mark.parametrize(
    ("states", "code", "done", "said"),
    [
        ([WAITING, RUNNING, ended(0)], 0, ["bring home"], "run folder: runs/a"),
        ([ended(3)], 3, ["bring home"], "run folder: runs/a"),
        (
            [RUNNING, KeyboardInterrupt, RUNNING, RUNNING, ended(130)],
            130,
            ["interrupt", "bring home"],
            "ending the test",
        ),
        ([WAITING, KeyboardInterrupt, WAITING], 130, ["remove"], "had not started; its Job was removed"),
    ],
)
def test_the_exit_code_is_that_of_the_test(attend, capsys, states, code, done, said):
    running = Scripted(*states)
    assert attend(running) == code
    assert running.done == done
    assert said in capsys.readouterr().err


def test_a_second_ctrl_c_leaves_the_test_alone_and_says_how_to_remove_it(attend, capsys):
    running = Scripted(RUNNING, KeyboardInterrupt, RUNNING, KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        attend(running)
    assert running.done == ["interrupt"]
    assert "the test goes on: kubectl delete job pipeswarm-a -n load removes it" in capsys.readouterr().err


def test_a_test_that_can_not_start_is_removed(attend):
    running = Scripted(WAITING, PodState(Step.STUCK, "ImagePullBackOff"))
    with pytest.raises(ConfigError, match="the test can't start: ImagePullBackOff"):
        attend(running)
    assert running.done == ["remove"]


def test_a_lost_load_generator_is_an_error_after_its_folder_came_home(attend):
    running = Scripted(RUNNING, PodState(Step.ENDED, "OOMKilled"))
    with pytest.raises(PipeswarmError, match="the load generator was lost: OOMKilled") as lost:
        attend(running)
    assert lost.value.exit_code == 1
    assert running.done == ["bring home"]


def test_a_folder_that_can_not_come_home_does_not_change_the_verdict(attend, capsys):
    assert attend(Scripted(ended(3), home=ConfigError("no right to exec"))) == 3
    said = capsys.readouterr().err
    assert "can't be brought here: no right to exec; it is in volume claim and s3://bucket/nightly/a" in said


def test_a_test_that_was_refused_has_no_folder(attend, capsys):
    assert attend(Scripted(ended(2), home=None)) == 2
    assert "the test wrote no run folder" in capsys.readouterr().err
