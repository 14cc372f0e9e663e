"""The test's runs, from the platform's bulk listing: the poller's commands, carried out over HTTP."""

import threading
import time
from collections.abc import Callable, Iterable
from functools import partial

from harness.collectors.collector import Observation
from harness.collectors.runs import messages
from harness.collectors.runs.known_runs import KnownRuns
from harness.collectors.runs.poll_policy import PollPolicy, is_closed
from harness.collectors.runs.poller import RunPoller
from harness.collectors.runs.tasks import record_tasks
from harness.collectors.source_health import SourceHealth
from harness.model import TargetUnreachableError, records
from harness.model.http import Exchange
from harness.model.live.observer import LiveObserver
from harness.targets.target import DescribesTasks, ListsRuns

_CALM_S = 5.0
Answer = Callable[[], list[messages.Command]]


class RunListing:
    """Follows every run of the test from its first listing to its end.

    Args:
        observation: what to observe.
        listing: the platform's target.
        exchange: with the platform's API.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        observation: Observation,
        listing: ListsRuns,
        exchange: Exchange,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._observation = observation
        self._listing = listing
        self._exchange = exchange
        self._clock = clock
        self._health = SourceHealth("runs", observation.journal)
        self._ledger = observation.folder.tail(records.Submission)
        self._known = KnownRuns(observation.plan)
        self._known.resume(observation.folder.records(records.Event), observation.folder.records(records.Span))
        self.poller = RunPoller(
            observation.plan, _policy(observation), self._known,
            now_s=clock(), reads_tasks=isinstance(observation.target, DescribesTasks),
        )  # fmt: skip

    def collect(self, stop: threading.Event) -> None:
        """See `Collector`."""
        answer: Answer | None = partial(self.poller.start, self._now())
        while answer is not None:
            answer = self.perform(answer(), stop)
        self._health.end()

    def live(self) -> LiveObserver | None:
        """See `Collector`."""
        if not self.poller.looked:
            return None
        return LiveObserver(runs=self._known.counts(), ends_at=self.poller.counted_at)

    def perform(self, commands: Iterable[messages.Command], stop: threading.Event) -> Answer | None:
        """Carry out `commands`; returns the answer that the last of them asks for, if it does: a call of the poller."""
        journal = self._observation.journal
        answer: Answer | None = None
        for command in commands:
            match command:
                case messages.Record(record):
                    journal.write(record)
                case messages.Note(reason, source, message):
                    journal.note(reason, source, message)
                case messages.AskTasks(run):
                    assert isinstance(self._observation.target, DescribesTasks)
                    record_tasks(self._observation, self._observation.target, self._exchange, run)
                case messages.AskPage(token):
                    answer = self._list(token)
                case messages.Wait(seconds):
                    stopping = stop.wait(seconds)
                    self.look()
                    answer = self.poller.stop if stopping else partial(self.poller.tick, self._now())
        return answer

    def look(self) -> None:
        """Tell the poller what ledger and cluster show now."""
        stage = str(self._observation.folder.read_live("load").get("stage", ""))
        self.poller.grew(self._ledger.read(), stage)
        self.poller.see_cluster(self._observation.activity)
        self._observation.activity.runs = self.poller

    def _list(self, token: str) -> Answer:
        self.look()
        begun_s = self._clock()
        try:
            page = self._listing.list_runs(self._exchange, token)
        except TargetUnreachableError as error:
            return partial(self.poller.failed, self._now(), self._health.failed(error))
        self._health.answered()
        now = self._now()
        return partial(self.poller.listed, now, page, now.s - begun_s)

    def _now(self) -> messages.Instant:
        return messages.Instant(self._clock(), self._observation.journal.now())


def _policy(observation: Observation) -> PollPolicy:
    settings = observation.settings
    calm_s, max_s = max(settings.least_poll_s, _CALM_S), settings.most_poll_s
    if is_closed(observation.plan):
        # The next run is sent when an end is seen: how soon is part of the load.
        calm_s, max_s = settings.least_poll_s, calm_s
    return PollPolicy(settings.request_share, settings.least_poll_s, calm_s, max_s)


def open_collector(observation: Observation) -> RunListing | None:
    """Lists the runs through the plan's target, if its platform lists any."""
    target = observation.target
    if not isinstance(target, ListsRuns):
        return None
    return RunListing(observation, target, observation.platform(observation.plan.target))
