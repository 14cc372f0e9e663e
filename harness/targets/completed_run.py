"""A run that a single exchange completes, and the records it leaves in the run folder."""

from collections.abc import Iterator
from dataclasses import dataclass

from harness.model.phases import NETWORK, RUN, STARTING, SUCCEEDED
from harness.model.records import Event, Sample, Span


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a run that the run measured itself, in s; parts with equal names are one task of the run."""

    task: str
    phase: str
    seconds: float


@dataclass(frozen=True, slots=True)
class CompletedRun:
    """A run whose submission was answered with its result.

    `phases` are what the platform measured, (phase, seconds) in their order. The rest of the exchange is network time,
    as long as an empty exchange takes (`empty_s`); anything beyond that is attributed to the phase `waiting`. `node`
    is the worker that executed the run, where the answer names it.

    `parts` are what the run measured itself, one after the other up to its end; before the first one it is in the phase
    `before`.
    `used` are figures of the whole run, as (metric, value).
    """

    run: str
    state: str
    error: str = ""
    task: str = ""
    phases: tuple[tuple[str, float], ...] = ()
    waiting: str = NETWORK
    empty_s: float = 0.0
    node: str | None = None
    parts: tuple[Part, ...] = ()
    before: str = STARTING
    used: tuple[tuple[str, float], ...] = ()

    def records(self, sent_at: int, ended_at: int, source: str) -> Iterator[Span | Event | Sample]:
        """The run's records: the run itself, its phases or parts one after the other, its figures, and its end.

        Phases and parts fill the time from `sent_at` to `ended_at` (UTC ns) exactly, so no two clocks are compared.
        """
        yield Span(self.run, "", RUN, sent_at, ended_at, task=self.task, source=source)
        if self.phases:
            yield from self._phase_spans(sent_at, ended_at, source)
        if self.parts:
            yield from self._part_spans(sent_at, ended_at, source)
        for metric, value in self.used:
            yield Sample(metric, ended_at, value, {"run": self.run})
        kind = "Normal" if self.state == SUCCEEDED else "Warning"
        yield Event(ended_at, "Run", self.run, self.state, self.error, source, self.run, type=kind)

    def _phase_spans(self, sent_at: int, ended_at: int, source: str) -> Iterator[Span]:
        measured_s = sum(seconds for _, seconds in self.phases)
        rest_s = max(0.0, (ended_at - sent_at) / 1e9 - measured_s)
        network_s = min(self.empty_s, rest_s) if self.waiting != NETWORK else rest_s
        lengths = dict.fromkeys((NETWORK, self.waiting, *(name for name, _ in self.phases)), 0.0)
        for name, seconds in ((NETWORK, network_s), (self.waiting, rest_s - network_s), *self.phases):
            lengths[name] += seconds
        at = sent_at
        for name, seconds in lengths.items():
            end = min(ended_at, at + round(seconds * 1e9))
            yield Span(self.run, self.run, name, at, end, task=self.task, node=self.node, source=source)
            at = end

    def _part_spans(self, sent_at: int, ended_at: int, source: str) -> Iterator[Span]:
        at = max(sent_at, ended_at - round(sum(part.seconds for part in self.parts) * 1e9))
        step = f"{self.run} {self.task}"
        yield Span(self.run, step, self.before, sent_at, at, task=self.task, node=self.node, source=source)
        for number, part in enumerate(self.parts):
            end = min(ended_at, at + round(part.seconds * 1e9))
            yield Span(
                self.run, f"{self.run} {part.task}", part.phase, at, end, task=part.task, attempt=number,
                node=self.node, source=source,
            )  # fmt: skip
            at = end
