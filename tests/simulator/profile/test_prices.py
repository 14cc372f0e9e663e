"""Spot prices over time, read from CSV."""

import csv
from pathlib import Path

import pytest

from harness.model.errors import ConfigError
from harness.simulator.profile.file import load_profile
from harness.simulator.profile.prices import PriceSeries, parse_prices


@pytest.mark.parametrize(
    "text",
    [
        "at,price\n0s,0.10\n90m,0.30\n",
        "price, at\n0.10, 0\n0.30, 5400\n",
        "at,zone,price\n2026-01-31T12:00:00Z,1,0.10\n2026-01-31T13:30:00+00:00,1,0.30\n",
    ],
)
def test_instants_are_times_from_the_start_or_dates(text: str) -> None:
    assert parse_prices(text, "p.csv") == PriceSeries((0.0, 5400.0), (0.10, 0.30))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "p.csv: there are no columns"),
        ("at,cost\n0s,1", "p.csv: there are no columns"),
        ("at,price\n", "p.csv: there are no prices"),
        ("at,price\n0s,cheap", "p.csv:2: could not convert"),
        ("at,price\nnoon,0.1", "p.csv:2: 'noon' is not a duration"),
        ("at,price\n0s,0.1\n1h", "p.csv:3: "),
        ("at,price\n0s,0.1\n0s,0.2", "p.csv:3: instants must ascend"),
        ("at,price\n0s,-0.1", "p.csv:2: .*0 or more"),
        ("at,price\n" + 200 * "0" + ",1", "p.csv:2: a cell has more than 64 characters"),
        ("at,price\n0s," + 200 * "0", "p.csv:2: a cell has more than 64 characters"),
        ("at,price\n0s,nan", "p.csv:2: .*0 or more"),
    ],
)
def test_a_wrong_line_is_named(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse_prices(text, "p.csv")


def test_a_cell_beyond_the_bound_of_csv_is_refused() -> None:
    before = csv.field_size_limit(1000)
    try:
        with pytest.raises(ConfigError, match="field larger than"):
            parse_prices("at,price\n" + 2000 * "0", "p.csv")
    finally:
        csv.field_size_limit(before)


@pytest.mark.parametrize(
    ("start_s", "end_s", "mean"),
    [(0.0, 100.0, 0.1), (50.0, 150.0, 0.2), (100.0, 100.0, 0.3), (-10.0, 0.0, 0.1), (150.0, 350.0, 0.3 / 4)],
)
def test_the_mean_weighs_each_price_by_its_time(start_s: float, end_s: float, mean: float) -> None:
    assert PriceSeries((0.0, 100.0, 200.0), (0.1, 0.3, 0.0)).mean(start_s, end_s) == pytest.approx(mean)


POOL = "pools: [{name: cheap, %s}]"


def test_a_profile_names_a_file_beside_it(tmp_path: Path) -> None:
    (tmp_path / "prices.csv").write_text("at,price\n0s,0.1\n")
    (tmp_path / "mine.yaml").write_text(POOL % "spot: true, eviction: {max_price: 0.2, prices: prices.csv}")
    (found,) = load_profile(str(tmp_path / "mine.yaml")).pools
    assert found.eviction.prices == PriceSeries((0.0,), (0.1,))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("spot: true, eviction: {prices: none.csv}", "eviction.prices: .*none.csv does not exist"),
        ("spot: true, eviction: {max_price: 0.2}", "max_price: there are no prices"),
        ("eviction: {policy: deallocate}", "eviction: the pool has no spot machines"),
        ("spot: true, eviction: {cloud: ibm}", "eviction.cloud: 'ibm' is not one of: aks, gke, eks, karpenter"),
        ("spot: true, eviction: {policy: stop}", "eviction.policy: 'stop' is not one of: delete, deallocate"),
    ],
)
def test_settings_of_evictions_that_make_no_sense_are_refused_by_key(given: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(POOL % given)
    with pytest.raises(ConfigError, match=said):
        load_profile(str(tmp_path / "mine.yaml"))
