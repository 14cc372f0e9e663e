"""The workflow controller's Kubernetes client: a token bucket for each API group, and requests in the background."""

from collections import Counter, deque
from collections.abc import Callable

from harness.model.live.exposition import Histogram
from harness.simulator.engine.events import EventLoop
from harness.simulator.engine.queues import TokenBucket
from harness.simulator.profile import Controller as Settings

# Buckets of the histogram of waits for tokens, in seconds, as Argo's documentation of 4.1 has them.
_WAITS_S = (0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 180.0)
_BATCH_S = 0.05  # requests in the background are simulated in steps of this length


class Background:
    """Requests that nothing waits for, sent by a few senders that each wait for a token at a time.

    So they get a small share of a bucket that many others wait for, and all of an idle one.
    """

    __slots__ = ("_awaited", "_bucket", "_idle", "_loop", "_sent_by", "senders", "sent", "waiting")

    def __init__(self, loop: EventLoop, bucket: TokenBucket, senders: int) -> None:
        self._loop = loop
        self._bucket = bucket
        self.senders = self._idle = senders
        self.waiting = 0
        self.sent = 0
        self._sent_by = 0.0  # when the last one is sent
        self._awaited: deque[tuple[int, Callable[[], None]]] = deque()  # by the number of requests sent by then

    def add(self, count: int) -> None:
        """Queue requests."""
        self.waiting += count
        self._start()

    def employ(self, senders: int) -> None:
        """Change the number of senders; those that are too many stop when their request is sent."""
        self._idle += senders - self.senders
        self.senders = senders
        self._start()

    def _start(self) -> None:
        while self._idle > 0 and self.waiting:
            self._idle -= 1
            self._send()

    def when_sent(self, done: Callable[[], None]) -> None:
        """Call `done` when all requests that are queued now are sent; at once if they are. Calls keep their order."""
        if self.waiting:
            self._awaited.append((self.sent + self.waiting, done))
        elif self._sent_by > self._loop.now:
            self._loop.at(self._sent_by, done)
        else:
            done()

    @property
    def busy(self) -> int:
        """Number of senders that wait for a token."""
        return self.senders - self._idle

    @property
    def lag_s(self) -> float:
        """How long a request that is queued now waits at least."""
        return (self.waiting + self._bucket.backlog(self._loop.now)) / self._bucket.rate

    def _send(self) -> None:
        now, bucket = self._loop.now, self._bucket
        while self.waiting:
            count = self.waiting
            if count > 1:  # most are alone
                count = min(count, max(bucket.spare(now), int(bucket.rate * _BATCH_S), 1))
            self.waiting -= count
            self.sent += count
            at = bucket.take(now, count)
            self._count(at)
            if at > now:
                self._loop.at(at, self._sent)
                return
        self._idle += 1

    def _sent(self) -> None:
        if self._idle < 0:  # one too many
            self._idle += 1
        else:
            self._send()

    def _count(self, at: float) -> None:
        """All requests so far are sent by this time."""
        self._sent_by = at = max(self._sent_by, at)
        while self._awaited and self._awaited[0][0] <= self.sent:
            self._loop.at(at, self._awaited.popleft()[1])


class Client:
    """The client that all parts of the controller share.

    Attributes:
        core: the limit on pods, ConfigMaps and events together.
        workflows: the limit on the group argoproj.io.
        events: the recorder of events, which sends one at a time.
        cleanup: the pod clean-up workers, which label ended pods.
        counts: requests that workers have sent, by resource and verb.
        waits: seconds that requests waited for their tokens.
    """

    def __init__(self, loop: EventLoop, settings: Settings) -> None:
        self.waits = Histogram(_WAITS_S)
        self.core = TokenBucket(settings.qps, settings.burst, self.waits)
        self.workflows = TokenBucket(settings.qps, settings.burst, self.waits)
        self.events = Background(loop, self.core, 1)
        self.cleanup = Background(loop, self.core, settings.cleanup_workers)
        self.counts = Counter[str]()

    @property
    def rate(self) -> float:
        """Requests per second and API group (``--qps``)."""
        return self.core.rate

    @rate.setter
    def rate(self, rate: float) -> None:
        self.core.rate = self.workflows.rate = rate

    @property
    def burst(self) -> float:
        """Requests of an idle client that need not wait (``--burst``)."""
        return self.core.burst

    @burst.setter
    def burst(self, burst: float) -> None:
        self.core.burst = self.workflows.burst = burst

    @property
    def sent(self) -> int:
        """All requests so far."""
        return self.counts.total() + self.events.sent + self.cleanup.sent
