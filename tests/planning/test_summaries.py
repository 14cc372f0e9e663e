import json

import pytest

from harness.cli import main
from harness.model.phases import RUNNING, STARTING
from harness.planning import summaries
from harness.planning.summaries import summarized, summary_of
from harness.planning.timelines import timeline_of
from harness.store.tables import seal
from tests.support.timelines import Story


@pytest.fixture
def folder(tmp_path):
    told = Story(intended=3)
    for seq in range(3):
        run = told.submit(seq, due=1.0, lag=0.0, service=0.5)
        told.pod(run, f"p{seq}", "n", (STARTING, 2.0, 3.0), (RUNNING, 3.0, 6.0 + seq))
        told.run(run, 2.0, 8.0 + seq)
    found = told.write(tmp_path)
    seal(found)
    return found


@pytest.fixture
def computed(monkeypatch):
    """The timelines that summaries were computed of."""
    found = []

    def counted(timeline):
        found.append(timeline)
        return summarized(timeline)

    monkeypatch.setattr(summaries, "summarized", counted)
    return found


def test_a_kept_summary_is_what_is_computed(folder, computed):
    first = summary_of(folder.path)
    assert first == summary_of(folder.path) == summarized(timeline_of(folder.path))
    assert len(computed) == 1


def test_a_report_keeps_the_summary(folder, computed):
    main(["report", str(folder.path), "--quiet"])
    summary_of(folder.path)
    assert len(computed) == 1


@pytest.mark.parametrize("name", ["manifest.json", "tables/submissions.parquet", "prices.json", "spans.jsonl"])
def test_with_other_records_or_prices_it_is_computed_anew(folder, computed, name):
    summary_of(folder.path)
    path = folder.path / name
    if name == "manifest.json":
        path.write_text(json.dumps(json.loads(path.read_text()), indent=1))
    elif name == "prices.json":
        path.write_text('{"*": 2.5}')
    elif name == "spans.jsonl":
        path.write_bytes(path.read_bytes() + path.read_bytes().splitlines(keepends=True)[0])
    else:
        path.unlink()
    summary_of(folder.path)
    assert len(computed) == 2


def test_with_other_code_it_is_computed_anew(folder, computed, monkeypatch):
    summary_of(folder.path)
    monkeypatch.setattr(summaries, "_code", lambda: "other")
    summary_of(folder.path)
    assert len(computed) == 2


@pytest.mark.parametrize("content", [b"", b"{}", b'{"start_at": "x"}', b"[" * 100_000, b"\xff"])
def test_a_damaged_one_is_computed_anew(folder, computed, content):
    whole = summary_of(folder.path)
    path = folder.path / "tables/summary.json"
    path.write_bytes(path.read_bytes().partition(b"\n")[0] + b"\n" + content)
    assert summary_of(folder.path) == whole
    assert len(computed) == 2


def test_a_folder_that_can_t_keep_it_is_summarized_all_the_same(folder):
    (folder.path / "tables/summary.json").mkdir()
    assert summary_of(folder.path) == summarized(timeline_of(folder.path))
