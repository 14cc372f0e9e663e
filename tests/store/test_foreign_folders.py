"""A run folder may come from somebody else: it neither leads out of itself nor costs more than its size."""

import json
import os
import shutil
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.model.errors import ConfigError
from harness.model.plan import Plan
from harness.model.records import Event, Node, Outcome, Sample, Span, Submission
from harness.store import files
from harness.store.baselines import kept_baseline
from harness.store.folder import KINDS, RunFolder
from harness.store.manifest import FORMAT
from harness.store.prices import kept_prices
from harness.store.tables import load, read, schema, seal

AT = 1_700_000_000_000_000_000
SECRET = b"outside"
PLAN = Plan(
    "kfp",
    "http://platform",
    {"name": "burst", "runs": 2},
    2,
    7,
    simulated=False,
    command=("locust",),
    slos=("p95(run.duration) < 1m",),
)
RECORDS = (
    Submission(0, "s", "r", AT, AT, AT, Outcome.ACCEPTED, "run-0", 0, 200, None),
    Submission(1, "s", "r", AT, AT, AT, Outcome.REJECTED, None, 0, 500, "no"),
    Span("run-0", "pod", "running", AT, AT + 1, "train", node="n"),
    Span("run-0", "pod", "starting", AT, None, "train"),
    Sample("m", AT, 1.5, {"pod": "a"}),
    Event(AT, "Run", "run-0", "SUCCEEDED"),
    Node("n", "p", AT, AT, None, 4.0, 8e9),
)  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    made = RunFolder.create(tmp_path / "runs", "a")
    made.write_schedule([0.0, 0.0])
    made.write_plan(PLAN)
    with made.recorder() as recorder:
        for record in RECORDS:
            recorder.write(record)
    return made


@pytest.fixture
def outside(tmp_path):
    """A file that no operation on the folder may read or change."""
    file = tmp_path / "outside"
    file.write_bytes(SECRET)
    yield file
    assert file.read_bytes() == SECRET


def link(folder, name, to):
    path = folder.path / name
    path.unlink(missing_ok=True)
    path.symlink_to(to)


# --- links ------------------------------------------------------------------------------------------------------------

READS = {
    "manifest.json": lambda folder: folder.read_plan(),
    "schedule.csv": lambda folder: folder.read_schedule(),
    "scenarios.csv": lambda folder: folder.read_bytes("scenarios.csv"),
    "events.jsonl": lambda folder: folder.records(Event),
    "spans.jsonl": load,
    "tables/nodes.parquet": lambda folder: read(folder, Node),
    "prices.json": kept_prices,
    "baseline.json": kept_baseline,
}


@pytest.mark.parametrize("name", READS)
def test_a_file_that_is_a_link_is_not_read(folder, outside, name):
    (folder.path / "tables").mkdir(exist_ok=True)
    link(folder, name, outside)
    if name == "tables/nodes.parquet":
        without_lines(folder, Node)
    with pytest.raises(ConfigError, match="is a link"):
        READS[name](folder)


def test_a_live_state_that_is_a_link_is_not_shown(folder, tmp_path):
    (tmp_path / "live").write_text('{"load": {"stage": "secret"}}')
    link(folder, "live.json", tmp_path / "live")
    assert folder.read_live("load") == {}


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("submissions.jsonl", lambda folder: folder.recorder().write(RECORDS[0])),
        (".live.lock", lambda folder: folder.write_live("load", {})),
    ],
)
def test_nothing_is_appended_through_a_link(folder, outside, name, write):
    link(folder, name, outside)
    with pytest.raises(ConfigError, match="is a link"):
        write(folder)


@pytest.mark.parametrize("name", ["manifest.json", "schedule.csv", "live.json", "tables/nodes.parquet", "report.html"])
def test_a_link_is_replaced_itself_not_the_file_it_leads_to(folder, outside, name):
    (folder.path / "tables").mkdir(exist_ok=True)
    link(folder, name, outside)
    {
        "manifest.json": lambda: folder.write_plan(PLAN),
        "schedule.csv": lambda: folder.write_schedule([0.0, 0.0]),
        "live.json": lambda: folder.write_live("load", {}),
        "tables/nodes.parquet": lambda: seal(folder),
        "report.html": lambda: folder.replace("report.html", b"x"),
    }[name]()
    assert not (folder.path / name).is_symlink()


@pytest.mark.parametrize("name", ["schedule.csv", "submissions.jsonl"])
def test_a_hard_link_out_of_the_folder_is_not_written_through(folder, outside, name):
    (folder.path / name).unlink()
    (folder.path / name).hardlink_to(outside)
    if name == "schedule.csv":
        folder.write_schedule([0.0])
    else:
        with pytest.raises(ConfigError, match="is a link"):
            folder.recorder().write(RECORDS[0])


def test_tables_that_are_a_link_are_refused(folder, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    link(folder, "tables", elsewhere)
    for each in (seal, load):
        with pytest.raises(ConfigError, match="tables is a link"):
            each(folder)
    assert not list(elsewhere.iterdir())


def test_the_folder_itself_may_be_a_link_because_the_user_named_it(folder, tmp_path):
    latest = tmp_path / "latest"
    latest.symlink_to(folder.path)
    opened = RunFolder.open(latest)
    seal(opened)
    assert len(load(opened)["submissions"]) == 2


def test_a_named_pipe_in_the_folder_blocks_nobody(folder):
    (folder.path / "events.jsonl").unlink()
    os.mkfifo(folder.path / "events.jsonl")
    with pytest.raises(ConfigError, match="is not a file"):
        folder.records(Event)


def test_the_name_of_a_partial_file_can_not_be_guessed(folder, outside):
    names = []
    for _ in range(2):
        with files.replacing(folder.path, "report.html"):
            names += [path.name for path in folder.path.glob(".report.html.*.part")]
    assert len(set(names)) == 2
    assert all(len(name) > len(".report.html..part") + 15 for name in names)


def test_a_file_that_fails_to_be_written_leaves_the_old_one(folder):
    folder.replace("report.html", b"old")
    with pytest.raises(ZeroDivisionError), files.replacing(folder.path, "report.html"):
        1 / 0  # noqa: B018
    assert [path.name for path in folder.path.glob("*report*")] == ["report.html"]
    assert folder.read_bytes("report.html") == b"old"


# --- the manifest -----------------------------------------------------------------------------------------------------


def manifest(folder, **changes):
    file = folder.path / "manifest.json"
    raw = json.loads(file.read_bytes())
    for name, value in changes.items():
        at = raw
        *above, last = name.split("__")
        for each in above:
            at = at[each]
        at[last] = value
    file.write_bytes(orjson.dumps(raw))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"intended": 10**12}, "'intended' is 1,000,000,000,000, not between 0 and 10,000,000"),
        ({"intended": "many"}, "'intended' is 'many', not a whole number"),
        ({"intended": True}, "'intended' is True, not a whole number"),
        ({"intended": -1}, "'intended' is -1"),
        ({"schedule": []}, r"'schedule' is \[\], not a mapping"),
        ({"schedule": {"name": {"a": 1}}}, "'schedule.name' is not what a schedule has"),
        ({"schedule": {"name": "stages", "parts": 5}}, "'schedule.parts' is not a list of schedules"),
        ({"schedule": {"name": "stages", "parts": [{"parts": [{}]}]}}, "'schedule.parts' is not what"),
        ({"slos": "p95"}, "'slos' is 'p95', not a list"),
        ({"slos": [5]}, r"'slos\[0\]' is 5, not a text"),
        ({"command": [["x"]]}, r"'command\[0\]' is \['x'\], not a text"),
        ({"target_options": {"a": [1]}}, "'target_options.a' is neither a text nor a number"),
        ({"target_options": 5}, "'target_options' is 5, not a mapping"),
        ({"digests": {"pipeline": 5}}, "'digests.pipeline' is 5, not a text"),
        ({"digests": ["a"]}, r"'digests' is \['a'\], not a mapping"),
        ({"limits__drain_s": "long"}, "'limits.drain_s' is 'long', not a number"),
        ({"limits__connect_timeout_s": 0}, "'limits.connect_timeout_s' is 0"),
        ({"observer__metrics": [["a"]]}, r"'observer.metrics\[0\]' is \['a'\], not a list of 2"),
        ({"observer": None}, "'observer' is None, not a mapping"),
        ({"verify_tls": "no"}, "'verify_tls' is 'no', not true or false"),
        ({"started_at": 2**63 - 1}, "'started_at' is"),
        ({"host": None}, "'host' is None, not a text"),
        ({"format": FORMAT + 1}, "is of format 2, from a newer Pipeswarm; this one reads format 1"),
        ({"format": 0}, "is of format 0, from an older Pipeswarm"),
        ({"format": "1"}, "'format' is '1', not a whole number"),
    ],
)  # fmt: skip
def test_a_manifest_with_a_wrong_value_is_refused_by_name(folder, changes, said):
    manifest(folder, **changes)
    with pytest.raises(ConfigError, match=said):
        folder.read_plan()


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"5", b"null", b"{}", b"\xff", b"[" * 60_000, b'{"a": NaN}'], ids=range(8)
)
def test_a_manifest_that_is_none_is_refused(folder, content):
    (folder.path / "manifest.json").write_bytes(content)
    with pytest.raises(ConfigError, match=r"manifest\.json"):
        folder.read_plan()


def test_a_manifest_has_the_number_of_its_format_and_one_without_is_of_the_first(folder):
    raw = json.loads((folder.path / "manifest.json").read_bytes())
    assert raw.pop("format") == 1
    (folder.path / "manifest.json").write_bytes(orjson.dumps(raw))
    assert folder.read_plan() == PLAN


def test_more_arrivals_intended_than_scheduled_are_refused(folder):
    manifest(folder, intended=9_000_000)
    with pytest.raises(ConfigError, match=r"'intended' is 9,000,000, but schedule\.csv has 2 arrivals"):
        load(folder)


# --- records ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "changes", "said"),
    [
        (Submission, {"seq": "0"}, "'seq' is not a whole number"),
        (Submission, {"seq": -1}, "'seq' is out of range"),
        (Submission, {"seq": 10**12}, "'seq' is out of range"),
        (Submission, {"due_at": 2**63 - 1}, "'due_at' is out of range"),
        (Submission, {"due_at": None}, "'due_at' is missing"),
        (Submission, {"due_at": 1.5}, "'due_at' is not a whole number"),
        (Submission, {"outcome": "lost"}, "'outcome' is not one of accepted, rejected, missed"),
        (Submission, {"error": ["x"]}, "'error' is not a text"),
        (Span, {"run": None}, "'run' is missing"),
        (Span, {"started_at": 10**30}, "started_at"),
        (Span, {"phase": {"a": 1}}, "'phase' is not a text"),
        (Sample, {"labels": "[1]"}, "'labels' is not a JSON object of texts"),
        (Sample, {"labels": "{"}, "'labels' is not a JSON object of texts"),
        (Sample, {"labels": '{"pod": 5}'}, "'labels' is not a JSON object of texts"),
        (Sample, {"value": "high"}, "'value' is not a number"),
        (Event, {"at": "now"}, "'at' is not a whole number"),
        (Event, {"message": 5}, "'message' is not a text"),
        (Node, {"spot": "no"}, "'spot' is not true or false"),
        (Node, {"cpu": [1]}, "'cpu' is not a number"),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "reader", [load, lambda folder: [folder.records(kind) for kind in KINDS]], ids=["load", "tail"]
)
def test_a_row_with_a_wrong_value_is_refused_by_name(folder, kind, changes, said, reader):
    file = folder.path / f"{KINDS[kind]}.jsonl"
    row = json.loads(file.read_bytes().splitlines()[0]) | changes
    with file.open("ab") as out:
        out.write(json.dumps(row).encode() + b"\n")
    with pytest.raises(ConfigError, match=f"{file.name}.*{said}"):
        reader(folder)


@pytest.mark.parametrize("line", [b"5", b"[]", b"null", b'"x"'])
def test_a_line_that_is_no_record_is_refused(folder, line):
    with (folder.path / "nodes.jsonl").open("ab") as out:
        out.write(line + b"\n")
    with pytest.raises(ConfigError, match=r"nodes\.jsonl"):
        load(folder)


def test_text_that_is_not_utf_8_is_refused(folder):
    with (folder.path / "nodes.jsonl").open("ab") as out:
        out.write((folder.path / "nodes.jsonl").read_bytes().replace(b'"p"', b'"\xff"'))
    with pytest.raises(ConfigError, match=r"nodes\.jsonl is damaged: .*Invalid UTF8"):
        load(folder)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda content: b"",
        lambda content: content[: len(content) // 2],
        lambda content: b"PAR1" + content[4:-30] + os.urandom(22) + content[-8:],
        lambda content: content[:100] + b"\xff" * 60 + content[160:],
    ],
)
@pytest.mark.parametrize("kind", [Submission, Span])
def test_a_damaged_table_is_refused(folder, spoil, kind):
    seal(folder)
    file = folder.path / "tables" / f"{KINDS[kind]}.parquet"
    file.write_bytes(spoil(file.read_bytes()))
    without_lines(folder, kind)
    with pytest.raises(ConfigError, match=file.name):
        load(folder)


def write_table(folder, kind, **columns):
    seal(folder)
    file = folder.path / "tables" / f"{KINDS[kind]}.parquet"
    table = pq.read_table(file)
    for name, values in columns.items():
        table = table.set_column(table.schema.get_field_index(name), name, values)
    pq.write_table(table, file)
    without_lines(folder, kind)


def without_lines(folder, kind):
    """Tables alone: beside its lines a table that was not made of them is ignored."""
    (folder.path / f"{KINDS[kind]}.jsonl").unlink()


@pytest.mark.parametrize(
    ("kind", "columns", "said"),
    [
        (Submission, {"seq": pa.array([0, 10**15])}, "'seq' is out of range"),
        (Submission, {"seq": pa.array(["0", "1"])}, "the column 'seq' is of type string, not int64"),
        (Submission, {"outcome": pa.array(["accepted", "lost"])}, "'outcome' is not one of"),
        (Span, {"run": pa.array([b"\xff", b"x"]).cast(pa.binary()).view(pa.string())}, "is damaged"),
        (Span, {"started_at": pa.array([None, 1], pa.int64())}, "'started_at' is missing"),
        (Span, {"phase": pa.array([1.0, 2.0])}, "'phase' is of type double, not string"),
        (Sample, {"labels": pa.array(["{}}"])}, "'labels' is not a JSON object of texts"),
    ],
)  # fmt: skip
def test_a_table_with_a_wrong_value_is_refused_by_name(folder, kind, columns, said):
    write_table(folder, kind, **columns)
    with pytest.raises(ConfigError, match=said):
        load(folder)


def test_a_table_that_lacks_a_column_is_refused(folder):
    seal(folder)
    file = folder.path / "tables/spans.parquet"
    pq.write_table(pq.read_table(file).drop_columns(["phase"]), file)
    without_lines(folder, Span)
    with pytest.raises(ConfigError, match="has no column 'phase'"):
        load(folder)


@pytest.mark.parametrize(
    ("kind", "name", "values"),
    [
        # 3 MB of zeros and a dictionary of one long text: a hundredfold and a millionfold of the file's size.
        (Event, "message", pa.array(["x" * 10_000_000])),
        (
            Span,
            "task",
            pa.DictionaryArray.from_arrays(pa.array([0] * 500_000, pa.int32()), pa.array(["x" * 1_000_000])),
        ),
    ],
    ids=["compressed", "dictionary"],
)
def test_a_small_table_that_expands_to_gigabytes_is_refused(folder, kind, name, values):
    seal(folder)
    file = folder.path / "tables" / f"{KINDS[kind]}.parquet"
    table = pq.read_table(file)
    if kind is Event:
        values = pa.chunked_array([values] * 40)
    row = table.slice(0, 1)
    table = pa.table(
        {each: pa.repeat(row[each][0], len(values)) if each != name else values for each in table.schema.names}
    )
    pq.write_table(table, file, compression="zstd", row_group_size=100_000, dictionary_pagesize_limit=2**24)
    assert file.stat().st_size < 3_500_000
    without_lines(folder, kind)
    with pytest.raises(ConfigError, match="expands to far more than its size"):
        load(folder)


@pytest.mark.parametrize(
    "prices", [b"[]", b'{"a": "b"}', b'{"a": -1}', b'{"a": true}', b"[" * 60_000, b"\xff"], ids=range(6)
)
def test_damaged_prices_are_refused(folder, prices):
    (folder.path / "prices.json").write_bytes(prices)
    with pytest.raises(ConfigError, match=r"prices\.json"):
        kept_prices(folder)


def test_the_schema_of_a_table_follows_from_the_records():
    assert schema(Sample) == pa.schema(
        [("metric", pa.string()), ("at", pa.int64()), ("value", pa.float64()), ("labels", pa.string())]
    )
    assert schema(Submission).field("outcome").type == pa.string()


def test_a_copied_folder_reads_the_same(folder, tmp_path):
    seal(folder)
    shutil.copytree(folder.path, tmp_path / "copy")
    copied = load(RunFolder.open(Path(tmp_path / "copy")))
    assert all(frame.equals(copied[name]) for name, frame in load(folder).items())
