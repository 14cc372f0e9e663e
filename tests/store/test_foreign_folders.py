"""A run folder may come from another user: whatever is wrong in it is refused, at no more cost than its size."""

import json
import os

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.model.errors import ConfigError
from harness.model.records import Event, Node, Sample, Span, Submission
from harness.store.folder import KINDS
from harness.store.manifest import FORMAT
from harness.store.prices import kept_prices
from harness.store.tables import load, schema, seal
from tests.support.small_folder import PLAN, without_lines


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


def test_a_column_that_older_versions_did_not_write_has_its_default(folder):
    seal(folder)
    file = folder.path / "tables/submissions.parquet"
    pq.write_table(pq.read_table(file).drop_columns(["tenant"]), file)
    without_lines(folder, Submission)
    found = load(folder)["submissions"]
    assert len(found)
    assert (found["tenant"] == "").all()


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
