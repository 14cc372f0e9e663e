import csv
import json
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from generators import workload_cli
from generators.cli import main
from generators.schema import WORKLOAD, validate
from generators.workload import arrivals, read_workload, widths
from harness.documents import Document, parse_yaml
from harness.model.errors import ConfigError

IDS = {"id": [str(k) for k in range(1, 101)], "plant": ["a", "b", "c", "d"] * 25}


def workload(**data):
    return read(Document(data, "test"))


def read(document):
    validate(document, WORKLOAD)
    return read_workload(document)


phases = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 60), st.integers(1, 30), st.integers(1, 12)).map(
        lambda t: {"name": "p", "for": t[3] * 60, "width": sorted(t[:2]), "variation": t[2]}
    ),
    min_size=1,
    max_size=4,
)


@settings(deadline=None)
@given(phases, st.integers(0, 2**32))
def test_each_width_moves_from_the_last_by_at_most_the_variation(given_phases, seed):
    day = workload(stage="1m", phases=given_phases)
    found = widths(day, seed)
    variations = [phase.variation for phase in day.phases for _ in range(phase.stages)]
    assert all(abs(b - a) <= v for a, b, v in zip(found, found[1:], variations[1:], strict=False))
    assert min(found) >= 0


@settings(deadline=None)
@given(phases, st.integers(0, 2**32))
def test_a_phase_approaches_its_limits_and_then_stays_within_them(given_phases, seed):
    day = workload(stage="1m", phases=given_phases)
    found = widths(day, seed).tolist()
    position = 0
    for phase in day.phases:
        stretch = found[position : position + phase.stages]
        away = [max(phase.low - w, w - phase.high, 0) for w in stretch]
        assert away == sorted(away, reverse=True)
        position += phase.stages


@settings(deadline=None, max_examples=40)
@given(phases, st.sampled_from(["random", "even", "burst"]), st.integers(0, 2**32))
def test_arrivals_are_in_order_and_as_many_in_each_stage_as_its_width(given_phases, spacing, seed):
    day = workload(stage="1m", spacing=spacing, phases=given_phases)
    found = arrivals(day, seed, IDS)
    assert all(a <= b for a, b in zip(found.due_s, found.due_s[1:], strict=False))
    counts = np.bincount((found.due_s // 60).astype(int), minlength=len(widths(day, seed)))
    assert counts.tolist() == widths(day, seed).tolist()


def test_tenants_get_their_shares_and_their_mixes():
    tenants = [
        {"name": "x", "share": 3, "mix": {"plant": {"a": 4, "b": 1}}},
        {"name": "y", "share": 1, "mix": {"plant": ["c"]}, "order": "in_turn"},
    ]
    day = workload(stage=60, phases=[{"name": "p", "for": 600, "width": [1000, 1000]}], tenants=tenants)
    found = arrivals(day, 1, IDS)
    plant = dict(zip(IDS["id"], IDS["plant"], strict=True))
    x = [plant[i] for i, t in zip(found.scenario_ids, found.tenants, strict=True) if t == "x"]
    y = [i for i, t in zip(found.scenario_ids, found.tenants, strict=True) if t == "y"]
    assert stats.binomtest(len(x), 10_000, 0.75).pvalue > 0.001
    assert set(x) == {"a", "b"}
    assert stats.binomtest(x.count("a"), len(x), 0.8).pvalue > 0.001
    assert y[:26] == [str(k) for k in range(3, 101, 4)] + ["3"]


def test_a_phase_can_have_shares_of_its_own():
    tenants = [{"name": "x"}, {"name": "y"}]
    both = [
        {"name": "day", "for": 60, "width": [50, 50]},
        {"name": "night", "for": 60, "width": [50, 50], "shares": {"y": 1}},
    ]
    found = arrivals(workload(stage=60, phases=both, tenants=tenants), 1, IDS)
    assert set(found.tenants[:50]) == {"x", "y"}
    assert set(found.tenants[50:]) == {"y"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("phases:\n- {name: a, for: 7m, width: [1, 2]}\n", "test.yaml:2: phases[0].for: 7m is not a whole number of stages"),
        ("phases:\n- {name: a, for: 5m, width: [3, 2]}\n", "phases[0].width: min 3 is above max 2"),
        ("phases:\n- {name: a, for: 5m, with: [3, 2]}\n", "phases[0]: 'width' is a required property"),
        ("phases:\n- {name: a, for: 5m, width: [1, 2], shares: {z: 1}}\n", "unknown tenant"),
        ("phases: []\n", "phases: [] should be non-empty"),
        ("stage: 0s\nphases:\n- {name: a, for: 5m, width: [1, 2]}\n", "test.yaml:1: stage: 0s is not a positive duration"),
        ("phases:\n- {name: a, for: 5m, width: [1, 2]}\ntenants:\n- {name: t}\n- {name: t}\n", "two tenants have the same name"),
        ("phasen: 1\n", "phasen: unknown key 'phasen'"),
    ],
)  # fmt: skip
def test_an_error_names_line_and_key(text, said):
    with pytest.raises(ConfigError) as caught:
        read(parse_yaml(text, "test.yaml"))
    assert said in caught.value.message


def test_a_mix_that_matches_no_scenario_is_an_error():
    day = workload(
        phases=[{"name": "p", "for": 300, "width": [5, 5]}], tenants=[{"name": "t", "mix": {"plant": ["zz"]}}]
    )
    with pytest.raises(ConfigError, match="no scenario matches the mix of tenant t"):
        arrivals(day, 1, IDS)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_the_command_writes_a_schedule_and_a_plot(capsys):
    main(["--n", "50", "--quiet"])
    assert main(["workload", "--scenarios", "scenarios.csv", "--plot", "w.svg", "--seed", "4", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    with Path("schedule.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert list(rows[0]) == ["seq", "due_s", "tenant", "scenario_id"]
    assert [int(row["seq"]) for row in rows] == list(range(len(rows)))
    assert shown["runs"] == len(rows) == sum(shown["tenants"].values())
    assert {int(row["scenario_id"]) for row in rows} <= set(range(1, 51))
    again = Path("schedule.csv").read_bytes()
    assert main(["workload", "--scenarios", "scenarios.csv", "--seed", "4", "--quiet"]) == 0
    assert Path("schedule.csv").read_bytes() == again


@pytest.mark.usefixtures("folder")
def test_the_plot_shows_the_runs_of_every_tenant_and_phase():
    assert main(["workload", "--plot", "w.svg", "--quiet"]) == 0
    root = ET.fromstring(Path("w.svg").read_text())
    ns = "{http://www.w3.org/2000/svg}"
    texts = {element.text for element in root.iter(f"{ns}text")}
    assert {"morning", "lunch lull", "after-lunch rush", "easing", "forecasting", "quality", "research"} <= texts
    with Path("schedule.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert root.find(f"{ns}desc").text.startswith(f"{len(rows)} runs over 9 h")
    # The topmost edge of the areas is the widest stage, on the scale that the labels tell.
    stages = np.bincount([int(float(row["due_s"]) // 300) for row in rows])
    labels = sorted(
        (int(e.text), float(e.get("y")) - 4) for e in root.iter(f"{ns}text") if e.get("text-anchor") == "end"
    )
    (_, zero), (top, high) = labels[0], labels[-1]
    highest = min(float(p.split(",")[1]) for e in root.iter(f"{ns}polygon") for p in e.get("points").split())
    assert (zero - highest) / (zero - high) * top == pytest.approx(stages.max(), abs=0.5)


@pytest.mark.usefixtures("folder")
def test_the_plot_may_be_a_png():
    assert main(["workload", "--plot", "w.png", "--quiet"]) == 0
    head = Path("w.png").read_bytes()[:24]
    assert head.startswith(b"\x89PNG\r\n")
    assert (int.from_bytes(head[16:20]), int.from_bytes(head[20:24])) == (1920, 800)


@pytest.mark.usefixtures("folder")
def test_without_the_library_a_png_says_how_to_get_it(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    assert main(["workload", "--plot", "w.png", "--quiet"]) == 2
    assert "pipeswarm[png]" in capsys.readouterr().err
    assert not Path("schedule.csv").exists()


@pytest.mark.usefixtures("folder")
def test_options_define_a_single_phase():
    assert main(["workload", "--for", "1h", "--stage", "10m", "--width", "5..9", "--n", "3", "--quiet"]) == 0
    with Path("schedule.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert 30 <= len(rows) <= 54
    assert {row["scenario_id"] for row in rows} == {"1", "2", "3"}


@pytest.mark.usefixtures("folder")
def test_a_day_without_runs_is_refused(capsys):
    assert main(["workload", "--for", "30m", "--width", "0..0"]) == 2
    assert "starts no run" in capsys.readouterr().err
    assert not list(Path.cwd().iterdir())


def test_the_stages_are_also_written_for_a_test_in_which_they_depend_on_each_other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["--for", "1h", "--stage", "10m", "--width", "0..4", "--variation", "2", "--seed", "3", "--quiet"]
    assert workload_cli.run([*words, "--stages", "day.yaml"]) == 0
    stages = yaml.safe_load((tmp_path / "day.yaml").read_text())
    due_s = [float(line.split(",")[1]) for line in (tmp_path / "schedule.csv").read_text().splitlines()[1:]]
    counts = [sum(k * 600 <= each < (k + 1) * 600 for each in due_s) for k in range(6)]
    assert [each["runs"] for each in stages] == [count for count in counts if count]


def test_a_recorded_run_has_no_stages(tmp_path):
    with pytest.raises(ConfigError, match="--stages needs a workload"):
        workload_cli.run(["--from-run", str(tmp_path), "--stages", str(tmp_path / "day.yaml")])
