"""A worker process of the runtime: one event loop, which does one thing at a time.

Loading from an adapter and running an operator block the loop; sending does not. Between two steps of an execution
the loop serves whatever became ready first: loading for the next execution may come before computing for this one.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from math import inf

from harness.simulator.engine.events import EventLoop
from harness.simulator.engine.queues import Job as Share
from harness.simulator.engine.queues import ProcessorSharing
from harness.simulator.hetida.execution import COMPUTING, HANDLING, LOADING, SENDING, Ending, Job
from harness.simulator.profile import Runtime
from harness.simulator.profile.hetida import LOADING_FAILED, RAISED, SENDING_FAILED

Done = Callable[[], None]
Turn = Callable[[Done], None]  # blocks the event loop until it calls back
# Asks an adapter: (adapter, seconds at an idle adapter, callback with whether it succeeded).
Ask = Callable[[str, float, Callable[[bool], None]], None]


class Worker:
    """One worker process.

    `ask` reaches the adapters, `cpu` is the node's, and `freed` is called whenever the loop can take new connections.
    """

    def __init__(
        self, loop: EventLoop, settings: Runtime, cpu: ProcessorSharing, ask: Ask, freed: Callable[["Worker"], None]
    ) -> None:
        self._loop = loop
        self._settings = settings
        self._cpu = cpu
        self._ask = ask
        self._freed = freed
        self._ready: deque[Turn] = deque()
        self._life = 0  # how often the process was restarted
        self._driving = False
        self._blocked_since = 0.0
        self._watched = False
        self._computing: Share | None = None
        self._computed_s = 0.0  # core-seconds of finished work
        self.blocked = False
        self.open: dict[Job, None] = {}  # in the order of acceptance
        self.slowdown = 1.0

    @property
    def core_s(self) -> float:
        """Core-seconds used so far."""
        computing = self._computing
        under_way = 0.0 if computing is None or computing.done is None else self._cpu.work_of(computing)
        return self._computed_s + under_way

    def accept(self, job: Job) -> None:
        """Accept an execution: the loop parses its request first."""
        self.open[job] = None
        self._post(partial(self._parse, job))

    def probe(self, done: Done) -> None:
        """Answer a health probe as soon as the loop is free."""

        def turn(over: Done) -> None:
            done()
            over()

        self._post(turn)

    # --- the event loop -----------------------------------------------------------------------------------------

    def _post(self, turn: Turn) -> None:
        self._ready.append(turn)
        if not self.blocked:
            self._next()

    def _next(self) -> None:
        """Run what is ready until something blocks or nothing is left."""
        if self._driving:
            return  # called from a turn: the turns of a long queue must not nest
        self._driving = True
        while self._ready and not self.blocked:
            self.blocked = True
            self._blocked_since = self._loop.now
            self._watch(self._blocked_since)
            self._ready.popleft()(partial(self._turn_over, self._life))
        self._driving = False

    def _turn_over(self, life: int) -> None:
        if life != self._life:
            return  # of a process that was killed
        self.blocked = False
        self._freed(self)
        self._next()

    def _watch(self, since: float) -> None:
        if not self._watched:
            self._watched = True
            self._loop.at(since + self._settings.timeout_s, self._check)

    def _check(self) -> None:
        """Gunicorn kills a worker that is blocked for too long, with all of its requests."""
        self._watched = False
        if not self.blocked:
            return
        if self._loop.now - self._blocked_since < self._settings.timeout_s - 1e-9:
            self._watch(self._blocked_since)
            return
        self._life += 1
        self._ready.clear()
        if self._computing is not None:
            self._computed_s = self.core_s
            self._cpu.remove(self._computing)
        dead, self.open = list(self.open), {}
        self._blocked_since = inf
        self._loop.after(self._settings.boot_s, self._turn_over, self._life)
        for job in dead:
            job.end(Ending.RESET)

    # --- an execution -------------------------------------------------------------------------------------------

    def _alive(self, job: Job) -> bool:
        return job in self.open

    def _parse(self, job: Job, over: Done) -> None:
        job.began[HANDLING] = self._loop.now
        self._loop.after(self._settings.parse_s * self.slowdown, self._parsed, job, over)

    def _parsed(self, job: Job, over: Done) -> None:
        job.began[LOADING] = self._loop.now
        self._post(partial(self._load, job, 0))
        over()

    def _load(self, job: Job, index: int, over: Done) -> None:
        """Load one input after the other, the loop blocked; without inputs, end at once."""
        if index == len(job.work.loads):
            job.ended[LOADING] = self._loop.now
            self._post(partial(self._compute, job, 0))
            over()
            return

        def loaded(well: bool) -> None:
            if not self._alive(job):
                return
            if well and job.work.failure != LOADING_FAILED:
                self._load(job, index + 1, over)
            else:
                over()
                self._end(job, Ending.LOAD_FAILED)

        self._ask(*job.work.loads[index], loaded)

    def _compute(self, job: Job, operator: int, over: Done) -> None:
        job.began.setdefault(COMPUTING, self._loop.now)
        work = job.work
        alone_s = work.compute_s / work.operators / work.cores * self.slowdown
        self._computing = self._cpu.add(alone_s, work.cores, self._computed, job, operator + 1, alone_s, over)

    def _computed(self, job: Job, operators: int, alone_s: float, over: Done) -> None:
        self._computing = None
        self._computed_s += alone_s * job.work.cores
        if not self._alive(job):
            return
        if operators < job.work.operators:
            self._post(partial(self._compute, job, operators))
        else:
            job.ended[COMPUTING] = self._loop.now
            if job.work.failure == RAISED:
                self._end(job, Ending.RAISED)
            else:
                self._send(job)
        over()

    def _send(self, job: Job) -> None:
        """Send all outputs at once; the loop goes on meanwhile."""
        job.began[SENDING] = self._loop.now
        left = len(job.work.sends)
        if not left:
            self._sent(job, well=True)
        results: list[bool] = []

        def sent(well: bool) -> None:
            results.append(well)
            if len(results) == left and self._alive(job):
                self._post(partial(self._finish, job, all(results) and job.work.failure != SENDING_FAILED))

        for adapter, seconds in job.work.sends:
            self._ask(adapter, seconds, sent)

    def _finish(self, job: Job, well: bool, over: Done) -> None:
        self._sent(job, well=well)
        over()

    def _sent(self, job: Job, *, well: bool) -> None:
        job.ended[SENDING] = self._loop.now
        self._end(job, Ending.OK if well else Ending.SEND_FAILED)

    def _end(self, job: Job, ending: Ending) -> None:
        del self.open[job]
        job.ended[HANDLING] = self._loop.now
        job.end(ending)
