"""Following a test: what is told, passed on and decided. The API's side is tested against a real one."""

import io
import tarfile

import pytest

from harness.in_cluster.pod_state import PodState, Step
from harness.in_cluster.running import _demand_room, _unpacked, follow
from harness.model.errors import ConfigError, TargetUnreachableError

RUNNING, ENDED = PodState(Step.RUNNING), PodState(Step.ENDED, "", 3)
AWAY = TargetUnreachableError("the cluster does not answer: reset")


class Scripted:
    """A test whose states are given; an error among them is raised."""

    def __init__(self, *states):
        self.states, self.logs = list(states), 0

    def state(self):
        state = self.states.pop(0)
        if isinstance(state, Exception):
            raise state
        return state

    def pass_on_log(self, write):
        self.logs += 1
        write(f"line {self.logs}")


def waiting(why):
    return PodState(Step.WAITING, why)


@pytest.mark.parametrize(
    ("states", "said", "logs", "last"),
    [
        ([RUNNING, ENDED], [], 2, ENDED),
        ([waiting("a"), waiting("a"), waiting("b"), RUNNING, ENDED], ["a", "b"], 2, ENDED),
        ([RUNNING, AWAY, AWAY, RUNNING, ENDED], [AWAY.message], 3, ENDED),
        ([waiting("a"), PodState(Step.STUCK, "no image")], ["a"], 0, PodState(Step.STUCK, "no image")),
        ([RUNNING, PodState(Step.ENDED, "Evicted")], [], 1, PodState(Step.ENDED, "Evicted")),
    ],
)
def test_a_test_is_followed_to_its_end(states, said, logs, last):
    told, written, pauses = [], [], []
    test = Scripted(*states)
    assert follow(test, written.append, told.append, pauses.append) == last
    assert told == said
    assert len(written) == logs
    assert len(pauses) == len(states) - 1


def test_what_may_not_be_read_ends_the_following():
    with pytest.raises(ConfigError, match="forbidden"):
        follow(Scripted(ConfigError("forbidden")), print, print, print)


def archive(path, *members):
    with tarfile.open(path, "w:gz") as packed:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            packed.addfile(member, io.BytesIO(content))


def test_a_run_folder_is_unpacked_where_runs_are(tmp_path):
    (tmp_path / "runs").mkdir()
    archive(tmp_path / "packed", ("a/manifest.json", b"{}"), ("a/tables/x.parquet", b"x"))
    home = _unpacked(tmp_path / "packed", tmp_path, "a", tmp_path / "runs")
    assert (home / "manifest.json").read_text() == "{}"
    assert home == tmp_path / "runs/a"


def test_an_archive_that_leads_elsewhere_or_is_torn_is_refused(tmp_path):
    archive(tmp_path / "packed", ("../outside", b"x"))
    with pytest.raises(ConfigError, match="arrived damaged"):
        _unpacked(tmp_path / "packed", tmp_path, "a", tmp_path)
    assert not (tmp_path.parent / "outside").exists()
    archive(tmp_path / "packed", ("a/x", bytes(range(256)) * 100))
    (tmp_path / "packed").write_bytes((tmp_path / "packed").read_bytes()[:-20])
    with pytest.raises(ConfigError, match="arrived damaged"):
        _unpacked(tmp_path / "packed", tmp_path, "a", tmp_path)


def test_a_run_folder_that_does_not_fit_is_not_begun(tmp_path):
    with pytest.raises(ConfigError, match=r"the run folder has 1,099,511,627,776 MiB, .* has room for"):
        _demand_room(2**60, tmp_path)
