"""The last resort names what grew, and what was not observed; whatever names a cause takes its place."""

from harness.detectors import detectors, diagnose, unexplained_wait
from harness.model.findings import Evidence, Finding
from tests.support.injected.loads import slower_and_slower, steady


def test_what_grew_and_what_was_not_observed_is_said(tmp_path):
    (finding,) = diagnose(slower_and_slower().timeline(tmp_path)).findings
    assert finding.name == "unexplained-wait"
    assert "a time that no observation divides" in finding.title
    assert any("no pods were observed" in each.statement for each in finding.evidence)


def test_a_cause_takes_its_place(tmp_path):
    timeline = steady(gap=lambda seq: 0.3 + seq / 5).timeline(tmp_path)
    assert unexplained_wait.detect(timeline)
    assert [each.name for each in diagnose(timeline).findings] == ["controller-backlog"]


def test_runs_that_take_no_longer_are_no_matter(tmp_path):
    assert unexplained_wait.detect(steady(60).timeline(tmp_path)) == []


def test_runs_that_wait_for_most_of_their_time_are_said_to_wait_even_if_no_wait_grew(tmp_path):
    (finding,) = unexplained_wait.detect(steady(20, first=lambda _: 60.0).timeline(tmp_path))
    assert "“controller queue”" in finding.title
    assert unexplained_wait.detect(steady(20, first=lambda _: 2.0).timeline(tmp_path)) == []


def test_a_doubt_about_the_test_does_not_silence_it_and_a_finding_of_a_plug_in_does(tmp_path, monkeypatch):
    class Plugin:
        NAME, NEEDS = "my-cause", ("runs",)

        @staticmethod
        def detect(_timeline):
            return [Finding("my-cause", "it is mine", 0.6, (Evidence("seen"),), "Fix it.")]

    timeline = slower_and_slower().timeline(tmp_path)
    kept = [each for each in detectors() if each.NAME in {"unexplained-wait", "observer-gaps"}]
    monkeypatch.setattr("harness.detectors.diagnosis.detectors", lambda: [*kept, Plugin])
    assert [each.name for each in diagnose(timeline).findings] == ["my-cause"]
    monkeypatch.setattr(Plugin, "DOUBT", True, raising=False)
    assert {each.name for each in diagnose(timeline).findings} == {"my-cause", "unexplained-wait"}
