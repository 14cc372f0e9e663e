"""Spools on real disks, and their merge into run folders: each record once, at whatever moment it was interrupted."""

import json
import os
import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model import ConfigError, Event, Outcome, Plan, Sample, Span, Submission
from harness.store import RunFolder
from harness.store.claims import Claim
from harness.store.folder import encode
from harness.store.recovery import FOUND, find_folder, merge, merge_spool, recover, unfinished
from harness.store.spools import Origin, Spool, is_held, leftovers, lines_from, read_spool, spool_path

TEST = "0123abcd"
STARTED_AT = 10**18


def row(seq):
    at = STARTED_AT + seq
    return encode(Submission(seq, "s", f"{seq}-s", at, at + 1, at + 2, Outcome.ACCEPTED, f"r{seq}", 0, 200, None))


def made(count):
    """The stream of a worker: rows, and now and then the other kinds."""
    for seq in range(count):
        yield row(seq)
        if seq % 3 == 0:
            yield encode(Span(f"r{seq}", "", "run", STARTED_AT + seq, STARTED_AT + seq + 5))
            yield encode(Event(STARTED_AT + seq + 5, "Run", f"r{seq}", "SUCCEEDED"))
            yield encode(Sample("cpu", STARTED_AT + seq, 0.5, {"worker": "0"}))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    return new_folder(tmp_path)


def new_folder(place, test=TEST):
    folder = RunFolder.create(place / "runs", "r")
    folder.write_plan(Plan("kfp", "h", {"name": "burst"}, 9, 7, simulated=True, id=test, started_at=STARTED_AT))
    return folder


def spooled(lines, test=TEST, worker=0):
    spool = Spool(spool_path(test, worker), Origin(test, "r", worker))
    spool.append(b"".join(lines))
    return spool


def recorded(folder):
    """All records in the folder but the recovery's own event, as lines."""
    lines = [
        line for path in sorted(folder.path.glob("*.jsonl")) for line in path.read_bytes().splitlines(keepends=True)
    ]
    return sorted(line for line in lines if b'"Recovered"' not in line)


def test_a_spool_is_merged_and_the_report_will_say_so(folder):
    spool = spooled(made(9))
    recovered = merge_spool(folder, spool.path)
    assert (recovered.arrivals, recovered.records, recovered.known, recovered.unreadable) == (9, 18, 0, 0)
    assert recorded(folder) == sorted(made(9))
    (said,) = [event for event in folder.records(Event) if event.reason == "Recovered"]
    assert said.message == "9 arrivals of worker 0 were added after their test or their worker had been given up"
    assert said.at <= STARTED_AT + 20, "the test does not become longer"


def test_merging_again_adds_nothing(folder):
    spool = spooled(made(9))
    merge_spool(folder, spool.path)
    before = {path: path.read_bytes() for path in folder.path.glob("*.jsonl")}
    again = merge_spool(folder, spool.path)
    assert (again.records, again.known) == (0, 18)
    assert {path: path.read_bytes() for path in folder.path.glob("*.jsonl")} == before


@pytest.mark.fault("none")
@settings(max_examples=40, deadline=None)
@given(st.data())
def test_wherever_the_master_or_a_merge_was_killed_each_record_is_there_once(tmp_path_factory, data):
    """Of each kind's file any beginning was written, perhaps with a torn last line."""
    folder = new_folder(tmp_path_factory.mktemp("r"))
    stream = list(made(data.draw(st.integers(0, 8))))
    merge(folder, stream, "worker 0")
    torn = set()
    for path in folder.path.glob("*.jsonl"):
        content = path.read_bytes()
        size = data.draw(st.integers(0, len(content)))
        path.write_bytes(content[:size])
        tail = content[:size].rpartition(b"\n")[2]
        torn |= {tail + b"\n"} if tail else set()
    merge(folder, stream, "worker 0")
    merge(folder, stream, "worker 0")
    whole = [line for line in recorded(folder) if line not in torn or line in stream]
    assert whole == sorted(stream)


def test_a_worker_killed_within_a_record_leaves_the_others(folder):
    spool = spooled([row(0), row(1), row(2)[:20]])
    spool.close()
    assert merge_spool(folder, spool.path).arrivals == 2


def test_what_is_no_record_is_left_out_and_counted(folder):
    typed = json.loads(row(3)) | {"seq": "3"}
    lines = [b"[]\n", b"{}\n", b"\xff\n", json.dumps(typed).encode() + b"\n", b'{"outcome": "odd"}\n', row(1)]
    recovered = merge_spool(folder, spooled(lines).path)
    assert (recovered.arrivals, recovered.unreadable) == (1, 5)
    assert "5 unreadable lines left out" in str(recovered)


def test_a_spool_of_another_test_is_refused_and_changes_nothing(folder):
    spool = spooled(made(2), test="ffff")
    with pytest.raises(ConfigError, match="holds records of another test, of the run r"):
        merge_spool(folder, spool.path)
    assert recorded(folder) == []


def test_while_the_test_runs_nothing_is_merged(folder):
    spool = spooled(made(2))
    with Claim(folder.path), pytest.raises(ConfigError, match="is in use: its test is still running"):
        merge_spool(folder, spool.path)
    assert merge_spool(folder, spool.path).arrivals == 2


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is not a spool"),
        (b"\x00\xff", "is not a spool"),
        (b"[1]\n", "is not a spool"),
        (b'{"seq": 1}\n', "is not a spool"),
        (b'{"test":1,"run":"r","worker":0,"start":0,"format":1}\n', "is not a spool"),
        (b'{"test":"a","run":"r","worker":0,"start":0,"format":9}\n', "is a spool of format 9; this version reads 1"),
    ],
)
def test_a_file_that_is_no_spool_is_refused(tmp_path, content, said):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(ConfigError, match=said):
        read_spool(tmp_path / "x")


def test_links_devices_and_endless_lines_are_refused(tmp_path, monkeypatch):
    (tmp_path / "x").write_bytes(b'{"test":"a","run":"r","worker":0,"start":0,"format":1}\n' + b"x" * 100)
    (tmp_path / "link").symlink_to(tmp_path / "x")
    os.mkfifo(tmp_path / "pipe")
    for place, said in ((tmp_path / "link", "can't be read"), (tmp_path / "none", "No such file"),
                        (tmp_path / "pipe", "not a regular file"), ("/dev/zero", "not a regular file")):  # fmt: skip
        with pytest.raises(ConfigError, match=said):
            read_spool(place)
    monkeypatch.setattr("harness.store.spools._LONGEST_LINE", 60)
    with pytest.raises(ConfigError, match="more than 60 bytes"):
        list(read_spool(tmp_path / "x")[1])


def test_records_are_not_compared_with_a_file_outside_the_folder(folder, tmp_path):
    (tmp_path / "outside").write_bytes(row(0))
    (folder.path / "submissions.jsonl").unlink(missing_ok=True)
    (folder.path / "submissions.jsonl").symlink_to(tmp_path / "outside")
    with pytest.raises(ConfigError, match="is a link"):
        merge(folder, [row(0)], "worker 0")


def test_a_spool_never_takes_over_a_file_that_exists(folder):
    path = spool_path(TEST, 0)
    path.symlink_to(folder.path / "stolen")
    with pytest.raises(FileExistsError):
        spooled([row(0)])
    assert not (folder.path / "stolen").exists()


def test_a_spool_is_held_until_it_is_closed_and_then_left_over(folder):
    spool, other = spooled([row(0)]), spooled([row(1)], worker=1)
    other.close()
    spooled([row(1)], test="ffff").close()
    assert (is_held(spool.path), is_held(other.path)) == (True, False)
    assert leftovers(TEST) == [other.path]
    spool.close()
    assert leftovers(TEST) == [spool.path, other.path]
    assert len(leftovers()) == 3


def test_the_records_after_a_position_are_found(folder):
    spool = spooled([row(0), row(1)])
    assert lines_from(spool.path, TEST, 0, len(row(0))) == row(1)
    assert lines_from(spool.path, TEST, 1, 0) is None
    spool.restart(len(row(0) + row(1)))
    spool.append(row(2))
    assert lines_from(spool.path, TEST, 0, len(row(0) + row(1))) == row(2)
    assert lines_from(spool.path, TEST, 0, 0) is None, "what is before it is not in it"


@pytest.mark.parametrize("test", ["", "../x", "a-b", "ä"])
def test_what_is_no_id_makes_no_file_name(test):
    with pytest.raises(ConfigError, match="not the id of a test"):
        spool_path(test, 0)


def test_a_run_folder_is_found_by_its_test(folder, tmp_path):
    other = new_folder(tmp_path, "ffff")
    (tmp_path / "runs" / "broken").mkdir()
    (tmp_path / "runs" / "broken" / "manifest.json").write_text("[]")
    assert find_folder(tmp_path / "runs", "ffff").path == other.path
    assert find_folder(tmp_path / "runs", TEST).path == folder.path
    assert find_folder(tmp_path / "runs", "") is None
    assert find_folder(tmp_path / "none", TEST) is None


SCENARIOS = b"id,scenario_name,x\na,one,1\nb,two,2\n"


def killed_load(place, schedule=None, dues=(0.0, 1.0, 2.0, 3.0, 4.0, 5.0), recorded=((0, "a-one"), (3, "b-two-2"))):
    """A folder whose load was killed: rows 0 and 3 of six arrivals a second apart are recorded."""
    folder = RunFolder.create(place, "killed")
    schedule = schedule or {"name": "constant"}
    folder.write_plan(Plan("kfp", "h", schedule, len(dues), 7, simulated=True, id=TEST, started_at=STARTED_AT))
    folder.write_schedule(dues)
    folder.replace("scenarios.csv", SCENARIOS)
    with folder.recorder() as recorder:
        for seq, name in recorded:
            at = STARTED_AT + seq * 10**9
            recorder.write(Submission(seq, name[0], name, at, at, at, Outcome.ACCEPTED, f"r{seq}", 0, 200, None))
    return folder


@pytest.mark.fault("none that the platform listed")
@pytest.mark.parametrize(
    ("name", "created_s", "seq"),
    [
        ("b-two", 1.2, 1),
        ("a-one-2", 2.0, 2),
        ("a-one-3", 5.0, 4),
        ("b-two-3", 6.0, 5),
        ("a-one-3", 0.0, None),
        ("a-one", 1.0, None),
        ("c-three", 2.0, None),
        ("", 2.0, None),
    ],
    ids=[
        "first round", "second round", "third round", "last", "older than the arrival", "recorded", "of somebody else",
        "nameless",
    ],
)  # fmt: skip
def test_a_run_that_the_platform_lists_and_a_killed_load_did_not_record_is_added_once(tmp_path, name, created_s, seq):
    folder = killed_load(tmp_path)
    with folder.recorder() as recorder:
        for run, task, started_s in (("r0", "a-one", 0.0), ("new", name, created_s)):
            recorder.write(Span(run, "", "run", STARTED_AT + round(started_s * 1e9), None, task, source="kfp"))
    assert [recover(folder)[1] for _ in range(2)] == [int(seq is not None), 0]
    added = [each for each in folder.records(Submission) if each.seq not in {0, 3}]
    assert [(each.seq, each.run, each.outcome, each.error) for each in added] == (
        [] if seq is None else [(seq, "new", Outcome.ACCEPTED, FOUND)]
    )
    assert all(each.due_at == STARTED_AT + each.seq * 10**9 for each in added)


@pytest.mark.fault("none that the platform listed")
def test_a_closed_schedule_killed_before_its_due_times_were_written_gets_its_runs(tmp_path):
    folder = killed_load(tmp_path, {"name": "concurrency", "model": "closed"}, (), ((0, "a-one"), (3, "b-two-2")))
    listed = {
        "r0": ("a-one", 0),
        "new": ("b-two", 1),
        "x": ("a-one-2", 2),
        "forged": ("a-one-99999999", 3),
        "old": ("a-one-3", -9),
    }
    with folder.recorder() as recorder:
        for run, (name, created_s) in listed.items():
            recorder.write(Span(run, "", "run", STARTED_AT + created_s * 10**9, None, name, source="kfp"))
    assert [recover(folder)[1] for _ in range(2)] == [2, 0]
    added = {each.seq: (each.run, each.due_at) for each in folder.records(Submission) if each.error == FOUND}
    assert added == {1: ("new", STARTED_AT + 10**9), 2: ("x", STARTED_AT + 2 * 10**9)}, "due when the run was created"


@pytest.mark.fault("none that the platform listed")
def test_a_load_killed_before_its_first_row_gets_its_runs(tmp_path):
    folder = killed_load(tmp_path, dues=(0.0, 0.5), recorded=())
    with folder.recorder() as recorder:
        for run, name, created_s in (("p", "a-one", -9), ("q", "b-two", 1), ("r", "a-one", 1)):
            recorder.write(Span(run, "", "run", STARTED_AT + created_s * 10**9, None, name, source="kfp"))
    assert [each.path for each in unfinished(tmp_path)] == [folder.path], "the next test finishes it"
    assert [recover(folder)[1] for _ in range(2)] == [2, 0]
    assert {each.seq: each.run for each in folder.records(Submission)} == {0: "r", 1: "q"}


def test_a_killed_loads_folder_is_known_until_it_has_a_report(tmp_path):
    folder = killed_load(tmp_path)
    RunFolder.create(tmp_path, "unsent").write_plan(folder.read_plan())
    with Claim(folder.path):
        assert unfinished(tmp_path) == []
    assert [each.path for each in unfinished(tmp_path)] == [folder.path]
    folder.replace("report.json", b"{}")
    assert unfinished(tmp_path) == []
