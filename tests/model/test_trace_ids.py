import pytest
from opentelemetry.trace import get_current_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from harness.model.trace_ids import TRACEPARENT, span_id, submission_id, trace_id, traceparent


@pytest.mark.parametrize("seq", [0, 1, 4_999])
def test_a_platform_that_reads_the_header_continues_the_trace_of_the_submission(seq):
    context = TraceContextTextMapPropagator().extract({TRACEPARENT: traceparent("test", seq)})
    read = get_current_span(context).get_span_context()
    assert (read.trace_id, read.span_id) == (trace_id("test", seq), submission_id("test", seq))
    assert read.is_remote
    assert read.trace_flags.sampled


def test_ids_differ_by_test_arrival_and_name():
    traces = {trace_id(test, seq) for test in ("a", "b") for seq in range(100)}
    assert len(traces) == 200
    names = [(), ("pod",), ("pod", "0"), ("pod0",), ("pod", "1")]
    spans = {span_id(test, seq, *name) for test in ("a", "b") for seq in range(20) for name in names}
    spans |= {submission_id(test, seq) for test in ("a", "b") for seq in range(20)}
    assert len(spans) == 2 * 20 * (len(names) + 1)


def test_they_are_the_same_in_every_process():
    assert traceparent("0f" * 16, 7) == "00-c91ec6c489d4c7d9ef05e97a0a032552-c5474e240e49e12e-01"


def test_any_name_has_an_id():
    assert span_id("test", 0, "\ud800\n\x00")
