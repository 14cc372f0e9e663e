"""Queues: a token bucket, a queue with several servers, and processor sharing."""

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from math import inf
from typing import Any

from harness.model.live.exposition import Histogram
from harness.simulator.engine.events import Action, EventLoop


class TokenBucket:
    """Client-side rate limiting as in client-go: without a token, requests wait in order of arrival; none is refused.

    Args:
        rate: tokens per second.
        burst: tokens that an idle bucket holds.
        waits: counts the seconds that each request waits.
    """

    __slots__ = ("_last", "_tokens", "_waits", "burst", "rate", "waited_s")

    def __init__(self, rate: float, burst: float, waits: Histogram | None = None) -> None:
        self.rate = rate
        self.burst = burst
        self.waited_s = 0.0  # total wait of all requests
        self._tokens = burst
        self._last = 0.0
        self._waits = waits

    def take(self, now: float, count: int = 1) -> float:
        """Reserve `count` tokens at `now`; returns the instant from which they can be used."""
        tokens = self._tokens + (now - self._last) * self.rate
        self._last = now
        self._tokens = tokens = min(self.burst, tokens) - count
        wait = -tokens / self.rate if tokens < 0 else 0.0
        if self._waits is not None:
            self._waits.observe(wait, count)
        if not wait:
            return now
        self.waited_s += wait
        return now + wait

    def spare(self, now: float) -> int:
        """Number of tokens that can be used at once."""
        return max(0, int(min(self.burst, self._tokens + (now - self._last) * self.rate)))

    def backlog(self, now: float) -> float:
        """Reserved tokens that have not been generated yet: 0 if no request waits."""
        return max(0.0, -(self._tokens + (now - self._last) * self.rate))


class MultiServerQueue:
    """`count` equal servers behind one first-come-first-served queue; a count of 0 means no limit."""

    __slots__ = ("_loop", "_waiting", "busy", "count")

    def __init__(self, loop: EventLoop, count: int) -> None:
        self._loop = loop
        self._waiting: deque[tuple[float, Callable[[], None]]] = deque()
        self.count = count
        self.busy = 0

    @property
    def waiting(self) -> int:
        """Length of the queue, without the requests in service."""
        return len(self._waiting)

    def serve(self, seconds: float, done: Callable[[], None]) -> None:
        """Serve a request with this service time, then call `done`."""
        if self.count and self.busy >= self.count:
            self._waiting.append((seconds, done))
            return
        self.busy += 1
        self._loop.after(seconds, self._end, done)

    def _end(self, done: Callable[[], None]) -> None:
        self.busy -= 1
        if self._waiting:
            seconds, following = self._waiting.popleft()
            self.busy += 1
            self._loop.after(seconds, self._end, following)
        done()


class Job:
    """A job in a `ProcessorSharing` queue; finished or removed when `done` is none. `begun` is in virtual time."""

    __slots__ = ("args", "begun", "demand", "done")

    def __init__(self, begun: float, demand: float, done: Action, args: tuple[Any, ...]) -> None:
        self.begun = begun
        self.demand = demand
        self.done: Action | None = done
        self.args = args


class ProcessorSharing:
    """Processor sharing: all jobs run at once, and slow down equally when their demand exceeds the capacity.

    A job that takes `alone_s` seconds by itself, using `demand` of the capacity, progresses at the speed
    ``min(1, capacity / sum of demands)``. With ``demand == capacity`` it is the egalitarian M/G/1-PS queue; a CPU has
    demands in cores, a disk or link in bytes per second.

    Virtual time runs at that speed, so a job's end in virtual time is known on arrival, and each arrival or departure
    costs O(log n) for n jobs (the fluid view of Parekh & Gallager's generalised processor sharing).
    """

    __slots__ = ("_armed", "_capacity", "_count", "_heap", "_loop", "_updated", "_virtual", "_work", "demand", "jobs")

    def __init__(self, loop: EventLoop, capacity: float) -> None:
        self._loop = loop
        self._capacity = capacity
        self._virtual = 0.0
        self._work = 0.0  # of jobs that finished or were removed
        self._updated = loop.now
        self._armed = inf
        self._heap: list[tuple[float, int, Job]] = []  # by the job's end in virtual time
        self._count = 0
        self.demand = 0.0
        self.jobs = 0

    @property
    def capacity(self) -> float:
        """The shared capacity. Setting it changes the speed of running jobs."""
        return self._capacity

    @capacity.setter
    def capacity(self, capacity: float) -> None:
        self._advance()
        self._capacity = capacity
        self._arm()

    @property
    def speed(self) -> float:
        """Speed of every job relative to running alone: 1 unless demand exceeds capacity."""
        return 1.0 if self.demand <= self._capacity else self._capacity / self.demand

    @property
    def work(self) -> float:
        """Capacity × seconds used by all jobs so far: core-seconds of a CPU."""
        self._advance()
        return self._work + sum(self.work_of(job) for _, _, job in self._heap if job.done is not None)

    def work_of(self, job: Job) -> float:
        """The share of `work` that a running job has used so far."""
        return self.progress_of(job) * job.demand

    def progress_of(self, job: Job) -> float:
        """How far a running job is: the seconds that this would have taken alone."""
        self._advance()
        return self._virtual - job.begun

    def add(self, alone_s: float, demand: float, done: Action, *args: Any) -> Job:  # the arguments of `done`
        """Start a job; ``done(*args)`` is called when it finishes."""
        self._advance()
        job = Job(self._virtual, demand, done, args)
        heap = self._heap
        heappush(heap, (self._virtual + alone_s, self._count, job))
        self._count += 1
        self.jobs += 1
        self.demand += demand
        if heap[0][2] is job:  # otherwise an earlier job still wakes the queue first
            self._arm()
        return job

    def remove(self, job: Job) -> None:
        """Remove a job before its end; no effect on a finished one."""
        if job.done is None:
            return
        self._advance()
        self._leave(job)
        self._arm()

    def _leave(self, job: Job) -> None:
        job.done = None
        self._work += (self._virtual - job.begun) * job.demand
        self.jobs -= 1
        # An empty queue drops the rounding error of the sum.
        self.demand = self.demand - job.demand if self.jobs else 0.0

    def _advance(self) -> None:
        now = self._loop.now
        if now > self._updated:
            passed = now - self._updated
            demand, capacity = self.demand, self._capacity
            self._virtual += passed if demand <= capacity else passed * capacity / demand
            self._updated = now

    def _arm(self) -> None:
        """Schedule the wake-up for the first job to finish."""
        heap, demand, capacity = self._heap, self.demand, self._capacity
        while heap and heap[0][2].done is None:
            heappop(heap)
        if not heap or capacity <= 0:
            return
        left = heap[0][0] - self._virtual
        when = self._loop.now + (left if demand <= capacity else left * demand / capacity)
        # An early wake-up finds nothing due and schedules the next; only an earlier one has to be added.
        if when < self._armed:
            self._armed = when
            self._loop.at(when, self._wake)

    def _wake(self) -> None:
        if self._loop.now >= self._armed:
            self._armed = inf
        self._advance()
        heap = self._heap
        due = self._virtual + 1e-9
        while heap and heap[0][0] <= due:
            job = heappop(heap)[2]
            done = job.done
            if done is not None:
                self._leave(job)
                done(*job.args)
        if heap:
            self._arm()
