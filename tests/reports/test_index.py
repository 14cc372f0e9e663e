import json
import re
from dataclasses import replace

import pytest

from harness.cli import main
from harness.cli.look.index import entries, write_index
from harness.cli.look.rebuilding import rebuild
from harness.model import ConfigError, Outcome
from reports.index import line, trends
from tests.support.timelines import Story, burst


@pytest.fixture(scope="module")
def runs_dir(tmp_path_factory):
    place = tmp_path_factory.mktemp("runs")
    for name, count in (("a", 20), ("b", 20), ("c", 12)):
        rebuild(burst(count).write(place, name))
    full = burst(20, store_full_from=0.5)
    full.slos = ("failed_ratio < 0.1",)
    rebuild(full.write(place, "full"))
    Story(intended=7).write(place, "fresh <i>")
    (place / "notes").mkdir()
    (place / "broken").mkdir()
    (place / "broken" / "manifest.json").write_text("{")
    return place


def test_every_run_is_listed_whatever_its_state(runs_dir):
    listed = {entry.folder: entry for entry in entries(runs_dir)}
    assert set(listed) == {"a", "b", "c", "full", "fresh-i", "broken"}
    assert (listed["full"].verdict, listed["full"].failed, listed["full"].tone) == ("VALID", 10, "bad")
    assert "ran out of space" in listed["full"].headline
    assert (listed["fresh-i"].verdict, listed["fresh-i"].intended) == ("no report", 7)
    assert listed["broken"].verdict == "unreadable"


def test_a_line_fits_a_hundred_columns_and_names_a_missed_objective(runs_dir):
    listed = {entry.folder: entry for entry in entries(runs_dir)}
    shown = {name: line(entry) for name, entry in listed.items()}
    assert " SLO missed " in shown["full"]
    assert " not met: failed_ratio < 0.1; The artifact store" in shown["full"]
    assert "<b>not met: failed_ratio &lt; 0.1</b>" in write_index(runs_dir).read_text()
    assert " VALID " in shown["a"]
    assert "SLO missed</span>" in write_index(runs_dir).read_text()
    long = replace(listed["a"], headline="x" * 200)
    assert len(line(long)) == 100
    assert line(long).endswith("x…")
    name = "n" * 120
    assert line(replace(long, folder=name)).startswith(f"{'n' * 39}… VALID")
    assert len(line(replace(long, folder=name))) == 100


def test_rejected_runs_count_as_failed(tmp_path):
    story = burst(20)
    story.intended = 21
    story.submit(20, outcome=Outcome.REJECTED, status=500, error="Error 1040: Too many connections")
    rebuild(story.write(tmp_path, "refused"))
    (entry,) = entries(tmp_path)
    assert entry.failed == 1


def test_only_runs_of_the_same_target_schedule_and_size_share_a_line(runs_dir):
    series = trends(entries(runs_dir))["trends"].spec["data"]
    assert {trace["name"] for trace in series} == {"kfp-burst-20"}
    assert [len(trace["x"]) for trace in series] == [3, 3]


def test_the_page_links_to_the_reports_and_is_reproducible(runs_dir):
    page = write_index(runs_dir)
    text = page.read_text()
    assert set(re.findall(r'href="([^"]+/report\.html)"', text)) == {
        f"{name}/report.html" for name in ("a", "b", "c", "full")
    }
    assert write_index(runs_dir).read_text() == text


def test_an_empty_folder_gives_a_page(tmp_path):
    assert "No runs yet" in write_index(tmp_path).read_text()


def test_a_folder_without_runs_is_refused_and_left_alone(tmp_path, capsys):
    assert main(["report", str(tmp_path)]) == 2
    assert "is not a run folder" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_missing_folder_is_a_configuration_error(tmp_path):
    with pytest.raises(ConfigError, match="no folder"):
        write_index(tmp_path / "nowhere")


def test_the_verb_writes_the_page_and_lists_the_runs(runs_dir, capsys):
    assert main(["report", str(runs_dir), "--json"]) == 0
    listed = {run["folder"]: run for run in json.loads(capsys.readouterr().out)["runs"]}
    assert (listed["full"]["failed"], listed["full"]["exit_code"], listed["broken"]["per_hour"]) == (10, 3, None)
    assert main(["report", str(runs_dir)]) == 0
    out = capsys.readouterr().out.splitlines()
    assert len(out) == len(listed) + 1
    assert out[-1] == f"index: {runs_dir / 'index.html'}"


def test_the_verb_reports_a_missing_folder(tmp_path, capsys):
    assert main(["report", str(tmp_path / "nowhere")]) == 2
    assert "no run folder" in capsys.readouterr().err
