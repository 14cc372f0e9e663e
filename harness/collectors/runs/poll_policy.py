"""How often the runs are listed: within a share of the platform's requests, and soon where an end is awaited.

The listing holds the timestamps of ends, so a late poll loses nothing. It only delays those who wait for an end: the
test that ends with its last run, and the closed model's next arrival.
"""

import math
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum, auto

from harness.collectors.collector import Activity
from harness.model import Plan, Submission

# --- what the cluster suggests that a poll of the runs would show now. The hint says when to poll; the listing decides


class PollHint(Enum):
    """What a poll would show."""

    NOTHING = auto()  # no run has started, or none has ended since the last poll
    CHANGES = auto()  # state changes that are not awaited
    POSSIBLE_END = auto()  # an awaited end may have happened; the cluster cannot tell
    END = auto()  # an awaited end has happened


class Load(Enum):
    """Who waits for the ends of runs."""

    EXTERNAL = auto()  # the load is not ours: unknown
    ARRIVING = auto()  # nobody: more arrivals are due
    ARRIVED = auto()  # the test, for the last end
    CLOSED = auto()  # each next arrival, for an end; ends that the cluster shows are reported at once


def poll_hint(activity: Activity, *, going: AbstractSet[str], load: Load, worked: bool, labelled: bool) -> PollHint:
    """What a poll would show.

    Args:
        activity: what the cluster shows.
        going: the test's runs that were not seen to end.
        load: who waits for their ends.
        worked: a pod has worked for one of the test's runs: until then the cluster may be another one.
        labelled: one of their workflows was labelled as persisted: older platforms never do that.
    """
    if load is Load.EXTERNAL:
        return PollHint.POSSIBLE_END
    if not going:
        return PollHint.NOTHING
    # Without a living pod the platform is about to report the end.
    idle = worked and load is Load.ARRIVED and activity.pods == 0
    if activity.persisted is None or not worked:
        if idle:
            return PollHint.END
        return PollHint.CHANGES if load is Load.ARRIVING else PollHint.POSSIBLE_END
    if not labelled and (idle or load is Load.CLOSED):
        return PollHint.POSSIBLE_END
    ended = sum(run in activity.persisted for run in going)
    if load is Load.ARRIVED and ended == len(going):
        return PollHint.END
    return PollHint.CHANGES if ended else PollHint.NOTHING


_FIRST_S = 4.0  # few runs end sooner
_STRETCH = 0.5  # each wait is prolonged by half of its length, …
_THIRD = _STRETCH / (1.0 + _STRETCH)  # … which is a third of the prolonged wait
_NO_NEWS_S = 15.0
_UNCONFIRMED_S = 300.0
_RUNS_PER_PAGE = 200
_LARGEST_RESERVE = 10.0


def budget(sent: int, share: float) -> float:
    """Requests that make up `share` of all requests, together with `sent` by the load."""
    return sent * share / (1.0 - share)


@dataclass(frozen=True, slots=True, kw_only=True)
class PollState:
    """Where a test stands.

    Attributes:
        own: the observer's requests so far, except the first one for a run's tasks.
        sent: submissions so far.
        hint: what a poll would show.
        hinted_s: seconds since the hint last changed.
        awaited_s: seconds for which an end has been awaited; none while no end is awaited.
        left_s: estimated seconds until the last end, at the present rate of ends; none while unknown.
        going: runs that have not ended.
        pages: requests of the longest sweep so far: what it took is not missing in the floor of a shorter one.
    """

    own: int
    sent: int
    hint: PollHint
    hinted_s: float = 0.0
    awaited_s: float | None = None
    left_s: float | None = None
    going: int = 0
    pages: int = 1


@dataclass(frozen=True, slots=True)
class PollPolicy:
    """When the next request may be made: never more than ``budget + floor · pages of a sweep`` requests.

    The budget is a share of what load and observer send; the floor is what it takes to notice an end without a hint.

    Attributes:
        share: of the platform's requests.
        min_s: shortest interval between polls.
        calm_s: interval while polls are affordable and nothing urgent is hinted.
        max_s: longest interval while an end is awaited.
    """

    share: float
    min_s: float
    calm_s: float
    max_s: float

    def floor(self, awaited_s: float) -> int:
        """Sweeps allowed beyond the budget once an end has been awaited for `awaited_s`.

        One each time the wait has grown by half, and later one every `max_s`: an end is seen late by at most half of
        the wait, and by no more than `max_s`.
        """
        if awaited_s < _FIRST_S:
            return 0
        grown_s = max(self.max_s / _STRETCH, _FIRST_S)  # intervals grow until here
        steps = math.log(min(awaited_s, grown_s) / _FIRST_S, 1.0 + _STRETCH)
        return 1 + math.floor(steps + max(awaited_s - grown_s, 0.0) / self.max_s)

    def affords(self, state: PollState) -> bool:
        """Whether one more request is within budget and floor."""
        floor = self.floor(state.awaited_s or 0.0) * state.pages
        return state.own + 1 <= max(self._polling_budget(state.sent), 0.0) + floor

    def affords_tasks(self, *, own: int, sent: int, read: int) -> bool:
        """Whether the tasks of one more run may be read, after `read`: a quarter of the budget, but at least one."""
        whole = budget(sent, self.share)
        return read == 0 or (read + 1 <= whole / 4 and own + 1 <= whole)

    def wait_s(self, state: PollState) -> float:
        """Seconds from the last poll to the next one; infinite where only a change of state triggers it."""
        spare = self._polling_budget(state.sent) - state.own
        if state.hint is PollHint.END:
            # Back off all the same: the controller may be stuck.
            return min(max(_THIRD * state.hinted_s, self.min_s), self.max_s)
        if state.awaited_s is None or state.hint is not PollHint.POSSIBLE_END:
            return self._relaxed_wait_s(state, spare)
        blind_s = min(max(_THIRD * state.awaited_s, _FIRST_S * _STRETCH), self.max_s)
        if spare < 1.0:
            return blind_s
        left_s = math.inf if state.left_s is None else max(state.left_s, self.min_s)
        spread_s = (state.awaited_s if state.left_s is None else state.left_s) / spare
        pages = math.ceil(state.going / _RUNS_PER_PAGE)
        return min(blind_s, left_s, max(self.calm_s, spread_s) * max(pages, 1))

    def _relaxed_wait_s(self, state: PollState, spare: float) -> float:
        """Nobody waits, or the cluster will hint the end: poll for the live view, and in case the cluster is wrong."""
        free = spare - min(spare / 2, _LARGEST_RESERVE)
        calm_s = max(self.calm_s, _NO_NEWS_S) if state.hint is PollHint.NOTHING else self.calm_s
        unconfirmed_s = math.inf if state.awaited_s is None else max(_THIRD * state.awaited_s, _UNCONFIRMED_S)
        return min(unconfirmed_s, max(calm_s, (state.awaited_s or 0.0) / free)) if free >= 1.0 else unconfirmed_s

    def _polling_budget(self, sent: int) -> float:
        """The budget without the last sweep and the tasks of one run."""
        return budget(sent, self.share) - sent / _RUNS_PER_PAGE - 2


# --- progress of the load, from its ledger ---------------------------------------------------------------------------


_CLOSED = "concurrency"  # the schedule of the closed model
_ALL_ARRIVED = frozenset({"draining", "cleaning up", "reporting", "over"})  # stages of the load


def is_closed(plan: Plan) -> bool:
    """Whether each arrival waits for the end of an earlier run."""
    return plan.schedule.get("name") == _CLOSED


class Arrivals:
    """The arrivals so far.

    Attributes:
        sent: how many were sent.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._booked = self._refused = 0
        self._stage = ""
        self.sent = 0

    def add(self, submissions: Iterable[Submission], stage: str) -> list[str]:
        """Take in new rows of the ledger and the load's present stage; returns the runs of the accepted ones."""
        self._stage, accepted = stage, []
        for submission in submissions:
            self._booked += 1
            self.sent += submission.sent_at is not None
            self._refused += submission.status is not None and not submission.run
            if submission.run:
                accepted.append(submission.run)
        return accepted

    @property
    def possible_runs(self) -> int:
        """Upper bound on runs started: a submission without a response may have started one."""
        return self.sent - self._refused

    @property
    def load(self) -> Load:
        """Who waits for the ends of runs at present."""
        if is_closed(self._plan):
            return Load.CLOSED
        if not self._plan.intended:
            return Load.EXTERNAL
        # The ledger lacks the arrivals of a lost worker; the load's stage says that no more will come.
        if self._booked >= self._plan.intended or self._stage in _ALL_ARRIVED:
            return Load.ARRIVED
        return Load.ARRIVING
