import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.cli import main
from harness.model import Node, Sample
from harness.model.errors import ConfigError
from harness.model.phases import NODE_PRICE
from harness.store.prices import EVERY, parse_price
from harness.store.tables import load
from tests.support.timelines import at, burst


@pytest.fixture
def folder(tmp_path):
    story = burst(20)
    story.node("spot-0", -60.0, 0.0, pool="spot", price=0.5)
    return story.write(tmp_path)


def prices(folder):
    nodes = load(folder)["nodes"]
    return dict(zip(nodes["pool"], nodes["price"].astype(float), strict=True))


def cost(folder):
    return json.loads((folder.path / "report.json").read_bytes())["cost"]["cost"]


def test_a_given_price_adds_costs_to_the_report_and_is_kept(folder):
    assert main(["report", str(folder.path), "--quiet"]) == 0
    assert cost(folder) is None
    assert main(["report", str(folder.path), "--quiet", "--price", "train=0.36"]) == 0
    charges = json.loads((folder.path / "report.json").read_bytes())["cost"]
    assert charges["cost"] == pytest.approx(0.36 * charges["node_hours"], rel=1e-5)
    before = (folder.path / "report.html").read_bytes()
    assert main(["report", str(folder.path), "--quiet"]) == 0
    assert (folder.path / "report.html").read_bytes() == before


def test_given_prices_accumulate_and_replace_recorded_ones(folder):
    main(["report", str(folder.path), "--quiet", "--price", "train=0.36"])
    assert prices(folder) == {"train": 0.36, "spot": 0.5}
    main(["report", str(folder.path), "--quiet", "--price", "spot=0.1"])
    assert prices(folder) == {"train": 0.36, "spot": 0.1}
    main(["report", str(folder.path), "--quiet", "--price", "2"])
    assert prices(folder) == {"train": 0.36, "spot": 0.1}  # those that are named stay


def test_what_opencost_measured_is_the_price_of_nodes_without_another(tmp_path):
    story = burst(20)
    story.node("spot-0", -60.0, 0.0, pool="spot", price=0.5)
    names = [record.name for record in story.records if isinstance(record, Node)]
    story.records += [
        Sample(NODE_PRICE, at(float(k)), price, {"node": name}) for name in names for k, price in enumerate((0.2, 0.4))
    ]
    folder = story.write(tmp_path)
    assert prices(folder) == {"train": pytest.approx(0.3), "spot": 0.5}
    main(["report", str(folder.path), "--quiet", "--price", "train=0.36"])
    assert prices(folder) == {"train": 0.36, "spot": 0.5}


def test_a_price_without_a_pool_is_that_of_every_pool(folder):
    main(["report", str(folder.path), "--quiet", "--price", "0.2"])
    assert prices(folder) == {"train": 0.2, "spot": 0.2}


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("train: 0.36\nelsewhere: 9\n", {"train": 0.36, "spot": 0.5}),
        ("Standard_D4s_v5: 0.2\n", {"train": 0.2, "spot": 0.5}),  # the machines of that pool
        ("Standard_D4s_v5: 0.2\ntrain: 0.3\n", {"train": 0.3, "spot": 0.5}),
        ('{"*": 0.1}', {"train": 0.1, "spot": 0.1}),
    ],
)
def test_a_file_of_prices_names_pools_or_machine_types(tmp_path, text, known):
    story = burst(20)
    story.node("train-9", 0.0, 0.0, machine="Standard_D4s_v5")
    story.node("spot-0", -60.0, 0.0, pool="spot", price=0.5)
    folder = story.write(tmp_path)
    (tmp_path / "prices.yaml").write_text(text)
    assert main(["report", str(folder.path), "--quiet", "--prices", str(tmp_path / "prices.yaml")]) == 0
    assert prices(folder) == known
    report = json.loads((folder.path / "report.json").read_bytes())
    paid = [part["cost"] for part in report["allocated"]]
    assert report["cost"]["cost"] is None or sum(paid) == pytest.approx(report["cost"]["cost"])


def test_the_currency_of_a_file_stands_beside_the_costs_and_stays(folder, tmp_path):
    (tmp_path / "prices.yaml").write_text("currency: EUR\ntrain: 0.36\n")
    main(["report", str(folder.path), "--no-what-if", "--quiet", "--prices", str(tmp_path / "prices.yaml")])
    main(["report", str(folder.path), "--no-what-if", "--quiet", "--price", "spot=0.1"])
    assert prices(folder) == {"train": 0.36, "spot": 0.1}
    assert json.loads((folder.path / "report.json").read_bytes())["cost"]["currency"] == "EUR"
    page = (folder.path / "report.html").read_text(encoding="utf-8")
    assert "Cost (EUR)" in page
    assert "Succeeded runs per EUR" in page


@pytest.mark.parametrize(
    "text", ["", "- 1\n", "train: dear\n", "train: -1\n", "currency: <b>\ntrain: 1\n", "currency: 7\n"]
)
def test_a_file_without_prices_is_rejected(folder, tmp_path, text):
    (tmp_path / "prices.yaml").write_text(text)
    assert main(["report", str(folder.path), "--prices", str(tmp_path / "prices.yaml")]) == 2
    assert not (folder.path / "prices.json").exists()


def test_an_unknown_pool_is_rejected_with_the_known_ones(folder, capsys):
    assert main(["report", str(folder.path), "--price", "trian=0.36"]) == 2
    assert "spot, train" in capsys.readouterr().err
    assert not (folder.path / "prices.json").exists()


@pytest.mark.parametrize("text", ["train=", "train=cheap", "-1", "train=nan", "inf"])
def test_an_invalid_price_is_rejected(text):
    with pytest.raises(ConfigError, match="is not a price"):
        parse_price(text)


@given(pool=st.text(st.characters(categories=["L", "N"]), min_size=1), price=st.floats(0, 1e6))
def test_a_price_is_read_as_it_is_written(pool, price):
    assert parse_price(f"{pool}={price!r}") == (pool, price)
    assert parse_price(repr(price)) == (EVERY, price)
