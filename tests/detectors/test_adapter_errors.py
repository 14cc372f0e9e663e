"""Executions that fail because an adapter answers with errors, with or without a word about it."""

import pytest

from harness.detectors import diagnose
from harness.detectors.services.adapter_errors import detect
from tests.support.injected.loads import executed, steady

PLAIN = "HTTP 500 · Internal Server Error"
SENDING = "SENDING_DATA_TO_ADAPTERS · AdapterHandlingException: 503"
CALLING = "HTTP 500 · Failure while calling the runtime"


def failing(word, count=60):
    """Executions that mostly compute; some fail with a word."""
    return executed(count, loading=lambda _: 0.1, fails=word)


@pytest.mark.parametrize(
    ("words", "title", "confidence", "said"),
    [
        ((SENDING, SENDING), "Adapters return errors: 20% of", 0.92, ["12 executions failed with"]),
        ((SENDING, PLAIN), "Adapters return errors: 20% of", 0.92, ["6 executions failed with", "6 more ended with"]),
        ((SENDING, CALLING), "Adapters return errors: 20% of", 0.92, ["6 executions failed with", "6 more ended with"]),
        ((PLAIN, PLAIN), "Adapters may return errors: 20% of", 0.3, ["12 executions ended with a plain 500"]),
        ((PLAIN, CALLING), "Adapters may return errors: 10% of", 0.3, ["6 executions ended with a plain 500"]),
    ],
)
def test_words_about_an_adapter_make_it_sure_and_a_plain_500_possible(words, title, confidence, said, tmp_path):
    story = failing(lambda seq: words[seq // 5 % 2] if seq % 5 == 0 else "")
    (finding,) = detect(story.timeline(tmp_path))
    assert finding.title.startswith(title)
    assert finding.confidence == confidence
    assert len(finding.evidence) == len(said)
    for evidence, begins in zip(finding.evidence, said, strict=True):
        assert evidence.statement.startswith(begins)


@pytest.mark.parametrize(("word", "named"), [(CALLING, "failures"), ("HTTP 502 · Bad Gateway", "gateway-error")])
def test_a_worker_that_was_killed_is_no_adapter(word, named, tmp_path):
    found = diagnose(failing(lambda seq: word * (seq % 5 == 0)).timeline(tmp_path)).findings
    assert [each.name for each in found] == [named]


def test_plain_500s_are_not_reported_as_unexplained_too(tmp_path):
    found = diagnose(failing(lambda seq: PLAIN * (seq % 5 == 0)).timeline(tmp_path)).findings
    assert [each.name for each in found] == ["adapter-errors"]


def test_a_plain_500_of_another_platform_says_nothing(tmp_path):
    found = diagnose(steady(60, fails=lambda seq: PLAIN * (seq % 5 == 0)).timeline(tmp_path)).findings
    assert "failures" in [each.name for each in found]


def test_a_single_failure_of_many_executions_is_none(tmp_path):
    assert detect(failing(lambda seq: PLAIN * (seq == 7), count=250).timeline(tmp_path)) == []
