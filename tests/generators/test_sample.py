"""Inference: a sample drawn from a known spec yields that spec again."""

import csv
import json
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from generators.cli import main
from generators.spec import read_spec
from harness.documents import read_yaml


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def table(name):
    with Path(name).open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def learned(spec=None, n=2000):
    """Draw a sample from a spec, learn it, and draw again: the learned spec, the sample, and the new rows."""
    if spec is not None:
        Path("truth.yaml").write_text(spec)
        assert main(["--spec", "truth.yaml", "--n", str(n), "--seed", "3", "-o", "sample.csv", "--quiet"]) == 0
    assert main(["--from-csv", "sample.csv", "--write-spec", "learned.yaml", "--quiet"]) == 0
    assert main(["--spec", "learned.yaml", "--n", str(n), "--seed", "9", "-o", "new.csv", "--quiet"]) == 0
    return yaml.safe_load(Path("learned.yaml").read_text())["fields"], table("sample.csv"), table("new.csv")


def test_each_kind_is_recognised():
    fields, sample, new = learned(
        """
fields:
  id: {sequence: 100}
  scenario_name: {template: "{plant}-{day:%Y/%m}-{id}"}
  plant: {choice: {augsburg: 6, graz: 3, linz: 1}}
  key: uuid
  on: {boolean: 0.2}
  day: {datetime: ["2025-02-01", "2025-05-31"]}
  at: {datetime: ["2025-02-01T06:00:00Z", "2025-02-03T00:00:00Z"], step: 15m}
  level: {scale: [4000, 5000, 6000]}
  share: {uniform: [0.1, 0.7], decimals: 3}
  rate: {lognormal: [0.01, 0.6], decimals: 6}
  size: {normal: [100, 15], decimals: 2}
  epochs: {integer: [5, 500]}
  some: {integer: [1, 1000], nullable: 0.2}
  sensor: {template: "s-{n:04d}"}
  n: {integer: [1, 3000], hidden: true}
  doc: {json: {lr: {$: {uniform: [0, 1]}}, tag: {$: {choice: [a, b]}}}}
"""
    )
    assert fields["id"] == {"sequence": 100}
    assert fields["scenario_name"] == {"template": "{plant}-{day:%Y/%m}-{id}"}
    assert fields["key"] == {"kind": "uuid"}
    assert fields["on"]["boolean"] == pytest.approx(0.2, abs=0.04)
    assert fields["day"] == {"datetime": ["2025-02-01", "2025-05-31"]}
    assert fields["at"]["step"] == 900
    assert fields["level"] == {"scale": [4000, 5000, 6000]}
    assert fields["share"]["uniform"] == pytest.approx([0.1, 0.7], abs=0.01)
    assert fields["rate"]["lognormal"] == pytest.approx([0.01, 0.6], rel=0.05)
    assert fields["size"]["normal"] == pytest.approx([100, 15], rel=0.05)
    assert fields["epochs"]["integer"] == pytest.approx([5, 500], abs=3)
    assert fields["some"]["nullable"] == pytest.approx(0.2, abs=0.04)
    assert set(fields["doc"]["json"]) == {"lr", "tag"}
    assert list(new[0]) == list(sample[0])
    assert all(row["scenario_name"] == f"{row['plant']}-{row['day'][:7].replace('-', '/')}-{row['id']}" for row in new)
    assert all(row["sensor"].startswith("s-") and len(row["sensor"]) == 6 for row in new)
    assert all(set(json.loads(row["doc"])) == {"lr", "tag"} for row in new)
    shares = [sum(row["plant"] == plant for row in new) / 2000 for plant in ("augsburg", "graz", "linz")]
    assert shares == pytest.approx([0.6, 0.3, 0.1], abs=0.05)


@pytest.mark.parametrize(
    "definition",
    [
        "{zipf: 400}",
        "{by: c, cases: {a: {normal: [0, 1]}, b: {normal: [50, 2]}}}",
        "{expression: (id % 97) ** 2 + 0.5}",
        "{lognormal: [1000, 1.5], decimals: 0}",
    ],
)
def test_unnamed_marginals_are_inferred_as_quantiles(definition):
    spec = f"fields:\n  c: {{choice: [a, b], hidden: true}}\n  x: {definition}\n"
    _, sample, new = learned(spec)
    a, b = ([float(row["x"]) for row in rows] for rows in (sample, new))
    assert stats.ks_2samp(a, b).statistic < 0.06


def test_rank_correlation_is_inferred():
    spec = """
fields:
  a: {lognormal: [10, 1]}
  b: {normal: [0, 1], correlation: {with: a, rank: -0.7}}
"""
    fields, _, new = learned(spec, 4000)
    assert fields["b"]["correlation"]["rank"] == pytest.approx(-0.7, abs=0.05)
    found = stats.spearmanr([float(row["a"]) for row in new], [float(row["b"]) for row in new]).statistic
    assert found == pytest.approx(-0.7, abs=0.06)


def test_text_without_a_pattern_is_drawn_from_the_sample(capsys):
    words = [f"{a}{b}" for a in ("alpha", "be ta", "gam-ma", "del.ta") for b in ("x", "yy", "z1z", "{q}")] * 3
    odd = [f"{word}{chr(97 + k % 26)}{chr(97 + k // 26)}" for k, word in enumerate(words)]
    Path("sample.csv").write_text("id,scenario_name,t\n" + "".join(f"{k},s,{word}\n" for k, word in enumerate(odd)))
    fields, _, new = learned()
    assert fields["t"]["column"] == "t"
    assert {row["t"] for row in new} <= set(odd)


cells = st.one_of(
    st.text(alphabet=st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=6),
    st.integers(-999, 999).map(str), st.floats(allow_nan=False, allow_infinity=False).map(str),
    st.sampled_from(["", "true", "2025-01-01", "007", '{"a":1}', "[1,2]", "{x}", "=1", "1e5", "-0", "2025-13-01"]),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(cells, cells), min_size=1, max_size=40))
@example([("x", "=-1")] * 3)
@example([("x", "1"), ("x", "\0")])
@example([("x", f"plant-{k:03d}/part-{k}") for k in range(40)])
def test_any_sample_yields_a_spec_that_works(tmp_path_factory, rows):
    base = tmp_path_factory.mktemp("any")
    with (base / "s.csv").open("w", newline="", encoding="utf-8") as out:
        csv.writer(out).writerows([["a", "b c"], *rows])
    assert main(["--from-csv", str(base / "s.csv"), "--write-spec", str(base / "l.yaml"), "--quiet"]) == 0
    assert read_spec(read_yaml(base / "l.yaml")).columns == ["id", "scenario_name", "a", "b c"]
    assert main(["--spec", str(base / "l.yaml"), "--n", "20", "-o", str(base / "n.csv"), "--quiet"]) == 0
    assert len(table(base / "n.csv")) == 20


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "has no header"),
        ("a,b\n", "has no rows"),
        ("a,a\n1,2\n", "'a' is duplicated"),
        ("a,b\n1\n", "row 2: 1 cells, but the header has 2"),
    ],
)
def test_an_invalid_sample_is_an_error(capsys, content, said):
    Path("s.csv").write_text(content)
    assert main(["--from-csv", "s.csv"]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.filterwarnings("error")
def test_numbers_beyond_float_range_are_inferred_as_labels():
    rows = "".join(f"{k},n{k},{'1e400' if k % 2 else '2'}\n" for k in range(8))
    Path("sample.csv").write_text(f"id,scenario_name,x\n{rows}")
    _, _, new = learned(n=50)
    assert {row["x"] for row in new} == {"1e400", "2"}
