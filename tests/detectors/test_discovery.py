import sys

import pytest

from harness.detectors import detectors, diagnose
from tests.support.timelines import burst

MODULE = """
from harness.detectors import CannotJudgeError
from harness.model import Evidence, Finding

NAME = "{name}"
NEEDS = ("runs",)

def detect(timeline):
    if "{name}" == "silent-one":
        raise CannotJudgeError("the moon was not observed")
    return [Finding(NAME, "It is what it is", 1.0, (Evidence("seen"),), "Nothing.", (), 1.0)]
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Two third-party detectors, installed as a separate distribution."""
    for name in ("loud-one", "silent-one"):
        (tmp_path / f"{name.replace('-', '_')}.py").write_text(MODULE.format(name=name))
    info = tmp_path / "elsewhere-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: elsewhere\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[pipeswarm.detectors]\nloud = loud_one\nsilent = silent_one\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for name in ("loud_one", "silent_one"):
        sys.modules.pop(name, None)


def test_built_in_detectors_are_discovered_by_module():
    names = [detector.NAME for detector in detectors()]
    assert names == sorted(names)
    assert len(set(names)) == len(names)
    assert "store-full" in names


def test_bottlenecks_that_a_platform_cannot_have_are_not_listed_as_not_judged(tmp_path):
    silent = {s.name for s in diagnose(burst(40).timeline(tmp_path)).not_judged}
    assert silent.isdisjoint({"adapter-slow", "lb-imbalance", "slow-worker"})


@pytest.mark.usefixtures("installed")
def test_third_party_detectors_run_and_may_decline_to_judge(tmp_path):
    diagnosis = diagnose(burst(40).timeline(tmp_path / "runs"))
    assert diagnosis.findings[0].name == "loud-one"
    assert {s.name: s.reason for s in diagnosis.not_judged}["silent-one"] == "the moon was not observed"
