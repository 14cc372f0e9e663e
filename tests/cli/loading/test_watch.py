import json
import time

import pytest

from harness.cli import main
from harness.cli.loading.watch import is_over, view
from tests.support.live_views import LOAD, NOW, OBSERVED
from tests.support.timelines import Story


@pytest.mark.parametrize(
    ("load", "observed", "reported", "over"),
    [
        ({"stage": "draining"}, {"stage": "observing", "at": NOW}, False, False),
        ({"stage": "over"}, {"stage": "over", "at": NOW}, True, True),
        ({"stage": "reporting"}, {"stage": "over", "at": NOW}, False, False),
        ({"stage": "draining"}, {"stage": "over", "at": NOW - 61 * 10**9}, False, True),
        ({}, {"stage": "observing", "at": NOW}, False, False),
        ({}, {"stage": "over", "at": NOW}, False, False),
        ({}, {"stage": "over", "at": NOW}, True, True),
        ({}, {}, False, False),
        ({}, {}, True, True),
        ({"stage": "draining"}, {}, True, False),
        ({}, {"stage": "observing", "at": NOW - 61 * 10**9}, False, True),
        ({"stage": "draining", "at": NOW}, {"stage": "observing", "at": NOW - 61 * 10**9}, False, False),
        ({"stage": "draining", "at": NOW - 61 * 10**9}, {"stage": "observing", "at": NOW}, False, False),
    ],
    ids=["drains", "over", "reports", "killed", "observes", "will report", "observed", "new", "imported", "reported early",
         "observer killed", "its observer killed", "late"],
)  # fmt: skip
def test_when_a_run_is_over(load, observed, reported, over):
    assert is_over(load, observed, reported=reported, now_at=NOW) is over


def test_only_known_values_are_shown():
    facts = dict(view(LOAD, OBSERVED, {}))
    assert facts["progress"].endswith("160/200")
    assert facts["progress"].count("█") == 24
    assert facts["runs on the platform"] == "40 RUNNING, 120 SUCCEEDED"
    assert facts["ready nodes"] == "12 of 13"
    assert facts["free space of seaweedfs-pvc"] == "3.0 GiB"
    assert facts["observer requests"] == "7"
    assert facts["time left"] == "75 s"
    assert not {"missed", "last observer error", "kubernetes"} & facts.keys()
    assert view({}, {}, {}) == [("stage", "not started")]


def test_it_ends_with_the_run_and_shows_its_last_state(tmp_path, capsys):
    folder = Story(intended=0).write(tmp_path)
    folder.write_live("load", LOAD | {"stage": "over"})
    folder.write_live("observer", OBSERVED)
    assert main(["watch", str(folder.path)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("stage")
    assert "draining" not in shown
    assert shown.count("160/200") == 1


def test_a_run_without_a_live_state_is_over_when_it_has_its_report(tmp_path, capsys):
    folder = Story(intended=0).write(tmp_path)
    (folder.path / "report.json").write_text("{}")
    assert main(["watch", str(folder.path)]) == 0
    assert capsys.readouterr().out.split() == ["stage", "over"]


def test_json_is_one_object(tmp_path, capsys):
    folder = Story(intended=0).write(tmp_path)
    now = OBSERVED | {"at": time.time_ns()}
    folder.write_live("observer", now)
    assert main(["watch", str(folder.path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"over": False, "load": {}, "observer": now, "findings": []}


@pytest.mark.parametrize("manifest", ["", '{"apiVersion": "v1", "kind": "Pod"}', "kind: Pod"])
def test_a_folder_that_is_not_a_run_is_refused(tmp_path, capsys, manifest):
    if manifest:
        (tmp_path / "manifest.json").write_text(manifest)
    assert main(["watch", str(tmp_path)]) == 2
    assert "manifest.json" in capsys.readouterr().err
