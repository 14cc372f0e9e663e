"""The findings of tests that were recorded on a real platform, whose truths are known. See `tests/data/real_folders`."""

import shutil
import tarfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from harness.detectors import detectors, diagnose
from harness.model.findings import Diagnosis
from harness.planning.timelines import timeline_of
from harness.store import RunFolder
from harness.store.tables import seal
from tests.support.first_findings import FOLDERS_FIRST

FOLDERS = Path(__file__).parents[1] / "data" / "real_folders"
DOUBTS = {each.NAME for each in detectors() if getattr(each, "DOUBT", False)}
SURE = 0.8


@pytest.fixture(scope="module")
def diagnosed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Diagnosis]:
    """The diagnosis of a recorded folder."""

    @cache
    def diagnosis(name: str) -> Diagnosis:
        place = tmp_path_factory.mktemp("recorded")
        with tarfile.open(FOLDERS / f"{name}.tar.xz") as packed:
            packed.extractall(place, filter="data")
        folder = RunFolder.open(place / name)
        seal(folder)
        found = diagnose(timeline_of(folder.path))
        shutil.rmtree(place)
        return found

    return diagnosis


@pytest.mark.parametrize(("name", "first", "says"), FOLDERS_FIRST)
def test_the_true_cause_comes_first(diagnosed, name, first, says):
    causes = [finding for finding in diagnosed(name).findings if finding.name not in DOUBTS]
    assert [finding.name for finding in causes[:1]] == [first]
    assert says in causes[0].title


def test_where_nothing_was_limited_no_finding_is_sure(diagnosed):
    assert [finding for finding in diagnosed("a1-base").findings if finding.confidence >= SURE] == []


def test_a_stopped_agent_is_not_the_controllers_rate(diagnosed):
    assert "controller-qps" not in {finding.name for finding in diagnosed("k-noagent").findings}


def test_the_figures_of_one_busy_worker_are_of_the_test_not_of_the_controller_before_it(diagnosed):
    evidence = " ".join(each.statement for each in diagnosed("a3-workers1").findings[0].evidence)
    evidence += " ".join(each.statement for each in diagnosed("a3-workers1").findings[1].evidence)
    assert "all workers (1) were busy, with up to 60 workflows queued behind them" in evidence
