"""A run folder may come from another user: nothing leads out of it."""

import os

import pytest

from harness.model.errors import ConfigError
from harness.model.records import Event, Node
from harness.store import files
from harness.store.baselines import kept_baseline
from harness.store.folder import RunFolder
from harness.store.prices import kept_prices
from harness.store.tables import load, read, seal
from tests.support.small_folder import PLAN, RECORDS, without_lines

SECRET = b"outside"


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
