"""What an observer keeps of a test that may last for days: ids at a few bytes each, and of other things the recent."""

from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

_NEW = 512  # ids that are merged at once: merging costs as much as there are ids

Key = TypeVar("Key")


class Ids:
    """Texts of which only is asked whether they are there: nine bytes each, where a set takes more than a hundred.

    They are kept by their hashes of 64 bits: among a million, one wrong answer in ten million tests.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._sorted: array[int] = array("q")
        self._new: set[int] = set()
        for text in texts:
            self.add(text)

    def add(self, text: str) -> None:
        """Add a text; without effect if it is there."""
        if text in self:
            return
        self._new.add(hash(text))
        if len(self._new) >= _NEW:
            self._sorted = array("q", sorted((*self._sorted, *self._new)))
            self._new = set()

    def __contains__(self, text: object) -> bool:
        number = hash(text)
        if number in self._new:
            return True
        place = bisect_left(self._sorted, number)
        return place < len(self._sorted) and self._sorted[place] == number

    def __len__(self) -> int:
        return len(self._sorted) + len(self._new)


class Leaving(Generic[Key]):
    """Keys of what is gone, kept for a while: what is said of it late still finds it."""

    def __init__(self, kept_s: float) -> None:
        self._kept_ns = round(kept_s * 1e9)
        self._since: deque[tuple[int, Key]] = deque()

    def add(self, key: Key, now_at: int) -> None:
        """It is gone since now, UTC ns."""
        self._since.append((now_at, key))

    def due(self, now_at: int) -> Iterator[Key]:
        """Those to forget now, each once."""
        while self._since and self._since[0][0] <= now_at - self._kept_ns:
            yield self._since.popleft()[1]
