"""How often the runs are listed: seldom while nothing can have ended, quickly when the last ones do."""

_STRETCH = 0.4  # of the time that the runs have been going: an end is seen at most so much later, relatively
_FREE_REQUESTS = 3  # so that short tests are watched too
_SLOWER = 1.5


class Pace:
    """How long to wait between polls.

    Waits grow with the time since the first run was seen: a test of 40 s is listed every few seconds, at first every
    second. The longest wait is `calm_s` while our requests are within a share of the runs that were submitted, and
    grows to `most_s` beyond it. A run costs the platform's API more requests than its submission, its controller's
    reports above all; those are not counted, since they can't be seen.

    Args:
        least_s: at most so often …
        most_s: … and at least so often.
        calm_s: between the two, while requests can be afforded.
        share: of the platform's requests.
    """

    def __init__(self, least_s: float, most_s: float, calm_s: float, share: float) -> None:
        self._least_s, self._most_s, self._calm_s, self._share = least_s, most_s, calm_s, share
        self._bound_s = calm_s
        self._idle_s = least_s

    def after(self, own: int, served: int, going_s: float, left_s: float | None = None) -> float:
        """Seconds until the next poll.

        Args:
            own: requests so far.
            served: submissions so far.
            going_s: seconds since the first run was seen.
            left_s: seconds until the last run will be over at the pace at which they end now, where that is known.
        """
        affordable = self._bounded(own, served)
        wait_s = min(_STRETCH * going_s, self._bound_s)
        if affordable and left_s is not None:
            wait_s = min(wait_s, left_s)
        return max(wait_s, self._least_s)

    def before_next_page(self, own: int, served: int) -> float:
        """Seconds until the next page of a listing that has been begun."""
        return self._least_s if self._bounded(own, served) else self._bound_s

    def affords(self, own: int, served: int) -> bool:
        """Whether so many requests are within the share."""
        return own < _FREE_REQUESTS + self._share * served

    def _bounded(self, own: int, served: int) -> bool:
        """Whether a poll is within the share; moves the bound on waits."""
        affordable = self.affords(own, served)
        self._bound_s = self._calm_s if affordable else min(self._bound_s * _SLOWER, self._most_s)
        return affordable

    def while_idle(self) -> float:
        """Seconds until the next poll when what is waited for has happened: the platform is about to say so.

        They grow from poll to poll, since it may also be a controller that is stuck.
        """
        wait_s, self._idle_s = self._idle_s, min(self._idle_s * _SLOWER, self._most_s)
        return wait_s

    def busy(self) -> None:
        """It is not so yet, or no more."""
        self._idle_s = self._least_s
