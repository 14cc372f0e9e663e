import datetime as dt
import json
import re
import uuid

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generators.sampler import Sampler
from harness.model.errors import ConfigError
from tests.support.drawing import column, drawn, spec_of


def at(*parts):
    """Columns hold instants in UTC without saying so."""
    return dt.datetime(*parts, tzinfo=dt.UTC).replace(tzinfo=None)


quick = settings(max_examples=40, deadline=None)
finite = st.floats(-1e9, 1e9)


@quick
@given(st.integers(-(10**6), 10**6), st.integers(-50, 50).filter(bool))
def test_a_sequence_counts(start, step):
    assert column({"sequence": {"start": start, "step": step}}, 50) == [start + step * k for k in range(50)]


def test_a_sequence_with_prefix_and_width_is_text():
    assert column({"kind": "sequence", "prefix": "run-", "width": 4}, 3) == ["run-0001", "run-0002", "run-0003"]


def test_uuids_are_version_4_and_differ():
    found = [uuid.UUID(text) for text in column("uuid", 5000)]
    assert {(u.version, u.variant) for u in found} == {(4, uuid.RFC_4122)}
    assert len(set(found)) == 5000
    assert all(str(u) == text for u, text in zip(found, column("uuid", 5000), strict=True))


@quick
@given(st.tuples(finite, finite).map(sorted), st.integers(0, 6))
def test_a_uniform_stays_in_its_range_and_has_its_decimals(ends, decimals):
    low, high = ends
    assert all(low <= x <= high for x in column({"uniform": [low, high]}, 200))
    assert all(round(x, decimals) == x for x in column({"uniform": [low, high], "decimals": decimals}, 50))


@quick
@given(st.integers(-(2**40), 2**40), st.integers(0, 2**50), st.integers(1, 1000))
def test_integers_are_on_their_grid(low, width, step):
    found = column({"integer": [low, low + width], "step": step}, 200)
    assert all(low <= x <= low + width and (x - low) % step == 0 for x in found)


def test_an_integer_reaches_both_ends_evenly():
    found = column({"integer": [3, 7]}, 50_000)
    assert {x: found.count(x) for x in set(found)} == {x: pytest.approx(10_000, abs=400) for x in range(3, 8)}


@quick
@given(st.integers(-100, 100), st.integers(1, 300))
def test_unique_integers_are_a_permutation(low, width):
    found = column({"integer": [low, low + width - 1], "unique": True}, width)
    assert sorted(found) == list(range(low, low + width))


def test_too_few_unique_values_are_an_error_that_counts_them():
    with pytest.raises(ConfigError, match=r"fields.x is unique but has only 5 values for 6 rows"):
        column({"integer": [1, 5], "unique": True}, 6)


@pytest.mark.parametrize(
    "definition", [{"normal": [0, 1], "decimals": 1}, {"uniform": [0, 9], "decimals": 1}, {"lognormal": [5, 1], "decimals": 0}]
)  # fmt: skip
def test_unique_values_are_drawn_again_until_they_differ(definition):
    found = column({**definition, "unique": True}, 40)
    assert len(set(found)) == 40


def test_a_derived_field_that_should_be_unique_but_is_not_names_both_rows():
    fields = {"plant": {"choice": ["a", "b"]}, "x": {"template": "p-{plant}", "unique": True}}
    with pytest.raises(ConfigError, match=r"fields.x is unique, but rows \d and \d are both 'p-[ab]'"):
        drawn(fields, 10)


@quick
@given(st.lists(st.one_of(st.text(max_size=5), st.integers(-5, 5)), min_size=1, max_size=6, unique_by=str))
def test_a_choice_gives_only_its_values(values):
    found = column({"choice": values}, 100)
    assert {str(x) for x in found} <= {str(v) for v in values}


def test_choices_keep_the_type_of_their_values():
    assert set(column({"choice": [1, 2]}, 50)) == {1, 2}
    assert set(column({"choice": [True, False]}, 50)) == {True, False}
    assert set(column({"choice": [1, 2.5]}, 50)) == {1.0, 2.5}
    assert set(column({"choice": ["a", 1]}, 50)) == {"a", "1"}
    assert set(column({"choice": [["a", 1], {"k": None}]}, 50)) == {'["a",1]', '{"k":null}'}
    assert set(column({"choice": ["a", None]}, 50)) == {"a", None}


def test_a_value_of_weight_0_never_comes():
    assert set(column({"choice": {"never": 0, "a": 1, "b": 3, "last": 0}}, 5000)) == {"a", "b"}


@quick
@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=9, unique=True), st.integers(1, 200))
def test_a_scale_is_balanced_after_any_number_of_rows(levels, n):
    found = column({"scale": levels}, n)
    counts = [found.count(level) for level in levels]
    assert max(counts) - min(counts) <= 1


def test_a_scale_in_turn_and_sorted():
    assert column({"scale": [4000, 5000, 6000], "order": "in_turn"}, 4) == [4000, 5000, 6000, 4000]
    assert column({"scale": [4000, 5000, 6000], "order": "sorted"}, 5) == [4000, 4000, 5000, 5000, 6000]


@quick
@given(st.dates(dt.date(1990, 1, 1), dt.date(2050, 1, 1)), st.integers(0, 400))
def test_dates_are_within_their_range_both_ends_included(start, days):
    end = start + dt.timedelta(days=days)
    assert all(start <= x <= end for x in column({"datetime": [str(start), str(end)]}, 100))


def test_instants_are_on_the_grid_of_their_step():
    found = column({"datetime": ["2025-01-01T00:10:00Z", "2025-01-02T00:00:00Z"], "step": "15m"}, 1000)
    assert all((x - at(2025, 1, 1, 0, 10)) % dt.timedelta(minutes=15) == dt.timedelta(0) for x in found)
    assert min(found) >= at(2025, 1, 1, 0, 10)
    assert max(found) < at(2025, 1, 2)


def test_business_hours_leave_out_nights_and_weekends():
    hours = {"from": "09:00", "to": "17:30", "days": ["mon", "tue", "fri"]}
    definition = {"datetime": ["2025-03-01", "2025-04-30"], "step": "30m", "business_hours": hours}
    found = column(definition, 5000)
    assert {x.weekday() for x in found} == {0, 1, 4}
    assert {x.time() for x in found} == {dt.time(h, m) for h in range(9, 18) for m in (0, 30)} - {dt.time(17, 30)}


def test_business_hours_are_cut_off_where_the_range_begins_and_ends():
    definition = {"datetime": ["2025-03-03T16:40:00Z", "2025-03-04T08:20:00Z"], "step": "10m", "business_hours": True}
    found = set(column(definition, 500))
    times = [at(2025, 3, 3, 16, 40) + dt.timedelta(minutes=10 * k) for k in range(8)]
    assert found == {*times, at(2025, 3, 4, 8, 0), at(2025, 3, 4, 8, 10)}


def test_a_format_makes_a_date_text():
    found = column({"datetime": ["2025-01-01", "2025-01-31"], "format": "%d.%m.%Y"}, 20)
    assert all(re.fullmatch(r"\d\d\.01\.2025", x) for x in found)


def test_fractions_of_a_second_are_written():
    grid = {"datetime": ["2025-01-01T00:00:00Z", "2025-01-01T00:00:01Z"], "step": "1ms", "unique": True}
    found = Sampler(spec_of({"x": grid}), 1, 1000).block(0, 1000)["x"].text().to_list()
    assert sorted(found) == [f"2025-01-01T00:00:00.{k:03d}Z" for k in range(1000)]


def test_faker_values_come_from_the_locale_and_the_arguments():
    assert all(5 <= x <= 7 for x in column({"faker": "pyint", "args": {"min_value": 5, "max_value": 7}}, 50))
    assert all(5 <= x <= 7 for x in column({"faker": "pyint.min_value=5,max_value=7"}, 50))
    names = column({"faker": "city", "locale": "ja_JP"}, 20)
    assert all(any(ord(c) > 0x3000 for c in name) for name in names)


def test_unique_faker_values_are_generated_not_pooled():
    found = column({"faker": "email", "unique": True}, 3000)
    assert len(set(found)) == 3000


def test_a_provider_with_too_few_values_is_named():
    with pytest.raises(ConfigError, match=r"boolean.* has only about 2 values, but 3 are needed"):
        column({"faker": "boolean", "unique": True}, 3)


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        ({"faker": "nonsense"}, "no provider 'nonsense'"),
        ({"faker": "name", "locale": "xx_XX"}, "no locale 'xx_XX'"),
        ({"faker": "pyint", "args": {"nope": 1}}, "can't draw pyint"),
        ({"faker": "__class__"}, "is not a provider"),
    ],
)
def test_unknown_faker_names_are_errors(definition, message):
    with pytest.raises(ConfigError, match=message):
        column(definition, 5)


def test_fakers_dates_do_not_depend_on_the_day_they_are_asked():
    assert all("2025-12-02" <= x <= "2026-01-01" for x in column({"faker": "past_date"}, 200))
    assert set(column({"faker": "date_this_year"}, 20)) == {"2026-01-01"}


def test_the_clock_goes_on_after_faker_has_drawn():
    column({"faker": "past_date"}, 5)
    from faker import Faker

    assert Faker().future_datetime(tzinfo=dt.UTC) > dt.datetime.now(dt.UTC)


@pytest.fixture
def plants(tmp_path):
    path = tmp_path / "plants.csv"
    path.write_text("plant,city,code\n" + "".join(f"p{k},c{k},{k:03d}\n" for k in range(50)))
    return path


def test_joint_columns_of_a_file_stay_joint(plants):
    source = str(plants)
    found = drawn({"plant": {"from_file": source}, "c": {"from_file": source, "column": "city"}}, 500)
    assert all(p[1:] == c[1:] for p, c in zip(found["plant"], found["c"], strict=True))
    assert found["plant"].nunique() > 40


def test_columns_of_different_groups_are_independent(plants):
    source = str(plants)
    found = drawn({"plant": {"from_file": source}, "c": {"from_file": source, "column": "city", "group": "2"}}, 500)
    same = sum(p[1:] == c[1:] for p, c in zip(found["plant"], found["c"], strict=True))
    assert same < 50


def test_rows_are_drawn_in_order_or_each_at_most_once(plants):
    assert column({"from_file": str(plants), "column": "code", "draw": "in_order"}, 3) == ["000", "001", "002"]
    once = column({"from_file": str(plants), "column": "plant", "draw": "without_replacement"}, 50)
    assert sorted(once) == sorted(f"p{k}" for k in range(50))
    assert once != [f"p{k}" for k in range(50)]
    with pytest.raises(ConfigError, match="has 50, 51 are needed"):
        column({"from_file": str(plants), "column": "plant", "draw": "without_replacement"}, 51)


def test_a_parquet_file_keeps_its_types(tmp_path):
    pd.DataFrame({"x": [1.5, 2.5]}).to_parquet(tmp_path / "v.parquet")
    assert set(column({"from_file": "v.parquet"}, 20, folder=tmp_path)) == {1.5, 2.5}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [("none.csv", None, "does not exist"), ("e.csv", "a,b\n", "no rows"), ("x.csv", "a\n1\n", "no column 'x'")],
)
def test_an_unusable_file_is_named(tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(ConfigError, match=message):
        column({"from_file": name, "column": "x"}, 1, folder=tmp_path)


def test_a_template_formats_dates_numbers_and_text():
    fields = {
        "date": {"datetime": ["2025-07-01", "2025-07-31"]},
        "k": {"integer": [5, 5]},
        "x": {"uniform": [0.5, 0.5]},
        "s": {"choice": ["ab"]},
        "t": {"template": "{{s3}}://{s:>4}/{date:%Y/%m}/{k:04d}-{k:x}-{x:.2f}"},
    }
    assert set(drawn(fields, 10)["t"]) == {"{s3}://  ab/2025/07/0005-5-0.50"}


def test_a_template_of_a_missing_value_is_missing():
    found = drawn({"a": {"choice": ["v"], "nullable": 0.5}, "t": {"template": "x{a}"}}, 200)
    assert found["t"].isna().to_list() == found["a"].isna().to_list()
    assert 50 < found["t"].isna().sum() < 150


def test_json_nests_fields_drawn_values_and_lists():
    fields = {
        "plant": {"choice": ['q"uo\\te\n']},
        "level": {"choice": [3], "nullable": 0.5},
        "x": {
            "json": {
                "plant": "{plant}",
                "text": "at {plant}!",
                "level": "{level}",
                "fixed": [1, None, True, "{{brace}}"],
                "drawn": {"$": {"integer": [1, 9]}},
                "list": {"$repeat": {"of": {"k": {"$": {"uniform": [0, 1], "decimals": 2}}}, "min": 1, "max": 4}},
                "empty": {},
                "none": [],
            }
        },
    }
    documents = [json.loads(text) for text in drawn(fields, 400)["x"]]
    assert {d["plant"] for d in documents} == {'q"uo\\te\n'}
    assert {d["text"] for d in documents} == {'at q"uo\\te\n!'}
    assert {d["level"] for d in documents} == {3, None}
    assert all(d["fixed"] == [1, None, True, "{brace}"] and d["empty"] == {} and d["none"] == [] for d in documents)
    assert {d["drawn"] for d in documents} == set(range(1, 10))
    assert {len(d["list"]) for d in documents} == {1, 2, 3, 4}
    assert all(0 <= item["k"] <= 1 for d in documents for item in d["list"])


def test_each_value_of_a_json_list_is_its_own():
    documents = [
        json.loads(t) for t in column({"json": [{"$": {"integer": [0, 10**9]}}, {"$": {"integer": [0, 10**9]}}]}, 50)
    ]
    assert all(a != b for a, b in documents)


def test_a_field_can_depend_on_another():
    fields = {
        "kind": {"choice": ["press", "oven"]},
        "heat": {"by": "kind", "cases": {"press": {"uniform": [20, 30]}}, "otherwise": {"uniform": [200, 300]}},
    }
    found = drawn(fields, 500)
    assert all((20 <= h <= 30) == (k == "press") for k, h in zip(found["kind"], found["heat"], strict=True))


def test_a_value_without_a_case_is_an_error_that_names_it():
    fields = {"k": {"choice": ["a", "b"]}, "x": {"by": "k", "cases": {"a": {"choice": [1]}}}}
    with pytest.raises(ConfigError, match="no case for k = 'b'"):
        drawn(fields, 100)


def test_an_expression_is_clipped_to_min_and_max():
    fields = {"k": {"integer": [1, 100]}, "x": {"expression": "k * 2", "min": 50, "max": 60}}
    found = drawn(fields, 300)
    assert found["x"].to_list() == [min(max(2 * k, 50), 60) for k in found["k"]]


@quick
@given(st.floats(0, 1))
def test_nullable_leaves_out_about_that_share(p):
    missing = drawn({"x": {"integer": [1, 9], "nullable": p}}, 2000)["x"].isna().sum()
    assert missing / 2000 == pytest.approx(p, abs=0.06)


def test_hidden_fields_are_not_written():
    assert list(drawn({"a": {"integer": [1, 2], "hidden": True}, "b": {"expression": "a"}}, 3)) == [
        "id",
        "scenario_name",
        "b",
    ]
