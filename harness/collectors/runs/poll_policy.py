"""When the runs are listed: within a share of the platform's requests, and soon where somebody waits for an end.

The listing tells when a run ended, so that a late look loses nothing. Only who waits for an end hears of it later: the
test that ends with its last run, and the closed model's next arrival.
"""

import math
from dataclasses import dataclass

from harness.collectors.runs.poll_hint import Expected

_FIRST_S = 4.0  # hardly a run is over sooner
_STRETCH = 0.5  # a wait goes on for half as long again, …
_THIRD = _STRETCH / (1.0 + _STRETCH)  # … which is then so much of it
_NO_NEWS_S = 15.0
_NEVER_TOLD_S = 300.0
_RUNS_A_PAGE = 200
_MOST_RESERVED = 10.0


def budget(sent: int, share: float) -> float:
    """As many requests as are `share` of all, together with those that were `sent` by the load."""
    return sent * share / (1.0 - share)


@dataclass(frozen=True, slots=True)
class PollState:
    """Where a test stands.

    Attributes:
        own: requests of ours so far, without the first one for a run's tasks.
        sent: submissions so far.
        expected: what a poll would show …
        for_s: … since so many seconds.
        awaited_s: so long somebody has been waiting for an end; none while nobody does.
        left_s: until the last run will be over at the pace at which they end now, where that is known.
        going: runs that a look goes through.
    """

    own: int
    sent: int
    expected: Expected
    for_s: float = 0.0
    awaited_s: float | None = None
    left_s: float | None = None
    going: int = 0


@dataclass(frozen=True, slots=True)
class PollPolicy:
    """When the next request may be made: there are never more than ``budget + floor``.

    The budget is a share of what load and observation send, the floor what it takes to see an end that nobody tells of.

    Attributes:
        share: of the platform's requests.
        least_s: between polls …
        calm_s: … of which each can be afforded …
        most_s: … and while somebody waits for an end.
    """

    share: float
    least_s: float
    calm_s: float
    most_s: float

    def floor(self, awaited_s: float) -> int:
        """Requests beyond the budget that may have been made when an end has been awaited for so long.

        One each time that the wait has become half as long again, and later one every `most_s`: an end is seen at most
        half as much later as it took, and no more than `most_s`.
        """
        if awaited_s < _FIRST_S:
            return 0
        grown_s = max(self.most_s / _STRETCH, _FIRST_S)  # steps grow until here
        steps = math.log(min(awaited_s, grown_s) / _FIRST_S, 1.0 + _STRETCH)
        return 1 + math.floor(steps + max(awaited_s - grown_s, 0.0) / self.most_s)

    def affords(self, now: PollState) -> bool:
        """Whether one more request is within budget and floor."""
        return now.own + 1 <= max(self._for_polls(now.sent), 0.0) + self.floor(now.awaited_s or 0.0)

    def affords_detail(self, own: int, sent: int, read: int) -> bool:
        """Whether one more run may be asked for its tasks: a quarter of the budget, and one however small it is."""
        whole = budget(sent, self.share)
        return read == 0 or (read + 1 <= whole / 4 and own + 1 <= whole)

    def wait_s(self, now: PollState) -> float:
        """Seconds from the last poll to the next one; infinite where only a change of things brings it about."""
        spare = self._for_polls(now.sent) - now.own
        if now.expected is Expected.ENDS:
            # It may also be a controller that is stuck.
            return min(max(_THIRD * now.for_s, self.least_s), self.most_s)
        if now.awaited_s is None or now.expected is not Expected.PERHAPS:
            return self._unasked_s(now, spare)
        unaided_s = min(max(_THIRD * now.awaited_s, _FIRST_S * _STRETCH), self.most_s)
        if spare < 1.0:
            return unaided_s
        left_s = math.inf if now.left_s is None else max(now.left_s, self.least_s)
        spread_s = (now.awaited_s if now.left_s is None else now.left_s) / spare
        pages = math.ceil(now.going / _RUNS_A_PAGE)
        return min(unaided_s, left_s, max(self.calm_s, spread_s) * max(pages, 1))

    def _unasked_s(self, now: PollState, spare: float) -> float:
        """Nobody waits, or the cluster says when it is over: for people who watch, and lest the cluster be wrong."""
        free = spare - min(spare / 2, _MOST_RESERVED)
        calm_s = max(self.calm_s, _NO_NEWS_S) if now.expected is Expected.NOTHING else self.calm_s
        safe_s = math.inf if now.awaited_s is None else max(_THIRD * now.awaited_s, _NEVER_TOLD_S)
        return min(safe_s, max(calm_s, (now.awaited_s or 0.0) / free)) if free >= 1.0 else safe_s

    def _for_polls(self, sent: int) -> float:
        """The budget without what the last look and the tasks of a run take."""
        return budget(sent, self.share) - sent / _RUNS_A_PAGE - 2
