"""What is predicted from a test of Argo's real controller, and what another test really showed.

Both were bursts of 40 one-step workflows within the same hour: see `tests/data/real_folders`.
"""

import tarfile
from functools import cache
from pathlib import Path

import pytest

from harness.cli import main
from harness.detectors import diagnose
from harness.detectors.ranking import ranked
from harness.model.findings import Diagnosis, Evidence, Finding, Validity
from harness.planning.identify import identify, recorded_test
from harness.planning.sweeps import Workers
from harness.planning.timelines import timeline_of
from harness.planning.what_if import Scenario, expected_effects, parse_change, predict
from harness.store import RunFolder
from harness.store.tables import seal

REAL = Path(__file__).parents[2] / "data" / "real_folders"
# What was limited in each, by --set, and how it is lifted: six nodes have room for all. No refusal by the quota was
# read: the model has a limit of six running workflows instead.
LIMITS = {
    "a4-parallelism4": ("parallelism=4", "parallelism=0"),
    "a5-quota6": ("quota.pods=6", "parallelism=0"),
    "a6-nodes": ("nodes=1,pool.default.cpu=2", "nodes=6,pool.default.cpu=32"),
}


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """A recorded folder, sealed."""

    @cache
    def of(name):
        place = tmp_path_factory.mktemp("real")
        with tarfile.open(REAL / f"{name}.tar.xz") as packed:
            packed.extractall(place, filter="data")
        folder = RunFolder.open(place / name)
        seal(folder)
        return folder

    return of


@pytest.fixture(scope="module")
def identified(unpacked):
    """The platform of a recorded folder, and its test."""

    @cache
    def of(name):
        timeline = timeline_of(unpacked(name).path)
        test = recorded_test(unpacked(name), timeline)
        return identify(timeline, test), test

    return of


@pytest.mark.parametrize(("recorded", "other"), [(one, other) for one in LIMITS for other in LIMITS if one != other])
def test_another_limit_of_the_real_controller_is_predicted_within_20_percent(identified, recorded, other):
    (model, test), (really, _) = identified(recorded), identified(other)
    change = parse_change(f"{LIMITS[recorded][1]},{LIMITS[other][0]}", Scenario(model.profile, test), model.images)
    (found,) = predict(model, test, [change], Workers(1)).predictions
    for name in ("mean_s", "makespan_s"):
        assert found.figures[name].value == pytest.approx(getattr(really.recorded, name), rel=0.2), name


def test_waits_for_a_quota_are_not_taken_for_a_slow_controller(identified):
    """Its pods request 510m with Argo's own container: of a quota of 2 CPUs three fit, and the others are refused."""
    (model, test), (really, _) = identified("quota-cpu"), identified("none")
    change = parse_change("quota.cpu=0,runs×2", Scenario(model.profile, test), model.images)
    (found,) = predict(model, test, [change], Workers(1)).predictions
    for name in ("mean_s", "makespan_s"):
        assert found.figures[name].value == pytest.approx(getattr(really.recorded, name), rel=0.2), name
    assert max(model.simulated.waits, key=model.simulated.waits.__getitem__) == "quota"


@pytest.mark.parametrize(
    ("name", "first"),
    [("k6-burst60", "agent-lag"), ("a4-parallelism4", "workflows-postponed"), ("a6-nodes", "nodes-exhausted")],
)
def test_ranked_by_expected_effect_the_true_cause_still_comes_first(unpacked, name, first):
    folder = unpacked(name)
    timeline = timeline_of(folder.path)
    diagnosis = diagnose(timeline)
    effects = expected_effects(folder, timeline, diagnosis, Workers(1))
    assert effects is not None
    assert effects.fixes[first].saved > 0.1
    assert ranked(diagnosis.findings, effects)[0].name == first


def test_where_more_pods_share_a_node_than_were_ever_seen_it_says_so(unpacked, capsys):
    """Really without the quota, the machine behind the nodes slows each of 60 pods; nothing in the test shows it."""
    assert main(["what-if", str(unpacked("quota6").path), "--set", "quota.pods=0", "--set", "quota.pods=7"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "quota.pods=0: up to 18 pods on a node at once, and never more than 3 in the test" in out
    assert "quota.pods=7: up to" not in out


def test_nothing_is_expected_of_a_fix_whose_cause_the_model_does_not_have(unpacked):
    """Its steps request what the workflow says: no setting of the platform makes that less."""
    folder = unpacked("a6-nodes")
    found = Finding("stranded-capacity", "stranded", 0.9, (Evidence("seen"),), "Request less.")
    effects = expected_effects(folder, timeline_of(folder.path), Diagnosis(Validity(), (found,)), Workers(1))
    assert effects is not None
    assert effects.fixes == {}
    assert effects.model.startswith("the model reproduces the test within")
