"""The past from anything with Prometheus' HTTP API: in chunks, at most four at once, each kept as soon as it is there.

A chunk that the store refuses as too large is halved, an overloaded store is given time. What can't be read in spite of
that is lost, and said; the rest is kept.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from harness.collectors.source_health import UnreachableError
from harness.model.http import LONGER
from harness.store.answers import Answers

Answer = list[tuple[dict[str, str], list[tuple[int, float]]]]  # labels, and points of UTC ns and value
AT_ONCE = 4
_TOO_MANY_SAMPLES = 422  # samples, or series; also of stores with Prometheus' API
_BUSY_STATUSES = frozenset({429, 502, 503, 504})
_WAITS_S = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
_SHORTEST_S = 60
WINDOW = "$window"  # in PromQL: the seconds of the chunk, as a range


@dataclass(frozen=True, slots=True)
class Ask:
    """One request: PromQL from `start_s` to `end_s`, UTC s.

    `step_s` 0 asks once, at the end, about the whole of it: then `WINDOW` stands in `promql` for its length.
    """

    name: str
    promql: str
    start_s: int
    end_s: int
    step_s: int = 0

    @property
    def key(self) -> str:
        """Of its answer."""
        return f"{self.name}-{self.start_s}-{self.end_s}"

    @property
    def request(self) -> tuple[str, dict[str, str]]:
        """Path and query."""
        if not self.step_s:
            promql = self.promql.replace(WINDOW, f"{self.end_s - self.start_s}s")
            return "/api/v1/query", {"query": promql, "time": str(self.end_s)}
        times = {"start": str(self.start_s), "end": str(self.end_s), "step": str(self.step_s)}
        return "/api/v1/query_range", {"query": self.promql, **times}

    def halves(self) -> "tuple[Ask, Ask] | None":
        """The same in two requests; None where it is short already."""
        step_s = self.step_s or 1
        middle_s = self.start_s + (self.end_s - self.start_s) // 2 // step_s * step_s
        if self.end_s - self.start_s < max(2 * step_s, _SHORTEST_S):
            return None
        later_s = middle_s + self.step_s
        return replace(self, end_s=middle_s), replace(self, start_s=later_s)

    def chunks(self, length_s: int) -> "Iterator[Ask]":
        """The same in requests of at most this length."""
        start_s = end_s = self.start_s
        while end_s < self.end_s:
            end_s = min(self.end_s, start_s + length_s)
            yield replace(self, start_s=start_s, end_s=end_s)
            start_s = end_s + self.step_s


@dataclass(slots=True)
class Fetched:
    """What became of the requests.

    Attributes:
        samples: fetched in this process.
        lost: chunks that could not be read, by why.
        halved: chunks that were too large for the store.
        waits: for a store that had too much to do.
    """

    samples: int = 0
    halved: int = 0
    waits: int = 0
    lost: Counter[str] = field(default_factory=Counter)

    def sentences(self) -> Iterator[str]:
        """What a reader has to know."""
        for why, count in self.lost.most_common():
            yield f"{count:,} chunks are lost, what else was fetched is kept: {why}"
        if self.halved:
            yield f"{self.halved:,} chunks were halved: the store refused them as too large"
        if self.waits:
            yield f"the store was given time {self.waits:,} times: it had too much to do"


class PastReader:
    """Reads chunks into `answers`.

    Args:
        ask: sends a request, path and query; raises `UnreachableError`.
        answers: take what comes; what they hold already is not asked for again.
        most_samples: after which nothing more is asked for.
        pause: waits for a number of seconds; True to end early.
        over: called after each chunk.
    """

    def __init__(
        self,
        ask: Callable[[str, Mapping[str, str]], Answer],
        answers: Answers,
        most_samples: int,
        pause: Callable[[float], bool],
        over: Callable[[], None] = lambda: None,
    ) -> None:
        self._ask = ask
        self._answers = answers
        self._most = most_samples
        self._pause = pause
        self._over = over
        self._lock = threading.Lock()
        self._stopped = False
        self.fetched = Fetched()

    def read(self, asks: Sequence[Ask]) -> bool:
        """Read all of them; False when it was stopped before."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for _ in pool.map(self._read, asks):
                self._over()
        return not self._stopped

    def _read(self, ask: Ask) -> None:
        if ask.key in self._answers or self._stopped:
            return
        if self.fetched.samples >= self._most:
            self._lose(f"more than {self._most:,} samples: give --namespace or --match, or raise --max-samples")
            return
        try:
            found = self._patiently(ask)
        except UnreachableError as error:
            halves = ask.halves() if _is_too_much(error) else None
            if halves is None:
                self._lose(str(error))
                return
            with self._lock:
                self.fetched.halved += 1
            for half in halves:
                self._read(half)
            return
        if found is not None:
            self._answers.keep(ask.key, found)
            with self._lock:
                self.fetched.samples += sum(len(points) for _, points in found)

    def _patiently(self, ask: Ask) -> Answer | None:
        """The answer, asked for again while the store is busy; None when stopped."""
        for wait_s in _WAITS_S:
            try:
                return self._ask(*ask.request)
            except UnreachableError as error:
                if error.status not in _BUSY_STATUSES or _took_too_long(error):
                    raise
            with self._lock:
                self.fetched.waits += 1
            if self._pause(wait_s):
                self._stopped = True
                return None
        return self._ask(*ask.request)

    def _lose(self, why: str) -> None:
        with self._lock:
            self.fetched.lost[why] += 1


def _is_too_much(error: UnreachableError) -> bool:
    return error.status == _TOO_MANY_SAMPLES or _took_too_long(error) or LONGER in str(error)


def _took_too_long(error: UnreachableError) -> bool:
    """The query itself, which is smaller for a shorter time."""
    return error.status in _BUSY_STATUSES and "timed out" in str(error)
