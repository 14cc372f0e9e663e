"""Exports the runs of a folder as traces, by OpenTelemetry's SDK."""

import logging
from collections.abc import Iterator
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING

from harness.plan.trace_exporter import exporter_module

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter

    from harness.analysis.traces import TraceSpan
    from harness.store.folder import RunFolder

_AT_ONCE = 512  # spans, as the SDK sends by default
_NAME = "pipeswarm"


def export(folder: "RunFolder") -> str:
    """Export a sealed folder; returns a line that says what was exported, or why it was not.

    Raises:
        ConfigError: as `exporter_module`.
    """
    module = exporter_module()
    if module is None:
        return "traces: not exported: OTEL_TRACES_EXPORTER is none"
    from harness.analysis.traces import trace_spans
    from harness.planning.timelines import timeline_in

    timeline = timeline_in(folder)
    told = _Told()
    logger = logging.getLogger("opentelemetry")
    logger.addHandler(told)
    logger.propagate = False
    exporter: SpanExporter = import_module(module).OTLPSpanExporter()
    try:
        return _sent(exporter, trace_spans(timeline), _converter(folder.path.name, timeline.plan.target), told)
    finally:
        exporter.shutdown()
        logger.propagate = True
        logger.removeHandler(told)


class _Told(logging.Handler):
    """Keeps the first message: exporters log why they can't reach a collector, and then that they give up."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.message = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it, if it is the first."""
        self.message = self.message or record.getMessage()


def _sent(
    exporter: "SpanExporter",
    spans: "Iterator[TraceSpan]",
    converted: "Callable[[TraceSpan], ReadableSpan]",
    told: _Told,
) -> str:
    from opentelemetry.sdk.trace.export import SpanExportResult

    runs = sent = 0
    while batch := tuple(islice(spans, _AT_ONCE)):
        if exporter.export([converted(span) for span in batch]) is not SpanExportResult.SUCCESS:
            missing = f"traces: exported only {sent:,} spans" if sent else "traces: not exported"
            return f"{missing}: {told.message or 'the collector did not take them'}"
        sent += len(batch)
        runs += sum(not span.parent for span in batch)
    return f"traces: exported {runs:,} runs as {sent:,} spans"


def _converter(test: str, target: str) -> "Callable[[TraceSpan], ReadableSpan]":
    from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

    own = {SERVICE_NAME: _NAME, "pipeswarm.test": test, "pipeswarm.target": target}
    resource = Resource(own).merge(OTELResourceDetector().detect())
    scope, sampled = InstrumentationScope(_NAME), TraceFlags(TraceFlags.SAMPLED)

    def converted(span: "TraceSpan") -> ReadableSpan:
        parent = SpanContext(span.trace, span.parent, is_remote=False, trace_flags=sampled) if span.parent else None
        return ReadableSpan(
            span.name, SpanContext(span.trace, span.id, is_remote=False, trace_flags=sampled), parent, resource,
            span.attributes, kind=SpanKind.CLIENT if span.request else SpanKind.INTERNAL,
            status=Status(StatusCode.ERROR, span.error) if span.error else Status(),
            start_time=span.begun_at, end_time=span.ended_at, instrumentation_scope=scope,
        )  # fmt: skip

    return converted
