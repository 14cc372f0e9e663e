"""The last resort names what grew, and what was not observed; whatever names a cause takes its place."""

from harness.detectors import detectors, diagnose, unexplained_wait
from tests.support.injected.loads import slower_and_slower, steady

# Doubts about the test, which explain no wait of the runs.
_DOUBTS = {
    "censoring", "clock-skew", "credentials-refused", "etcd-nearly-full", "inconsistent-records", "missed-arrivals", "observer-gaps", "too-few-samples",
}  # fmt: skip


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


def test_every_detector_of_a_bottleneck_explains_it():
    known = {each.NAME for each in detectors()} - _DOUBTS - {unexplained_wait.NAME}
    assert set(unexplained_wait.EXPLAINED_BY) == known
