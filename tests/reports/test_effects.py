"""The expected effects of fixes in every form of the report."""

import json
from dataclasses import replace

import pytest

from harness.analysis.result import analyse
from harness.cli import main
from harness.detectors import diagnose
from harness.model.effects import TOGETHER, Effects, Figure, Prediction
from harness.planning.sweeps import Workers
from harness.planning.timelines import timeline_of
from harness.planning.what_if import expected_effects
from harness.store import RunFolder
from reports import document, markdown, page
from reports.summary import effect_bars, summary


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Thirty runs at once on three nodes, which they wait for, and for images."""
    place = tmp_path_factory.mktemp("runs")
    load = ("--schedule", "burst", "--runs", "30", "--runs-dir", str(place), "--run-name", "run", "--quiet")
    assert main(["simulate", "run", "--profile", "aks-20-nodes", "--fault", "nodes-exhausted", *load]) == 0
    return RunFolder.open(place / "run")


@pytest.fixture(scope="module")
def result(folder):
    timeline = timeline_of(folder.path)
    diagnosis = diagnose(timeline)
    return replace(analyse(timeline, diagnosis), effects=expected_effects(folder, timeline, diagnosis, Workers(1)))


def test_the_first_findings_fix_has_an_expected_effect_in_every_form(result):
    first = result.diagnosis.findings[0].name
    p95 = result.effects.fixes[first].figures["p95_s"]
    assert p95.low < p95.value < min(p95.high, p95.now)
    assert (result.effects.together is None) == (len(result.effects.fixes) == 1)
    for text in (summary(result), markdown.render(result).decode(), page.render(result).decode()):
        assert "Expected effect" in text
        assert p95.interval in text
    (found,) = [each for each in json.loads(document.render(result))["effects"]["fixes"] if each["name"] == first]
    assert found["figures"]["p95_s"]["value"] == pytest.approx(p95.value, rel=1e-5)


def test_bars_show_today_each_fix_and_all_of_them(result):
    figure, none = Figure(100.0, 50.0, 40.0, 60.0), Figure(0.0, 0.0, 0.0, 0.0)
    one, both = (Prediction(name, {"p95_s": figure}, none, "nodes", "more") for name in ("quota", TOGETHER))
    rows = effect_bars(replace(result, effects=Effects("reproduced", {"quota": one}, both)))
    assert [(row.name, row.share) for row in rows] == [("today", 1.0), ("quota", 0.5), (TOGETHER, 0.5)]
    assert rows[1].text == "50 s (−60 to −40 %)"


@pytest.mark.parametrize(
    "effects", [None, Effects("the model does not reproduce the test: start 9 s, simulated 2 s", {})]
)
def test_without_predictions_there_are_no_bars_and_the_report_says_why(result, effects):
    without = replace(result, effects=effects)
    assert not effect_bars(without)
    shown = page.render(without).decode()
    assert "Expected effect:" not in shown
    assert ("does not reproduce" in shown) == (effects is not None)


def test_the_same_folder_gives_the_same_effects_and_they_can_be_left_out(folder, result, monkeypatch):
    monkeypatch.delenv("PIPESWARM_NO_WHAT_IF")
    assert main(["report", str(folder.path), "--quiet"]) == 0
    first = json.loads((folder.path / "report.json").read_bytes())
    assert first["effects"] == json.loads(document.render(result))["effects"]
    assert main(["report", str(folder.path), "--quiet", "--no-what-if"]) == 0
    assert json.loads((folder.path / "report.json").read_bytes())["effects"] is None
    monkeypatch.setenv("PIPESWARM_NO_WHAT_IF", "true")
    assert main(["report", str(folder.path), "--quiet"]) == 0
    assert json.loads((folder.path / "report.json").read_bytes())["effects"] is None
