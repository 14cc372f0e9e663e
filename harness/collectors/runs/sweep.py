"""One pass through the listing of runs, and the rate of ends that two of them show."""

import math

from harness.collectors.runs.known_runs import KnownRuns
from harness.targets.target import RunPage

# A run's creation is its request's arrival, but it is listed once started: a minute later on a throttled API.
LATE_S = 90


class Sweep:
    """Goes through the listing, newest first, from the newest run that is still open to the oldest.

    Attributes:
        token: of the next page; "" when the next page is the first one of a new sweep.
        pages: requests that the longest complete sweep has taken, and at least 1.
    """

    def __init__(self, known: KnownRuns) -> None:
        self._known = known
        self._missing: set[str] = set()  # open runs that this sweep has not come across
        self._newest = self._complete_to = 0  # every run created before `_complete_to` is known
        self._asked = ""  # the token of the page that was requested last
        self._opening: str | None = None  # the token of this sweep's first page with an open run
        self._read = 0  # pages of this sweep
        self.token = ""
        self.pages = 1

    def next_page(self, *, overlooks: bool) -> str:
        """The token of the page to request; "" is the listing's first one.

        A new sweep begins where the one before found the first open run: tokens stay valid, because a run keeps its
        place in the listing. With runs that may have been overlooked it begins with the newest.
        """
        if self.token:
            self._asked = self.token
        else:
            self._asked = "" if overlooks else self._opening or ""
            self._missing, self._opening, self._read = set(self._known.open), None, 0
        return self._asked

    def turn(self, page: RunPage, *, overlooks: bool) -> bool:
        """A page was read into the known runs; whether the sweep goes on, because further pages hold open runs.

        Args:
            page: what was listed.
            overlooks: some runs may not have been listed yet, so that further pages may hold unknown ones.
        """
        self._read += 1
        self._missing.difference_update(run.id for run in page.runs)
        if self._opening is None and any(run.id in self._known.open for run in page.runs):
            self._opening = self._asked
        self._newest = max((self._newest, *(run.created_at for run in page.runs)))
        wanted = [self._known.open[run].created_at for run in self._missing if run in self._known.open]
        if overlooks:
            wanted.append(self._complete_to)
        further = page.next_page and page.runs and page.runs[-1].created_at >= min(wanted, default=math.inf)
        self.token = page.next_page if further else ""
        if not further:
            self.pages = max(self.pages, self._read)
            self._complete_to = max(self._complete_to, self._newest - LATE_S * 10**9)
        return bool(further)

    def vanished(self, last: RunPage) -> list[str]:
        """Open runs that the listing no longer holds, known when the `last` page is the listing's last."""
        return [] if last.next_page else sorted(self._missing & self._known.open.keys())

    def restart(self, *, whole: bool = False) -> None:
        """Start again with the first page; `whole`: go through the listing to its end."""
        self.token, self._opening = "", None
        if whole:
            self._complete_to = 0


class Forecast:
    """When the last run will end, at the rate of ends between two sweeps.

    Attributes:
        left_s: estimated seconds left; none while no run has ended between sweeps.
    """

    def __init__(self, now_s: float, over: int) -> None:
        self._swept_s, self._over = now_s, over
        self.left_s: float | None = None

    def update(self, now_s: float, *, over: int, going: int) -> None:
        """A sweep has ended at `now_s` (monotonic) with these numbers of runs over and going."""
        ended, length_s = over - self._over, now_s - self._swept_s
        self.left_s = going * length_s / ended if ended > 0 else None
        self._swept_s, self._over = now_s, over
