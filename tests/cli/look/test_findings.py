"""``pipeswarm report --findings``: what holds a run back, from records that are still being written."""

import json
import shutil

import pytest

from harness.cli import main
from harness.store.folder import TABLES
from tests.support.timelines import burst


@pytest.fixture
def going(tmp_path):
    """A run that has no report and is not sealed."""
    folder = burst(120, store_full_from=0.6).write(tmp_path)
    shutil.rmtree(folder.path / TABLES)
    return folder


def test_a_run_that_is_going_is_diagnosed_and_nothing_is_sealed(going, capsys):
    assert main(["report", "--findings", str(going.path)]) == 0
    assert capsys.readouterr().out.startswith("store-full (")
    assert not (going.path / "tables").exists()
    (first, *_) = going.read_live("findings")["findings"]
    assert first["name"] == "store-full"
    assert all(first[part] for part in ("title", "evidence", "fix", "commands"))


def test_a_program_gets_what_the_folder_keeps(going, capsys):
    assert main(["report", "--findings", str(going.path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == going.read_live("findings")


def test_arrivals_that_are_still_to_come_are_no_finding(tmp_path, capsys):
    story = burst(40)
    story.intended = 400
    assert main(["report", "--findings", str(story.write(tmp_path).path)]) == 0
    assert "missed-arrivals" not in capsys.readouterr().out


def test_it_looks_again_and_again_until_the_run_is_over(going, monkeypatch, capsys):
    monkeypatch.setattr("os.nice", lambda _: 0)
    looks = []

    def print_and_end(text):
        looks.append(text)
        if len(looks) == 2:
            going.write_live("load", {"stage": "over"})

    monkeypatch.setattr("harness.cli.printing.show", lambda _arguments, text, _document: print_and_end(text()))
    monkeypatch.setattr("harness.cli.look.findings._SHARE", 100.0)
    assert main(["report", "--findings", str(going.path), "--every", "10ms"]) == 0
    assert len(looks) == 2
    assert capsys.readouterr().err == ""


def test_it_goes_on_with_the_newest_records_of_a_test_that_has_very_many(going, monkeypatch, capsys):
    monkeypatch.setattr("os.nice", lambda _: 0)
    size = sum(each.stat().st_size for each in going.path.glob("*.jsonl"))
    monkeypatch.setattr("harness.cli.look.findings._MOST_BYTES", size // 2)
    monkeypatch.setattr("harness.cli.look.findings._SHARE", 100.0)

    def end(_arguments, text, _document):
        print(text())
        going.write_live("load", {"stage": "over"})

    monkeypatch.setattr("harness.cli.printing.show", end)
    assert main(["report", "--findings", str(going.path), "--every", "10ms"]) == 0
    assert capsys.readouterr().out.startswith("store-full (")
