from argparse import Namespace

import pytest

from harness.model import ConfigError, Scenario
from harness.plan.options import settings
from harness.plan.validate import check, in_order
from harness.store.folder import RunFolder
from harness.targets.target import find

SCENARIOS = [Scenario(id_, "s", {}, {}) for id_ in ("a", "b", "c")]


def test_arrivals_get_the_scenarios_named_by_the_schedule():
    ordered = in_order(SCENARIOS, ["c", "a", "c", "c"], "day.csv")
    assert [scenario.run_name for scenario in ordered] == ["c-s", "a-s", "c-s-2", "c-s-3"]


def test_an_unknown_scenario_names_file_and_row():
    with pytest.raises(ConfigError, match=r"day\.csv, row 3, column scenario_id: there is no scenario 'z'"):
        in_order(SCENARIOS, ["a", "z"], "day.csv")


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_name_in_use_is_refused_before_anything_is_done_unless_it_is_to_be_overwritten(tmp_path, overwrite):
    (RunFolder.create(tmp_path, "nightly").path / "manifest.json").write_text("{}")
    given = Namespace(runs_dir=str(tmp_path), run_name="nightly", overwrite=overwrite)
    platform = find("kfp")
    if overwrite:
        check(settings(given, "", platform), "kfp", platform)
    else:
        with pytest.raises(ConfigError, match="nightly exists"):
            check(settings(given, "", platform), "kfp", platform)
    assert (tmp_path / "nightly" / "manifest.json").exists()
