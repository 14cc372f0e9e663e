"""How fast runs end at present."""

from collections import deque

_RECENT_S = 60.0


class EndRate:
    """The rate at which runs ended: in the last minute, or since the first end or the end before the last one."""

    def __init__(self) -> None:
        self._changes = deque([(0.0, 0)])  # seconds after t0, and how many had ended from then on

    def per_s(self, elapsed_s: float, ended: int) -> float | None:
        """Runs per second, `elapsed_s` after t0 with `ended` runs; None while none has."""
        if ended > self._changes[-1][1]:
            self._changes.append((elapsed_s, ended))
        from_s = max(elapsed_s - _RECENT_S, 0.0)
        while len(self._changes) > 2 and self._changes[2][0] <= from_s:
            self._changes.popleft()
        if len(self._changes) == 1:
            return None
        before = self._changes[1] if self._changes[1][0] <= from_s else self._changes[0]
        if not before[1] and len(self._changes) > 2:
            # Before the first end no run could end yet: that time says nothing about the rate.
            before = self._changes[1]
            from_s = before[0]
        if before is self._changes[-1]:
            from_s, before = self._changes[0][0], self._changes[0]
        return (ended - before[1]) / max(elapsed_s - from_s, 1.0)
