"""What an observer keeps of a test that may last for days: ids at a few bytes each, and of other things the recent."""

from array import array
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

_BUCKETS = 2048

Key = TypeVar("Key")


class Ids:
    """Texts of which only is asked whether they are there: of many, ten bytes each, where a set takes a hundred.

    They are kept by their hashes of 64 bits: among a million, one wrong answer in ten million tests. Nothing is ever
    rearranged, which would stop a load for as long as that takes.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._buckets: dict[int, array[int]] = {}
        self._count = 0
        for text in texts:
            self.add(text)

    def add(self, text: str) -> None:
        """Add a text; without effect if it is there."""
        number = hash(text)
        bucket = self._buckets.setdefault(number % _BUCKETS, array("q"))
        if number not in bucket:
            bucket.append(number)
            self._count += 1

    def __contains__(self, text: object) -> bool:
        number = hash(text)
        return number in self._buckets.get(number % _BUCKETS, ())

    def __len__(self) -> int:
        return self._count


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
