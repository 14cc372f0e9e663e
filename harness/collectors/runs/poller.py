"""When to list the runs, and what to record of them: a state machine without I/O, threads or a clock.

Its methods take what happened and return commands (`messages`); `listing` carries them out.
"""

from collections import deque
from collections.abc import Container, Iterable
from itertools import chain

from harness.collectors.collector import Activity
from harness.collectors.runs.known_runs import KnownRuns
from harness.collectors.runs.messages import (
    AskPage,
    AskTasks,
    Command,
    Instant,
    Note,
    Record,
    Wait,
)
from harness.collectors.runs.poll_policy import Arrivals, Load, PollHint, PollPolicy, PollState, poll_hint
from harness.collectors.runs.sweep import LATE_S, Forecast, Sweep
from harness.collectors.runs.tasks import TaskQueue
from harness.model import Plan, Sample, Submission
from harness.model.phases import FAILED, LIST_SECONDS, RUNS_IN_FLIGHT, SUCCEEDED, WRONG_CLUSTER
from harness.model.records import Event as EventRecord
from harness.targets.target import ListedRun, RunPage

_MOST_COMPARED = 1000  # runs by which the clusters are compared


class ClusterMismatch:
    """Notices that runs of the test succeed although no observed pod worked for any of them; reports it once."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._succeeded: list[str] = []  # the first ones
        self._count = 0
        self._settled = False

    def see(self, run: ListedRun) -> None:
        """Take in a run that has ended."""
        if run.state == SUCCEEDED and run.created_at >= self._plan.started_at:
            self._count += 1
            if len(self._succeeded) < _MOST_COMPARED:
                self._succeeded.append(run.id)

    def message(self, worked: Container[str] | None, *, enough: int) -> str:
        """What to report; "" before `enough` runs prove it, and after the first report.

        Args:
            worked: runs that observed pods have worked for; none while pods are not observed.
            enough: how many runs must have succeeded.
        """
        if self._settled or worked is None or self._count < enough:
            return ""
        self._settled = True
        if any(run in worked for run in self._succeeded):
            return ""
        return (
            f"{self._count:,} of the runs at {self._plan.host} succeeded, but no observed pod worked "
            "for any of them: the kubeconfig names another cluster, or the runs' namespace is not observed"
        )


_SLICE_S = 0.25  # of a wait, after which ledger and cluster are read again
_SHOWN = 100  # runs that have just ended: the cluster may show them a moment later
_ENOUGH_RUNS = 3  # without a pod, to report another cluster while the test goes on


class RunPoller:
    """Follows every run of the test with bulk listings: never a request per run, never more than one page a poll.

    The last command of each answer asks for the next call; without such a command the observation is over.

    Args:
        plan: of the test.
        policy: when to poll.
        known: runs that an earlier observer has recorded.
        now_s: monotonic seconds.
        reads_tasks: the platform can list the tasks of a run.

    Attributes:
        going: runs that were started and not seen to end.
        looked: the listing was read, or tried, or can't hold a run yet.
        counted_at: ends until then are known, UTC ns.
    """

    def __init__(self, plan: Plan, policy: PollPolicy, known: KnownRuns, *, now_s: float, reads_tasks: bool) -> None:
        self._policy = policy
        self._known = known
        self._arrivals = Arrivals(plan)
        self._cluster = Activity()
        self._mismatch = ClusterMismatch(plan)
        self._ended: deque[str] = deque(maxlen=_SHOWN)
        self._unlisted_s: dict[str, float] = {}  # runs of the ledger: since when a sweep did not come across them
        self._worked = self._labelled = False  # see `poll_hint`
        self._sweep = Sweep(known)
        self._forecast = Forecast(now_s, len(known.over))
        self._reads_tasks = reads_tasks
        self._tasks = TaskQueue()
        self._hint = PollHint.NOTHING
        self._polled_s = self._awaited_from_s = self._hint_from_s = now_s
        self._backoff_s = 0.0  # since the last poll failed
        self._requests = 0
        self._stopping = False
        self.going: set[str] = set(known.open)
        self.counted_at: int | None = None
        self.looked = plan.intended > 0  # such a load has just started, so nothing can be listed yet

    def grew(self, submissions: Iterable[Submission], stage: str) -> None:
        """The load's ledger has new rows, and the load is at this stage."""
        self.going |= {run for run in self._arrivals.add(submissions, stage) if run not in self._known.over}

    def start(self, now: Instant) -> list[Command]:
        """The observation begins, or begins again after an internal error; what to do now, in order."""
        self._stopping, self._backoff_s, self._polled_s = False, 0.0, now.s
        self.counted_at = self.counted_at or now.at
        return [self.next_page() if self._arrivals.load is Load.EXTERNAL else Wait(_SLICE_S)]

    def listed(self, now: Instant, page: RunPage, took_s: float) -> list[Command]:
        """The platform has answered, after `took_s`."""
        self._polled_s, self._backoff_s, self.looked = now.s, 0.0, True
        return [*self._read_page(now, page, took_s), *self._proceed()]

    def failed(self, now: Instant, backoff_s: float) -> list[Command]:
        """The platform has not answered, and is to be left alone for `backoff_s`."""
        self._polled_s, self._backoff_s, self.looked = now.s, backoff_s, True
        self._sweep.restart()
        return self._finish() if self._stopping else [Wait(_SLICE_S)]

    def __contains__(self, run: object) -> bool:
        """Whether a run was started, whether or not it has ended."""
        return run in self.going or run in self._known.over

    def see_cluster(self, activity: Activity) -> None:
        """The cluster shows this now."""
        self._cluster = activity
        worked, persisted = activity.worked or (), activity.persisted or ()
        for run in chain(self.going, self._ended):
            if self._worked and self._labelled:
                return
            self._worked |= run in worked
            self._labelled |= run in persisted

    def next_page(self) -> AskPage:
        """Poll: the sweep's next page, or the first one of a new sweep."""
        self._requests += 1
        return AskPage(self._sweep.next_page(overlooks=self._overlooks))

    # --- when to poll -------------------------------------------------------------------------------------------

    def tick(self, now: Instant) -> list[Command]:
        """A wait is over."""
        ends = self._report_ends(now.at) if self._arrivals.load is not Load.EXTERNAL else []
        if self._shows_ends():
            self.counted_at = now.at
        state = self._state(now.s)
        since_s = now.s - self._polled_s
        if state.hint is PollHint.POSSIBLE_END and state.awaited_s is not None:
            since_s = min(since_s, state.awaited_s)
        due_s = self._policy.min_s if self._sweep.token else self._policy.wait_s(state)
        if since_s >= max(due_s, self._backoff_s) and self._policy.affords(state):
            return [*ends, self.next_page()]
        return [*ends, Wait(_SLICE_S)]

    def _state(self, now_s: float) -> PollState:
        load, going = self._arrivals.load, self.going
        hint = poll_hint(self._cluster, going=going, load=load, worked=self._worked, labelled=self._labelled)
        if hint is not self._hint:
            self._hint, self._hint_from_s = hint, now_s
        awaited = load is Load.EXTERNAL or (bool(going) and load is not Load.ARRIVING)
        if not (awaited or self._known.over) or load is Load.ARRIVING:
            self._awaited_from_s = now_s
        return PollState(
            own=self._requests - min(self._tasks.taken, 1),  # the tasks of one run do not count against the budget
            sent=self._served,
            hint=hint,
            hinted_s=now_s - self._hint_from_s,
            awaited_s=now_s - self._awaited_from_s if awaited else None,
            left_s=self._forecast.left_s if load is Load.ARRIVED else None,
            going=len(going),
            pages=self._sweep.pages,
        )

    @property
    def _served(self) -> int:
        """Submissions that the platform is known to have received."""
        return max(self._arrivals.sent, len(self._known))

    @property
    def _unlisted(self) -> bool:
        """Runs of the ledger have not been listed."""
        return any(run not in self._known.open for run in self.going)

    @property
    def _overlooks(self) -> bool:
        """There may be runs that have not been listed."""
        possible, load = self._arrivals.possible_runs, self._arrivals.load
        return self._unlisted or len(self._known) < possible or load is Load.EXTERNAL

    # --- what to record -----------------------------------------------------------------------------------------

    def _read_page(self, now: Instant, page: RunPage, took_s: float) -> list[Command]:
        commands: list[Command] = [Record(Sample(LIST_SECONDS, now.at, took_s, {"endpoint": "ListRuns"}))]
        for run in page.runs:
            was_over = run.id in self._known.over
            commands += map(Record, self._known.see(run, now.at))
            if run.id not in self._known.over:
                self.going.add(run.id)
            elif not was_over:
                self.going.discard(run.id)
                self._ended.append(run.id)
                self._mismatch.see(run)
                if self._reads_tasks:
                    self._tasks.offer(run)
        if self._sweep.turn(page, overlooks=self._overlooks):
            return commands
        self.counted_at = now.at
        self._forecast.update(now.s, over=len(self._known.over), going=len(self.going))
        commands.append(Record(Sample(RUNS_IN_FLIGHT, now.at, float(len(self._known.open)))))
        commands += self._report_mismatch(_ENOUGH_RUNS)
        self._unlisted_s = {run: self._unlisted_s.get(run, now.s) for run in self.going if run not in self._known.open}
        never_listed = [run for run, since_s in self._unlisted_s.items() if now.s - since_s >= LATE_S]
        for gone in (*self._sweep.vanished(page), *never_listed):
            self.going.discard(gone)
            commands += map(Record, self._known.remove(gone, now.at))
        return commands

    def _shows_ends(self) -> bool:
        """Whether the cluster would have shown the end of any of the runs: it has of one, or none of them is over.

        Older platforms do not label persisted workflows.
        """
        unfinished = self._cluster.unfinished
        all_unfinished = unfinished is not None and all(run in unfinished for run in self.going)
        return all_unfinished or (self._labelled and self._cluster.persisted is not None)

    def _report_ends(self, now_at: int) -> list[Command]:
        """Report the ends that the cluster shows: the load need not wait for the listing, which adds details later."""
        persisted = self._cluster.persisted or {}
        commands: list[Command] = []
        for run in sorted(run for run in self.going if run in persisted and run not in self._known.reported):
            self._known.reported.add(run)
            state, severity = (SUCCEEDED, "Normal") if persisted[run] else (FAILED, "Warning")
            commands.append(Record(EventRecord(now_at, "Run", run, state, "", "kubernetes", run, type=severity)))
        return commands

    def _report_mismatch(self, enough: int) -> list[Command]:
        message = self._mismatch.message(self._cluster.worked, enough=enough)
        return [Note(WRONG_CLUSTER, "kubernetes pods", message)] if message else []

    # --- how to go on -------------------------------------------------------------------------------------------

    def _proceed(self) -> list[Command]:
        """After a page that was read."""
        if self._stopping:
            return [self.next_page()] if self._sweep.token else self._finish()
        return [*([] if self._sweep.token else self._ask_tasks()), Wait(_SLICE_S)]

    def stop(self) -> list[Command]:
        """The observation ends: one last sweep, through the whole listing if runs were overlooked."""
        self._stopping = True
        self._sweep.restart(whole=self._unlisted)
        unseen = bool(self.going) or not self._known.over or self._overlooks
        return [self.next_page()] if unseen else self._finish()

    def _finish(self) -> list[Command]:
        commands: list[Command] = []
        while not self._backoff_s and (asked := self._ask_tasks()):
            commands += asked
        return [*commands, *self._report_mismatch(1)]

    def _ask_tasks(self) -> list[Command]:
        """Read the tasks of one more run, if one is queued and affordable."""
        affordable = self._policy.affords_tasks(own=self._requests, sent=self._served, read=self._tasks.taken)
        if not self._tasks or not affordable:
            return []
        self._requests += 1
        return [AskTasks(self._tasks.take())]
