"""Which of many similar things are looked at closely, where each look costs a request."""

from collections import Counter


class Sampling:
    """Chooses some things of each kind, evenly over time and ever more rarely.

    Of each kind the first `dense` are chosen, then every second until another `dense` are, then every fourth, and so
    on: n things cost about ``dense · log2(n / dense)`` looks.

    Args:
        dense: how many of a kind are chosen before the distance doubles.
        most: maximum of all kinds together.
    """

    def __init__(self, dense: int, most: int) -> None:
        self._dense = dense
        self._most = most
        self._seen: Counter[str] = Counter()
        self._chosen: Counter[str] = Counter()
        self._total = 0

    def chooses(self, kind: str) -> bool:
        """Whether the next thing of this kind is chosen."""
        number = self._seen[kind]
        self._seen[kind] += 1
        if self._total >= self._most or number % 2 ** (self._chosen[kind] // self._dense):
            return False
        self._chosen[kind] += 1
        self._total += 1
        return True


def of_uploads() -> Sampling:
    """For the launcher's logs of steps that succeeded, by task."""
    return Sampling(10, 300)


def of_failures() -> Sampling:
    """For the launcher's logs of steps that failed, by task."""
    return Sampling(20, 100)


def of_uses() -> Sampling:
    """For the measurements of steps in simulated time, by task."""
    return Sampling(100, 3000)
