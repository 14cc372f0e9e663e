import os
import subprocess
import sys
import time

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model import ConfigError, Event, Node, Outcome, Plan, Sample, Span, Submission
from harness.store import RunFolder, files
from harness.store.folder import encode
from harness.store.tables import load, schema, seal


def submission(seq: int, **changes: object) -> Submission:
    due_at = 10**18 + seq
    values = {
        "seq": seq, "scenario_id": str(seq), "run_name": f"{seq}-x", "due_at": due_at, "sent_at": due_at + 1,
        "answered_at": None, "outcome": Outcome.ACCEPTED, "run": None, "worker": 0, "status": 200, "error": None,
    }  # fmt: skip
    return Submission(**{**values, **changes})  # type: ignore[arg-type]


def plan(**changes: object) -> Plan:
    values = {"target": "kfp", "host": "h", "schedule": {"name": "burst"}, "intended": 1, "seed": 7, "simulated": True}
    return Plan(**{**values, **changes})  # type: ignore[arg-type]


def test_a_plan_comes_back_as_it_was_written(tmp_path):
    folder = RunFolder.create(tmp_path, "a")
    written = plan(slos=("failed_ratio < 0.01",), command=("locust", "-f", "x"), target_options={"namespace": "n"})
    folder.write_plan(written)
    assert RunFolder.open(folder.path).read_plan() == written


def test_an_unwritable_folder_is_a_configuration_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="runs"):
        RunFolder.create(tmp_path / "file", "a")


def test_a_folder_without_manifest_is_not_a_run(tmp_path):
    with pytest.raises(ConfigError, match=r"manifest\.json"):
        RunFolder.open(tmp_path)


@given(st.lists(st.floats(0, 1e6, allow_nan=False), max_size=30))
def test_a_schedule_comes_back_exactly(offsets):
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as place:
        folder = RunFolder.create(Path(place), "a")
        count, digest = folder.write_schedule(offsets)
        assert (count, folder.read_schedule()) == (len(offsets), offsets)
        assert folder.write_schedule(offsets)[1] == digest


def test_a_tail_returns_each_record_once_and_leaves_a_torn_line(tmp_path):
    folder = RunFolder.create(tmp_path, "a")
    tail = folder.tail(Submission)
    assert tail.read() == []
    with folder.recorder() as recorder:
        recorder.write(submission(0))
        assert tail.read() == [submission(0)]
        line = encode(submission(1))
        recorder.append(Submission, line[:20])
        assert tail.read() == []
        recorder.append(Submission, line[20:])
        assert tail.read() == [submission(1)]


def test_every_acknowledged_record_survives_kill_9(tmp_path):
    folder = RunFolder.create(tmp_path, "a")
    program = (
        "import sys,os,signal\nfrom pathlib import Path\n"
        "from harness.store import RunFolder\nfrom harness.model import Event\n"
        "r=RunFolder(Path(sys.argv[1])).recorder()\n"
        "for k in range(1000):\n    r.write(Event(k,'Run',str(k),'SUCCEEDED'))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(folder.path)], check=False)
    assert done.returncode == -9
    assert [event.at for event in folder.records(Event)] == list(range(1000))


def record_all(folder: RunFolder) -> None:
    with folder.recorder() as recorder:
        recorder.write(submission(1))
        recorder.write(submission(0))
        recorder.write(submission(1, outcome=Outcome.REJECTED, error='say "no", ü\n'))
        recorder.write(Span("r", "p", "running", 10**18 + 1, None))
        recorder.write(Span("r", "p", "running", 10**18 + 1, 10**18 + 7, node="n"))
        recorder.write(Sample("m", 5, 1.5, {"b": "2", "a": "1"}))
        recorder.write(Event(3, "Run", "r", "FAILED", run="r"))
        recorder.write(Node("n", "pool", 1, None, None, 4.0, 2.0**34))


def test_of_records_with_one_key_the_last_counts(tmp_path):
    folder = RunFolder.create(tmp_path, "a")
    record_all(folder)
    frames = load(folder)
    assert frames["submissions"]["seq"].tolist() == [0, 1]
    assert frames["submissions"]["outcome"].tolist() == ["accepted", "rejected"]
    assert frames["spans"]["ended_at"].tolist() == [10**18 + 7]
    assert frames["samples"]["labels"].tolist() == ['{"a":"1","b":"2"}']


def test_instants_of_nineteen_digits_stay_exact_beside_missing_ones(tmp_path):
    folder = RunFolder.create(tmp_path, "a")
    with folder.recorder() as recorder:
        recorder.write(Span("r", "", "run", 1_700_000_000_123_456_789, None))
        recorder.write(Span("s", "", "run", 1_700_000_000_123_456_789, 1_700_000_000_123_456_791))
    seal(folder)
    ended = load(folder)["spans"]["ended_at"]
    assert ended.isna().tolist() == [True, False]
    assert ended[1] == 1_700_000_000_123_456_791


def test_sealing_is_idempotent_and_changes_no_record(tmp_path):
    folder = RunFolder.create(tmp_path, "a")
    record_all(folder)
    before = load(folder)
    seal(folder)
    first = {path.name: path.read_bytes() for path in (folder.path / "tables").iterdir()}
    seal(folder)
    assert {path.name: path.read_bytes() for path in (folder.path / "tables").iterdir()} == first
    after = load(folder)
    for name, frame in before.items():
        assert (
            frame.astype(object)
            .where(frame.notna(), None)
            .equals(after[name].astype(object).where(after[name].notna(), None))
        ), name


@pytest.mark.parametrize("age_s", [0, 3600, -3600])
def test_a_record_appended_after_sealing_counts_whatever_the_clock_says(tmp_path, age_s):
    folder = RunFolder.create(tmp_path, "x")
    with folder.recorder() as recorder:
        recorder.write(Event(1, "Run", "a", "SUCCEEDED"))
        seal(folder)
        recorder.write(Event(2, "Run", "b", "SUCCEEDED"))
    at = time.time() - age_s
    os.utime(folder.path / "events.jsonl", (at, at))
    assert [*load(folder)["events"]["object"]] == ["a", "b"]
    seal(folder)
    (folder.path / "events.jsonl").unlink()
    assert [*load(folder)["events"]["object"]] == ["a", "b"]


@pytest.mark.parametrize(
    "spoiled",
    [lambda whole: whole[:-5], lambda whole: whole[:4] + b"\xff" * 8 + whole[12:]],
    ids=["no footer", "no header of a page"],
)
def test_a_damaged_table_is_made_again_from_its_records(tmp_path, spoiled):
    folder = RunFolder.create(tmp_path, "x")
    with folder.recorder() as recorder:
        recorder.write(Event(1, "Run", "a", "SUCCEEDED"))
    seal(folder)
    table = folder.path / "tables/events.parquet"
    whole = table.read_bytes()
    table.write_bytes(spoiled(whole))
    assert [*load(folder)["events"]["object"]] == ["a"]
    seal(folder)
    assert table.read_bytes() == whole


def test_a_line_torn_in_the_middle_costs_only_itself(tmp_path):
    folder = RunFolder.create(tmp_path, "a")
    with (folder.path / "events.jsonl").open("ab") as lines:
        lines.write(encode(Event(1, "Run", "a", "FAILED")) + b'{"at":2,"ki' + encode(Event(3, "Run", "c", "FAILED")))
        lines.write(encode(Event(4, "Run", "d", "FAILED")))
    assert seal(folder)["events"] == 1
    assert load(folder)["events"]["at"].tolist() == [1, 4]


def test_an_empty_run_has_empty_tables_with_the_full_schema(tmp_path):
    folder = RunFolder.create(tmp_path, "a")
    seal(folder)
    frames = load(folder)
    for kind, name in ((Submission, "submissions"), (Node, "nodes"), (Event, "events")):
        assert list(frames[name].columns) == schema(kind).names
        assert len(frames[name]) == 0


def test_each_part_of_the_live_state_is_replaced_as_a_whole(tmp_path):
    folder = RunFolder.create(tmp_path, "a")
    assert folder.read_live("load") == {}
    folder.write_live("load", {"sent": 3, "at": 1})
    folder.write_live("observer", {"pods": 5, "at": 2})
    folder.write_live("load", {"done": 1, "at": 3})
    assert orjson.loads((folder.path / "live.json").read_bytes()) == {
        "load": {"done": 1, "at": 3}, "observer": {"pods": 5, "at": 2},
    }  # fmt: skip
    assert list(folder.path.glob(".*.part")) == []


def test_each_part_of_the_live_state_has_a_timestamp(tmp_path):
    folder = RunFolder.create(tmp_path, "a")
    before = time.time_ns()
    folder.write_live("load", {})
    assert before <= folder.read_live("load")["at"] <= time.time_ns()


WRITES = """
import sys
from pathlib import Path
from harness.store.folder import RunFolder
folder = RunFolder(Path(sys.argv[1]))
for k in range(int(sys.argv[3])):
    while True:
        try:
            folder.write_live(sys.argv[2], {"k": k})
            break
        except TimeoutError:  # a busy machine held another writer for a second, with the lock
            continue
    print(k, flush=True)
"""


def test_concurrent_writers_of_the_live_state_lose_no_update(tmp_path):
    folder = RunFolder.create(tmp_path, "a")
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITES, folder, part, "200"], stdout=subprocess.DEVNULL)
        for part in ("load", "observer", "findings")
    ]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    assert [folder.read_live(part)["k"] for part in ("load", "observer", "findings")] == [199, 199, 199]


def test_a_killed_writer_of_the_live_state_blocks_nobody(tmp_path):
    folder = RunFolder.create(tmp_path, "a")
    command = [sys.executable, "-c", WRITES, folder, "observer", "1000000"]
    for _ in range(3):
        with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
            assert writer.stdout.readline()
            writer.kill()
        folder.write_live("load", {"k": 1})
    assert folder.read_live("load")["k"] == 1
    assert folder.read_live("observer")["k"] >= 0


def test_a_hanging_writer_of_the_live_state_blocks_for_at_most_a_second(tmp_path):
    folder = RunFolder.create(tmp_path, "a")
    with files.locked(folder.path, ".live.lock"), pytest.raises(OSError, match="timed out"):
        folder.write_live("load", {})


def test_the_nearest_run_is_proposed(tmp_path):
    (tmp_path / "example").mkdir()
    (tmp_path / "example/manifest.json").write_text("{}")
    with pytest.raises(ConfigError) as raised:
        RunFolder.open(tmp_path / "exmaple")
    assert raised.value.hint.startswith("did you mean 'example'? ")
