"""Simulated time as instants of UTC."""

from datetime import UTC, datetime

_REMEMBERED = 10_000  # seconds whose text is kept: a day has 86,400


class Skew:
    """A wrong clock of the platform's machines, visible in all of its timestamps: `by_s` ahead from `since` on."""

    __slots__ = ("by_s", "since")

    def __init__(self) -> None:
        self.since = 0.0
        self.by_s = 0.0


class Calendar:
    """Turns seconds of simulated time into timestamps.

    `origin_at` is the UTC time in ns at which the simulation begins; `skew` that of the clock that stamps.
    """

    __slots__ = ("_texts", "origin_at", "skew")

    def __init__(self, origin_at: int) -> None:
        self.origin_at = origin_at
        self.skew = Skew()
        self._texts: dict[int, str] = {}

    def ns(self, t: float) -> int:
        """An instant of simulated time (seconds) as UTC nanoseconds."""
        skew = self.skew
        if skew.by_s and t >= skew.since:
            t += skew.by_s
        return self.origin_at + round(t * 1e9)

    def when(self, t: float | None) -> int | None:
        """UTC nanoseconds of what may not have happened yet."""
        return None if t is None else self.ns(t)

    def second(self, t: float) -> int:
        """Whole seconds since 1970."""
        return self.ns(t) // 10**9

    def stamp(self, t: float) -> str:
        """RFC 3339 in whole seconds, as Kubernetes and KFP write timestamps."""
        second = self.second(t)
        text = self._texts.get(second)
        if text is None:
            if len(self._texts) >= _REMEMBERED:
                self._texts.clear()
            text = self._texts[second] = datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return text

    def fine_stamp(self, t: float) -> str:
        """RFC 3339 in nanoseconds, as container runtimes stamp the lines of logs."""
        return f"{self.stamp(t)[:-1]}.{self.ns(t) % 10**9:09d}Z"
