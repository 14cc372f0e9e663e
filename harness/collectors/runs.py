"""The test's runs, from the platform's bulk listing: never a request per run, never more than one page a poll."""

import threading
import time
from collections import Counter
from collections.abc import Mapping

from harness.collectors.collector import Observation
from harness.collectors.contact import Contact
from harness.collectors.expecting import Expected, expected
from harness.collectors.http import Http, Timeouts
from harness.collectors.pace import Pace
from harness.collectors.run_details import RunDetails
from harness.model.errors import TargetUnreachableError
from harness.model.http import Exchange
from harness.model.phases import LIST_SECONDS, RUN, RUNS_IN_FLIGHT, SUCCEEDED, TERMINAL_STATES, WRONG_CLUSTER
from harness.model.records import Event, Sample, Span, Submission
from harness.targets.target import ListedRun, Listing, RunPage

_CLOSED = "concurrency"  # the schedule of the closed model
_CALM_S = 5.0
_SLICE_S = 0.25  # of a wait, after which the pods are looked at
# A run is stamped when its request comes in, and listed when it has been started: a throttled API takes a minute.
_LATE_NS = 90 * 10**9
_NO_NEWS_S = 15.0  # so long nothing is listed while the cluster shows that no run has ended
_ENOUGH = 3  # runs without a pod, to say so while the test goes on
_LEAST_DETAILS = 2  # requests for task details …
_SHARE_OF_DETAILS = 0.25  # … or so much of all our requests


class Runs:
    """Follows every run of the test from its first listing to its end.

    A sweep goes through the listing, newest first, a page a poll, down to the oldest run that is still open.
    """

    def __init__(self, observation: Observation, listing: Listing, exchange: Exchange) -> None:
        self._observation = observation
        self._listing = listing
        self._exchange = exchange
        self._details = RunDetails(observation, exchange)
        self._submissions = observation.folder.tail(Submission)
        self._accepted: set[str] = set()
        self._contact = Contact("runs", observation.journal)
        settings = observation.settings
        # In the closed model the next run is sent when an end is seen: how soon is part of the load, at any cost.
        self._closed = observation.plan.schedule.get("name") == _CLOSED
        calm_s, most_s = max(settings.least_poll_s, _CALM_S), settings.most_poll_s
        if self._closed:
            calm_s, most_s = settings.least_poll_s, calm_s
        self._pace = Pace(settings.least_poll_s, most_s, calm_s, settings.request_share)
        self._open: dict[str, ListedRun] = {}
        self._over: set[str] = set()
        self._succeeded: set[str] = set()  # of those created since the beginning
        self._doubted = False
        self._states: Counter[str] = Counter()
        self._requests = 0
        self._page = ""
        self._newest = self._known_to = 0  # every run created before `_known_to` is known
        self._missing: set[str] = set()  # open runs that the current sweep has not come across
        # The load has just found that the platform answers: nothing is listed before there can be something.
        self._looked = observation.plan.intended > 0
        self._first_at: int | None = None  # when the first run was known to be
        self._last = (0, 0)  # when the last poll was, and how many runs were over then
        self._resume()

    def collect(self, stop: threading.Event) -> None:
        """See `Collector`."""
        if self._observation.plan.intended and not self._open:
            self._wait(0.0, stop)
        while not stop.is_set():
            self._wait(self._try(), stop)
        self._page = ""
        if self._started() - self._over - self._open.keys():
            self._known_to = 0  # some were overlooked: go through the whole listing
        while self._unseen() and self._try_last() and self._page:
            pass
        while self._details.wanted and not self._contact.lost and self._affords_details():
            self._read_details()
        self._doubt_cluster(1)
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
        try:
            self._poll()
        except TargetUnreachableError as error:
            self._page = ""
            self._looked = True
            return self._contact.failed(error)
        served = self._served
        if self._page:
            return self._pace.before_next_page(self._requests, served)
        if self._details.wanted and self._affords_details():
            self._read_details()
        now_at = self._observation.journal.now()
        going_s = (now_at - self._first_at) / 1e9 if self._first_at is not None else 0.0
        return self._pace.after(self._requests, served, going_s, self._left_s(now_at))

    def _left_s(self, now_at: int) -> float | None:
        """When the last run will be over, if runs go on to end as they did since the poll before."""
        before_at, before = self._last
        self._last = (now_at, len(self._over))
        left = max(len(self._open), self._observation.plan.intended - len(self._over))
        ended = len(self._over) - before
        return left * (now_at - before_at) / 1e9 / ended if before_at and ended else None

    def _wait(self, seconds: float, stop: threading.Event) -> None:
        """Wait: shorter when a poll will show what somebody waits for, longer when there is nothing to be seen."""
        waited_s = 0.0
        idle_s: float | None = None
        while not stop.wait(_SLICE_S):
            waited_s += _SLICE_S
            now, limit_s = self._expected(), seconds
            if now is Expected.ENDS:
                idle_s = idle_s or self._pace.while_idle()
                limit_s = min(seconds, idle_s)
            else:
                self._pace.busy()
            if now is Expected.NOTHING:
                limit_s = max(seconds, _NO_NEWS_S if self._started() else self._observation.settings.most_poll_s)
            if waited_s >= limit_s:
                return

    def _expected(self) -> Expected:
        over = len(self._over)
        going = (self._started() | self._open.keys()) - self._over
        if self._first_at is None and (going or over):
            self._first_at = self._observation.journal.now()
        return expected(
            self._observation.activity, going, listed=bool(self._open), over=over,
            intended=self._observation.plan.intended, closed=self._closed,
        )  # fmt: skip

    def _try_last(self) -> bool:
        try:
            self._poll()
        except TargetUnreachableError as error:
            self._contact.failed(error)
            return False
        return True

    def _poll(self) -> None:
        """One page of the sweep; afterwards `_page` is the next one, or "" to begin anew."""
        if not self._page:
            self._missing = set(self._open)
        self._requests += 1
        begun_s = time.perf_counter()
        page = self._listing.list_runs(self._exchange, self._page)
        taken_s = time.perf_counter() - begun_s
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
        """Further down there may be runs that are new to us, or open."""
        if not page.next_page or not page.runs:
            return False
        oldest_open = min((run.created_at for run in self._open.values()), default=self._known_to)
        return page.runs[-1].created_at >= min(oldest_open, self._known_to)

    def _finish_sweep(self, page: RunPage) -> None:
        journal = self._observation.journal
        self._known_to = max(self._known_to, self._newest - _LATE_NS)
        journal.write(Sample(RUNS_IN_FLIGHT, journal.now(), float(len(self._open))))
        self._doubt_cluster(_ENOUGH)
        if page.next_page:
            return
        for run in sorted(self._missing & set(self._open)):
            # It was deleted: what became of it will never be known, and waiting for it would never end.
            journal.note("RunVanished", run, "the run is not listed any more and was not seen to end")
            self._states[self._open.pop(run).state] -= 1
            self._over.add(run)

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
            if run.state == SUCCEEDED and run.created_at >= self._observation.plan.started_at:
                self._succeeded.add(run.id)
            self._write(run, over=True)
        else:
            self._open[run.id] = run
            if before is None:
                self._write(run, over=False)

    def _doubt_cluster(self, enough: int) -> None:
        """Say once that the cluster is another one, when so many runs have ended well and no pod worked for any."""
        worked, host = self._observation.activity.worked, self._observation.plan.host
        if self._doubted or worked is None or len(self._succeeded) < enough or not self._succeeded.isdisjoint(worked):
            return
        self._doubted = True
        text = (
            f"{len(self._succeeded):,} of the runs at {host} ended well, and none of the pods that are watched worked "
            "for any of them: the kubeconfig is that of another cluster, or the runs' namespace is not watched"
        )
        self._observation.journal.note(WRONG_CLUSTER, "kubernetes pods", text)

    def _write(self, run: ListedRun, *, over: bool) -> None:
        """The run's span, with its name as task; its end also as the event that the load waits for.

        The event is of when the platform knew, the span ends when the run did: between the two a platform may lag.
        """
        journal, source = self._observation.journal, self._observation.plan.target
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

    def _started(self) -> set[str]:
        """The runs that the load has started so far."""
        self._accepted.update(each.run for each in self._submissions.read() if each.run)
        return self._accepted

    @property
    def _served(self) -> int:
        """Runs that the platform is known to have started."""
        return max(len(self._started()), len(self._open) + len(self._over))

    def _unseen(self) -> bool:
        """Another look may show something."""
        going = (self._started() | self._open.keys()) - self._over
        return bool(self._page or going) or len(self._over) < max(self._observation.plan.intended, 1)

    def _affords_details(self) -> bool:
        """Most of our share is for the listing; a few runs are asked for however small the test is."""
        share = _SHARE_OF_DETAILS * self._observation.settings.request_share
        return self._details.read_so_far + 1 <= max(_LEAST_DETAILS, share * self._served)

    def _read_details(self) -> None:
        self._requests += 1
        self._details.read()

    def _resume(self) -> None:
        """An observer that was started again knows what the one before it has recorded."""
        folder = self._observation.folder
        for event in folder.records(Event):
            if event.kind == "Run" and event.reason in TERMINAL_STATES:
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
