"""The end of a long test's records, as the live diagnosis reads it again and again."""

import pytest

from harness.analysis.timeline import Timeline
from harness.model import Event, Node, Outcome, Plan, Sample, Span, Submission
from harness.model.phases import REQUESTED_CPU_CORES, RUN, RUNNING, SUCCEEDED
from harness.store import RunFolder
from harness.store.folder import KINDS
from harness.store.newest import Newest
from harness.store.tables import load

T0 = 1_790_000_000 * 10**9
RUNS, MOST = 400, 60_000


def at(seconds):
    return T0 + seconds * 10**9


class Test:
    """A run a second, each ten seconds long."""

    __test__ = False

    def __init__(self, path):
        self.folder = RunFolder.create(path, "long")
        self.folder.write_plan(Plan("kfp", "http://x", {"name": "constant"}, RUNS, 0, simulated=False))
        self.recorder = self.folder.recorder()
        self.recorder.write(Event(T0, "Test", "test", "Started", "", "load"))
        self.recorder.write(Event(T0, "Observer", "prometheus", "NotReachable", "refused", "observer"))
        self.recorder.write(Sample(REQUESTED_CPU_CORES, T0, 2.0, {"task": "train"}))
        self.recorder.write(Node("n", "steps", T0 - 10**9, T0, None, 4.0, 1e9, 0.0, 10, False, 0.0))

    def send(self, seq):
        write, run = self.recorder.write, f"run-{seq}"
        write(Submission(seq, "1", "n", at(seq), at(seq), at(seq), Outcome.ACCEPTED, run, 0, 200, None))
        write(Span(run, f"pod-{seq}", RUNNING, at(seq), None, "train", 0, "n", "kubernetes"))
        write(Sample("something", at(seq), 1.0, {}))
        if seq >= 10:
            self.end(seq - 10)

    def end(self, seq):
        write, run = self.recorder.write, f"run-{seq}"
        write(Span(run, f"pod-{seq}", RUNNING, at(seq), at(seq + 10), "train", 0, "n", "kubernetes"))
        write(Span(run, "", RUN, at(seq), at(seq + 10), "n", source="kfp"))
        write(Event(at(seq + 10), "Run", run, SUCCEEDED, "", "kfp", run))


@pytest.fixture
def test(tmp_path):
    return Test(tmp_path)


def timeline(test, newest):
    return Timeline.from_frames(test.folder.read_plan(), load(test.folder, newest))


def check(test, newest):
    """The window is a test of its own: whole runs, nobody else's, and what holds from before."""
    seen = timeline(test, newest)
    assert 20 < len(seen.runs) < RUNS / 2
    assert list(seen.runs["seq"]) == list(range(RUNS - len(seen.runs), RUNS)), "the newest ones"
    assert seen.start_at == at(RUNS - len(seen.runs))
    assert seen.foreign == 0
    assert not len(seen.others_pods)
    assert set(seen.pods["row"]) == set(range(len(seen.runs))), "all with their pods"
    assert seen.is_over.sum() == len(seen.runs) - 10
    assert list(seen.metric(REQUESTED_CPU_CORES)["value"]) == [2.0]
    assert list(seen.nodes["name"]) == ["n"]
    assert list(seen.events[seen.events["kind"] == "Observer"]["object"]) == ["prometheus"]


def test_a_look_at_a_long_test_reads_its_newest_runs_and_what_holds_from_before(test):
    newest = Newest(test.folder, MOST)
    for seq in range(RUNS):
        test.send(seq)
        if seq % 7 == 0:
            newest.move()
            assert sum(len(newest.read(kind)) for kind in KINDS) < MOST + 1000
    newest.move()
    check(test, newest)


def test_a_look_that_begins_late_leaves_out_as_much(test):
    for seq in range(RUNS):
        test.send(seq)
    newest = Newest(test.folder, MOST)
    newest.move()
    check(test, newest)


def test_a_short_test_is_read_as_a_whole(test):
    newest = Newest(test.folder, MOST)
    for seq in range(40):
        test.send(seq)
    newest.move()
    assert timeline(test, newest).runs.equals(Timeline.from_frames(test.folder.read_plan(), load(test.folder)).runs)


def test_torn_lines_and_a_line_that_is_being_written_do_not_stop_it(test):
    path = test.folder.path / "submissions.jsonl"
    for seq in range(RUNS):
        test.send(seq)
        if seq == 5:
            path.write_bytes(path.read_bytes() + b'{"seq":\n')
    path.write_bytes(path.read_bytes()[:-20])
    newest = Newest(test.folder, MOST)
    newest.move()
    assert list(timeline(test, newest).runs["seq"])[-1] == RUNS - 2
