"""Any run folder gives a diagnosis: a test may be cut off at any moment, and any source may be missing."""

from dataclasses import replace
from functools import cache

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from harness.analysis.result import analyse
from harness.detectors import diagnose
from harness.detectors.diagnosis import DEFECT
from harness.model import Event, Node, Sample, Span, Submission
from reports import document
from reports.summary import summary
from tests.support.injected.every_fault import INJECTED, plausible
from tests.support.injected.loads import steady, with_volume
from tests.support.timelines import Story, burst

STORIES = {**INJECTED, "full": lambda: burst(40, store_full_from=0.6), "steady": lambda: with_volume(steady(30))}


@cache
def story(name: str) -> Story:
    return STORIES[name]()


def begins(record: object) -> int:
    return min(
        value
        for name in ("due_at", "started_at", "at", "created_at")
        if (value := getattr(record, name, None)) is not None
    )


def cut(record: object, end: int) -> object | None:
    """The record as of `end`; none when it did not exist yet."""
    if begins(record) > end:
        return None
    later = {
        name: None
        for name in ("ended_at", "answered_at", "gone_at", "ready_at")
        if (getattr(record, name, None) or 0) > end
    }
    return replace(record, **later) if later else record  # type: ignore[type-var]


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.sampled_from(sorted(STORIES)),
    st.floats(0, 1),
    st.sets(st.sampled_from([Submission, Span, Sample, Event, Node])),
    st.integers(0, 400),
)
@example("inconsistent-records", 0.8125, {Span}, 65)  # ends of runs without their starts
@example("lb-imbalance", 1.0, set(), 67)  # executions of which the sending was not recorded
@example("adapter-slow", 1.0, {Submission, Span}, 30)  # executions of which nothing was timed
def test_every_truncated_or_partial_record_gives_a_report(tmp_path_factory, name, share, missing, most):
    whole = story(name)
    first, last = min(map(begins, whole.records)), max(map(begins, whole.records))
    end = first + round((last - first) * share)
    records = [
        kept for record in whole.records if type(record) not in missing and (kept := cut(record, end)) is not None
    ]
    timeline = replace(whole, records=records[:most]).timeline(tmp_path_factory.mktemp("cut"))
    diagnosis = diagnose(timeline)
    assert [silent for silent in diagnosis.not_judged if silent.reason.startswith(DEFECT)] == []
    assert [each for finding in diagnosis.findings for each in finding.evidence if not plausible(each)] == []
    report = analyse(timeline, diagnosis)
    assert summary(report)
    assert document.render(report)


def test_a_detector_that_raises_is_reported_and_the_others_still_count(tmp_path, monkeypatch):
    from harness.detectors.nodes import nodes_exhausted

    def fall(_):
        raise ZeroDivisionError("of the stars")

    timeline = burst(40, store_full_from=0.6).timeline(tmp_path)
    heard = {finding.name for finding in diagnose(timeline).findings}
    monkeypatch.setattr(nodes_exhausted, "detect", fall)
    diagnosis = diagnose(timeline)
    assert {finding.name for finding in diagnosis.findings} == heard - {"nodes-exhausted"}
    (said,) = [silent for silent in diagnosis.not_judged if silent.name == "nodes-exhausted"]
    assert said.reason == f"{DEFECT}: ZeroDivisionError: of the stars"
