"""The test's runs, from the platform's bulk listing: never a request per run, never more than one page a poll."""

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet

from harness.collectors.collector import Observation
from harness.collectors.http import Http, Timeouts
from harness.collectors.kubernetes.cluster_mismatch import ClusterMismatch
from harness.collectors.runs.details import RunDetails
from harness.collectors.runs.ledger_tail import Submitted
from harness.collectors.runs.poll_hint import Expected, Load, expected
from harness.collectors.runs.poll_policy import PollPolicy, PollState
from harness.collectors.source_health import SourceHealth
from harness.model.errors import TargetUnreachableError
from harness.model.http import Exchange
from harness.model.phases import FAILED, LIST_SECONDS, RUN, RUNS_IN_FLIGHT, SUCCEEDED, TERMINAL_STATES
from harness.model.records import Event, Sample, Span
from harness.targets.target import ListedRun, Listing, RunPage

_CALM_S = 5.0
_SLICE_S = 0.25  # of a wait, after which the cluster is looked at
# A run is stamped when its request comes in, and listed when it has been started: a throttled API takes a minute.
_LATE_NS = 90 * 10**9
_ENOUGH = 3  # runs without a pod, to say so while the test goes on


class Runs:
    """Follows every run of the test from its first listing to its end.

    A sweep goes through the listing, newest first, a page a poll, down to the oldest run that is still open.
    `clock` tells seconds, from any instant on.
    """

    def __init__(
        self, observation: Observation, listing: Listing, exchange: Exchange,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._observation = observation
        self._listing = listing
        self._exchange = exchange
        self._clock = clock
        self._details = RunDetails(observation, exchange)
        self._doubt = ClusterMismatch(observation)
        self._submitted = Submitted(observation)
        self._contact = SourceHealth("runs", observation.journal)
        settings = observation.settings
        calm_s, most_s = max(settings.least_poll_s, _CALM_S), settings.most_poll_s
        if self._submitted.closed:
            # The next run is sent when an end is seen: how soon is part of the load.
            calm_s, most_s = settings.least_poll_s, calm_s
        self._pace = PollPolicy(settings.request_share, settings.least_poll_s, calm_s, most_s)
        self._source = observation.plan.target
        self._told: set[str] = set()  # runs whose end was told before it was listed
        self._open: dict[str, ListedRun] = {}
        self._over: set[str] = set()
        self._states: Counter[str] = Counter()
        self._requests = 0
        self._page = ""
        self._newest = self._known_to = 0  # every run created before `_known_to` is known
        self._missing: set[str] = set()  # open runs that the current sweep has not come across
        # The load has just found that the platform answers: nothing is listed before there can be something.
        self._looked = observation.plan.intended > 0
        self._polled_s = self._awaited_from_s = self._expected_from_s = clock()
        self._expected = Expected.NOTHING
        self._left_s: float | None = None
        self._resume()
        self._swept = (clock(), len(self._over))  # when the last sweep ended, and how many runs were over then

    def collect(self, stop: threading.Event) -> None:
        """See `Collector`."""
        backoff_s = self._try() if self._submitted.load is Load.OTHERS else 0.0
        while not self._wait(stop, backoff_s):
            backoff_s = self._try()
        self._page = ""
        self._submitted.read()
        if self._submitted.runs - self._over - self._open.keys():
            self._known_to = 0  # some were overlooked: go through the whole listing
        while self._unseen() and not self._try() and self._page:
            pass
        while not self._contact.lost and self._read_detail():
            pass
        self._doubt.tell(1)
        self._contact.end()

    def live(self) -> Mapping[str, object]:
        """See `Collector`; `runs` are counts by state."""
        return {"runs": {state: count for state, count in self._states.items() if count}} if self._looked else {}

    def take_page(self) -> int:
        """Record one page of a listing, and nothing else; returns how many runs were on it."""
        page = self._listing.list_runs(self._exchange)
        for run in page.runs:
            self._see(run)
        return len(page.runs)

    def _try(self) -> float:
        """Poll; the seconds that a platform which did not answer is to be left alone."""
        try:
            self._poll()
        except TargetUnreachableError as error:
            self._page = ""
            self._looked = True
            return self._contact.failed(error)
        if not self._page:
            self._read_detail()
        return 0.0

    def _wait(self, stop: threading.Event, backoff_s: float = 0.0) -> bool:
        """Wait until the next poll is due and within what may be spent; whether it is all over instead."""
        while not stop.wait(_SLICE_S):
            now = self._standing()
            since_s = self._clock() - self._polled_s
            if now.expected is Expected.PERHAPS and now.awaited_s is not None:
                since_s = min(since_s, now.awaited_s)
            due_s = self._pace.least_s if self._page else self._pace.wait_s(now)
            if since_s >= max(due_s, backoff_s) and self._pace.affords(now):
                return False
        return True

    def _standing(self) -> PollState:
        self._submitted.read()
        now_s, load, going = self._clock(), self._submitted.load, self._going()
        if load is Load.CLOSED:
            self._tell_ends(going)
        then = expected(self._observation.activity, going | self._over, going, load)
        if then is not self._expected:
            self._expected, self._expected_from_s = then, now_s
        awaited = load is Load.OTHERS or (bool(going) and load is not Load.ARRIVING)
        if not (awaited or self._over) or load is Load.ARRIVING:
            self._awaited_from_s = now_s
        awaited_s = now_s - self._awaited_from_s if awaited else None
        listings = self._requests - min(self._details.read_so_far, 1)  # the tasks of one run are beside the budget
        return PollState(
            listings, self._served, then, now_s - self._expected_from_s, awaited_s,
            self._left_s if load is Load.ARRIVED else None, len(going),
        )  # fmt: skip

    def _poll(self) -> None:
        """One page of the sweep; afterwards `_page` is the next one, or "" to begin anew."""
        if not self._page:
            self._missing = set(self._open)
        self._requests += 1
        self._submitted.read()
        begun_s = self._clock()
        try:
            page = self._listing.list_runs(self._exchange, self._page)
        finally:
            self._polled_s = self._clock()  # a platform that is slow is not asked the faster
        taken_s = self._polled_s - begun_s
        self._contact.made()
        journal = self._observation.journal
        journal.write(Sample(LIST_SECONDS, journal.now(), taken_s, {"endpoint": "ListRuns"}))
        for run in page.runs:
            self._see(run)
        self._page = page.next_page if self._goes_on(page) else ""
        if not self._page:
            self._finish_sweep(page)
        self._looked = True

    def _goes_on(self, page: RunPage) -> bool:
        """Further down there are runs that are open, or may be some that are new to us."""
        if not page.next_page or not page.runs:
            return False
        wanted = [self._open[run].created_at for run in self._missing if run in self._open]
        if self._overlooks():
            wanted.append(self._known_to)
        return page.runs[-1].created_at >= min(wanted, default=math.inf)

    def _finish_sweep(self, page: RunPage) -> None:
        journal = self._observation.journal
        self._known_to = max(self._known_to, self._newest - _LATE_NS)
        self._predict()
        journal.write(Sample(RUNS_IN_FLIGHT, journal.now(), float(len(self._open))))
        self._doubt.tell(_ENOUGH)
        if page.next_page:
            return
        for run in sorted(self._missing & set(self._open)):
            # It was deleted: what became of it will never be known, and waiting for it would never end.
            journal.note("RunVanished", run, "the run is not listed any more and was not seen to end")
            self._states[self._open.pop(run).state] -= 1
            self._over.add(run)

    def _predict(self) -> None:
        """When the last run will be over, if they go on to end as they did since the sweep before."""
        (before_s, before), self._swept = self._swept, (self._clock(), len(self._over))
        now_s, over = self._swept
        self._left_s = len(self._going()) * (now_s - before_s) / (over - before) if over > before else None

    def _see(self, run: ListedRun) -> None:
        self._missing.discard(run.id)
        self._newest = max(self._newest, run.created_at)
        if run.id in self._over:
            return
        before = self._open.get(run.id)
        if before is not None and before.state != run.state:
            self._states[before.state] -= 1
        if before is None or before.state != run.state:
            self._states[run.state] += 1
        if run.state in TERMINAL_STATES:
            self._open.pop(run.id, None)
            self._over.add(run.id)
            self._details.offer(run)
            self._doubt.see(run)
            self._write(run, over=True)
        else:
            self._open[run.id] = run
            if before is None:
                self._write(run, over=False)

    def _tell_ends(self, going: AbstractSet[str]) -> None:
        """Tell at once of ends that the cluster shows; the listing says later what they were like."""
        kept = self._observation.activity.kept or {}
        for run in sorted((going & kept.keys()) - self._told):
            self._told.add(run)
            state, kind = (SUCCEEDED, "Normal") if kept[run] else (FAILED, "Warning")
            journal = self._observation.journal
            journal.write(Event(journal.now(), "Run", run, state, "", "kubernetes", run, type=kind))

    def _write(self, run: ListedRun, *, over: bool) -> None:
        """The run's span, with its name as task; its end also as the event that the load waits for.

        The event is of when the platform knew, the span ends when the run did: between the two a platform may lag.
        """
        journal, source = self._observation.journal, self._source
        ended_at = run.ended_at if over else None
        created_at = run.created_at or journal.now()
        resolution_s = run.resolution_s
        journal.write(
            Span(
                run.id, "", RUN, created_at, ended_at, task=run.name, source=source, resolution_s=resolution_s
            )
        )  # fmt: skip
        if over:
            kind = "Normal" if run.state == "SUCCEEDED" else "Warning"
            at = run.said_at or ended_at or journal.now()
            journal.write(Event(at, "Run", run.id, run.state, run.error, source, run.id, type=kind))

    def _going(self) -> set[str]:
        """Runs that were started and were not seen to end."""
        return (self._submitted.runs | self._open.keys()) - self._over

    def _overlooks(self) -> bool:
        """There may be runs that were not listed yet."""
        listed = len(self._open) + len(self._over)
        unlisted = self._submitted.runs - self._open.keys() - self._over
        return bool(unlisted) or listed < self._submitted.may_run or self._submitted.load is Load.OTHERS

    @property
    def _served(self) -> int:
        """Submissions that the platform is known to have been sent."""
        return max(self._submitted.sent, len(self._open) + len(self._over))

    def _unseen(self) -> bool:
        """Another look may show something."""
        return bool(self._page or self._going() or not self._over) or self._overlooks()

    def _read_detail(self) -> bool:
        """Ask for the tasks of one run where that is wanted and can be afforded; whether it was done."""
        read = self._details.read_so_far
        if not self._details.wanted or not self._pace.affords_detail(self._requests, self._served, read):
            return False
        self._requests += 1
        self._details.read()
        return True

    def _resume(self) -> None:
        """An observer that was started again knows what the one before it has recorded."""
        folder = self._observation.folder
        for event in folder.records(Event):
            if event.kind == "Run" and event.reason in TERMINAL_STATES and event.source == self._source:
                self._over.add(event.object)
                self._states[event.reason] += 1
        for span in folder.records(Span):
            if span.phase == RUN and not span.step and span.run not in self._over and span.run not in self._open:
                self._open[span.run] = ListedRun(span.run, span.task, "PENDING", span.started_at, None)
                self._states["PENDING"] += 1


def open_collector(observation: Observation) -> Runs | None:
    """Lists the runs through the plan's target, where its platform lists any."""
    settings, listing = observation.settings, observation.target
    if not isinstance(listing, Listing):
        return None
    timeouts = Timeouts(settings.connect_timeout_s, settings.answer_timeout_s)
    exchange = Http(
        observation.plan.target, settings.host, settings.token, timeouts, observation.journal.count,
        verify_tls=settings.verify_tls,
    )  # fmt: skip
    return Runs(observation, listing, exchange)
