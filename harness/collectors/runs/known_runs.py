"""The platform's runs, from their first listing to their end."""

from collections import Counter
from collections.abc import Iterable, Mapping

from harness.model.forgetting import Ids
from harness.model.phases import LISTED, REMOVED, RUN, SUCCEEDED, TERMINAL_STATES
from harness.model.plan import Plan
from harness.model.records import Event, Span
from harness.targets.target import ListedRun


class KnownRuns:
    """Turns listed runs into records, each start and each end once.

    Args:
        plan: of the test; of a load that is not ours it is also recorded which pipelines run, and where.

    Attributes:
        open: runs listed and not over, by id.
        over: those that are over.
        reported: ids of those whose end the cluster showed, and the listing not yet.
    """

    def __init__(self, plan: Plan) -> None:
        self._source, self._describes = plan.target, not plan.intended
        self._states: Counter[str] = Counter()
        self.open: dict[str, ListedRun] = {}
        self.over = Ids()
        self.reported: set[str] = set()

    def resume(self, events: Iterable[Event], spans: Iterable[Span]) -> None:
        """Take in what an earlier observer has recorded."""
        for event in events:
            if event.kind != "Run":
                continue
            if event.reason == REMOVED:
                self.over.add(event.object)
            elif event.reason not in TERMINAL_STATES:
                continue
            elif event.source == self._source:
                self.over.add(event.object)
                self._states[event.reason] += 1
            else:
                self.reported.add(event.object)
        for span in spans:
            if span.phase == RUN and not span.step and span.run not in self:
                self.open[span.run] = ListedRun(span.run, span.task, "PENDING", span.started_at, None)
                self._states["PENDING"] += 1

    def see(self, run: ListedRun, now_at: int) -> list[Span | Event]:
        """The records of a listed run, if it is new or has just ended; `now_at` stands in for absent timestamps."""
        if run.id in self.over:
            return []
        before = self.open.get(run.id)
        records: list[Span | Event] = []
        if before is not None:
            self._states[before.state] -= 1
        elif self._describes and (run.pipeline or run.namespace):
            at = run.created_at or now_at
            about = Event(at, "Run", run.id, LISTED, run.pipeline, self._source, run.id, namespace=run.namespace)
            records.append(about)
        self._states[run.state] += 1
        if run.state in TERMINAL_STATES:
            self.open.pop(run.id, None)
            self.reported.discard(run.id)
            self.over.add(run.id)
            return [*records, self._span(run, run.ended_at, now_at), self._end(run, now_at)]
        self.open[run.id] = run
        return [] if before else [*records, self._span(run, None, now_at)]

    def remove(self, run: str, now_at: int) -> list[Event]:
        """The platform shows a run no longer: it ended as the cluster showed, or its end is unknown."""
        if before := self.open.pop(run, None):
            self._states[before.state] -= 1
        self.over.add(run)
        if run in self.reported:
            return []
        seen = "removed it before its end was seen" if before else "accepted it, and never listed it"
        return [Event(now_at, "Run", run, REMOVED, f"the platform {seen}", self._source, run, type="Warning")]

    def counts(self) -> Mapping[str, int]:
        """Number of runs by the platform's state; states without runs are left out."""
        return {state: count for state, count in dict(self._states).items() if count}

    def __contains__(self, run: object) -> bool:
        return run in self.open or run in self.over

    def __len__(self) -> int:
        return len(self.open) + len(self.over)

    def _span(self, run: ListedRun, ended_at: int | None, now_at: int) -> Span:
        """The run as a whole, with its name as task."""
        return Span(
            run.id, "", RUN, run.created_at or now_at, ended_at,
            task=run.name, source=self._source, resolution_s=run.resolution_s,
        )  # fmt: skip

    def _end(self, run: ListedRun, now_at: int) -> Event:
        """The end that the load waits for, dated when the platform knew: it may lag behind the end of the span."""
        severity = "Normal" if run.state == SUCCEEDED else "Warning"
        at = run.reported_at or run.ended_at or now_at
        return Event(at, "Run", run.id, run.state, run.error, self._source, run.id, type=severity)
