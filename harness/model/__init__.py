"""The nouns of Pipeswarm: values, with no I/O, clock or dependency.

Instants are integer UTC nanoseconds and end in ``_at``; durations are float seconds and end in ``_s``.
A missing end is ``None``: never 0, never 1970.
"""

from harness.model.errors import ConfigError, ExitCode, PipeswarmError, TargetUnreachableError
from harness.model.findings import Diagnosis, Evidence, Finding, NotJudged, Validity
from harness.model.plan import Limits, Plan
from harness.model.records import Event, Node, Outcome, PodSpans, Sample, Span, Submission
from harness.model.scenario import Scenario
from harness.model.schedules import (
    Burst,
    Concurrency,
    Constant,
    Level,
    Poisson,
    Ramp,
    Replay,
    Schedule,
    Spread,
    Stages,
)  # fmt: skip
from harness.model.units import counted, format_bytes, format_count, format_duration, parse_duration

__all__ = [
    "Burst", "Concurrency", "ConfigError", "Constant", "Diagnosis", "Event", "Evidence", "ExitCode", "Finding", "Level",
    "Limits", "Node", "NotJudged", "Outcome", "PipeswarmError", "Plan", "PodSpans", "Poisson", "Ramp", "Replay",
    "Sample", "Scenario", "Schedule", "Span", "Spread", "Stages", "Submission", "TargetUnreachableError", "Validity",
    "counted", "format_bytes", "format_count", "format_duration", "parse_duration",
]  # fmt: skip
