import pytest

from harness.model import ConfigError, Scenario
from harness.plan.validate import in_order

SCENARIOS = [Scenario(id_, "s", {}, {}) for id_ in ("a", "b", "c")]


def test_arrivals_get_the_scenarios_named_by_the_schedule():
    ordered = in_order(SCENARIOS, ["c", "a", "c", "c"], "day.csv")
    assert [scenario.run_name for scenario in ordered] == ["c-s", "a-s", "c-s-2", "c-s-3"]


def test_an_unknown_scenario_names_file_and_row():
    with pytest.raises(ConfigError, match=r"day\.csv, row 3, column scenario_id: there is no scenario 'z'"):
        in_order(SCENARIOS, ["a", "z"], "day.csv")
