"""One installation: backend, load balancer, runtime replicas with workers on nodes, adapters."""

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from random import Random

from harness.model.errors import ConfigError
from harness.simulator.engine.events import EventLoop
from harness.simulator.engine.queues import MultiServerQueue, ProcessorSharing
from harness.simulator.hetida.execution import CALLING, FULL, PREPARING, Job, Work
from harness.simulator.hetida.worker import Done, Worker
from harness.simulator.profile import DataAdapter, Execution, Hetida, MeasuredExecutions, Runtime
from harness.simulator.profile.hetida import RAISED

BALANCING = ("random", "round-robin", "least-connections")


class Adapter:
    """An adapter with limited capacity; `slowdown` and `error_rate` can be changed while it runs."""

    def __init__(self, loop: EventLoop, settings: DataAdapter, random: Random) -> None:
        self._random = random
        self.servers = MultiServerQueue(loop, settings.capacity)
        self.error_rate = settings.error_rate
        self.slowdown = 1.0
        self.requests = 0
        self.errors = 0

    def ask(self, seconds: float, answered: Callable[[bool], None]) -> None:
        """Send one request that takes `seconds` at an idle adapter."""
        self.requests += 1
        self.servers.serve(seconds * self.slowdown, partial(self._answer, answered))

    def _answer(self, answered: Callable[[bool], None]) -> None:
        well = self._random.random() >= self.error_rate
        self.errors += not well
        answered(well)


class Replica:
    """A runtime container: workers that share one listening socket.

    The kernel gives a new connection to any worker whose event loop is free. While all loops are blocked, connections
    wait, and the first free loop takes all of them: gunicorn's "load balancing", which can leave a slow worker with
    work that others could do.
    """

    def __init__(self, index: int, workers: Sequence[Worker], random: Random) -> None:
        self.index = index
        self.workers = workers
        self._random = random
        self.backlog: deque[Callable[[Worker], None]] = deque()
        self.open = 0  # connections: waiting and running executions

    @property
    def core_s(self) -> float:
        """Core-seconds used so far."""
        return sum(worker.core_s for worker in self.workers)

    def connect(self, take: Callable[[Worker], None]) -> None:
        """Accept a connection: `take` is called with the worker that handles it."""
        listening = [worker for worker in self.workers if not worker.blocked]
        if listening:
            take(self._random.choice(listening))
        else:
            self.backlog.append(take)

    def freed(self, worker: Worker) -> None:
        """Give all waiting connections to a worker whose loop became free."""
        waiting, self.backlog = self.backlog, deque()
        for take in waiting:
            take(worker)


class Service:
    """hetida designer under an event loop; `execute` goes through the backend, `run` to the runtime directly."""

    def __init__(self, loop: EventLoop, settings: Hetida, stream: str, *, resampled: bool = False) -> None:
        if settings.runtime.balancing not in BALANCING:
            raise ConfigError(
                f"hetida.runtime.balancing: '{settings.runtime.balancing}' is not a balancing strategy",
                f"give one of: {', '.join(BALANCING)}",
            )
        self._loop = loop
        self.settings = settings
        self._balance = Random(f"{stream}/balancing")
        self._draw = Random(f"{stream}/executions")
        self.backend = MultiServerQueue(loop, settings.backend.workers)
        adapters = Random(f"{stream}/adapters")
        self.adapters = {adapter.id: Adapter(loop, adapter, adapters) for adapter in settings.adapters}
        if settings.measured is not None:  # which tells the failures
            for adapter in self.adapters.values():
                adapter.error_rate = 0.0
        self.cpus = [ProcessorSharing(loop, settings.runtime.cores) for _ in range(settings.runtime.nodes)]
        self.balancing = settings.runtime.balancing
        self.favoured = 0.0  # share of requests sent to the first replica regardless of the balancing
        self._turn = 0
        self._resampled = resampled  # draws from what was measured, in place of one execution after the other
        self._number = 0
        self.replicas = [self._replica(index, settings.runtime) for index in range(settings.runtime.replicas)]
        self.executed: Counter[tuple[int, int]] = Counter()  # by replica and worker

    def _replica(self, index: int, settings: Runtime) -> Replica:
        cpu = self.cpus[index % len(self.cpus)]
        workers: list[Worker] = []
        replica = Replica(index, workers, self._balance)
        workers.extend(Worker(self._loop, settings, cpu, self._ask, replica.freed) for _ in range(settings.workers))
        return replica

    def scale(self, replicas: int) -> None:
        """Distribute executions over this many replicas, at least one; a removed replica finishes its executions."""
        while len(self.replicas) < replicas:
            self.replicas.append(self._replica(len(self.replicas), self.settings.runtime))
        del self.replicas[max(1, replicas) :]

    def work(self, name: str, sources: Sequence[str], sinks: Sequence[str], values: Mapping[str, object]) -> Work:
        """Draw the work of one execution of `name`; `sources` and `sinks` are the adapters of its ports."""
        like = next((e for e in self.settings.executions if fnmatchcase(name, e.match)), Execution())
        cores, operators = max(like.cores, 0.01), max(1, like.operators)
        if self.settings.measured is not None:
            return self._measured(self.settings.measured, sources, sinks, cores, operators)
        return Work(
            loads=tuple((adapter, like.load.sample(self._draw, values)) for adapter in sources),
            compute_s=like.compute.sample(self._draw, values),
            sends=tuple((adapter, like.send.sample(self._draw, values)) for adapter in sinks),
            cores=cores,
            operators=operators,
            failure=RAISED if self._draw.random() < like.failing else "",
        )

    def _measured(
        self, measured: MeasuredExecutions, sources: Sequence[str], sinks: Sequence[str], cores: float, operators: int
    ) -> Work:
        count = len(measured.compute)
        place = self._draw.randrange(count) if self._resampled else self._number % count
        self._number += 1
        return Work(
            loads=tuple((adapter, measured.load[place] / len(sources)) for adapter in sources),
            compute_s=measured.compute[place],
            sends=tuple((adapter, measured.send[place]) for adapter in sinks),
            cores=cores,
            operators=operators,
            failure=self._failure(measured, measured.failed[place]),
            replica=-1 if self._resampled else measured.replica[place],
        )

    def _failure(self, measured: MeasuredExecutions, failure: str) -> str:
        """As recorded; where adapters fail less often now than they did, by chance also none."""
        if failure in {"", RAISED}:
            return failure
        rate = max((adapter.error_rate for adapter in self.settings.adapters), default=0.0)
        return failure if rate >= measured.error_rate or self._draw.random() * measured.error_rate < rate else ""

    def execute(self, work: Work, done: Callable[[Job], None]) -> Job:
        """Execute through the backend, which prepares the execution and waits for the runtime."""

        def ended(job: Job) -> None:
            job.ended[CALLING] = job.ended[FULL] = self._loop.now
            done(job)

        job = Job(work, ended)
        job.began[FULL] = job.began[PREPARING] = self._loop.now
        self.backend.serve(self.settings.backend.prepare_s, partial(self._call, job))
        return job

    def run(self, work: Work, done: Callable[[Job], None]) -> Job:
        """Execute at the runtime directly; the balancer chooses a replica."""
        job = Job(work, done)
        self._connect(job)
        return job

    def probe(self, done: Done) -> None:
        """Send a health probe to the runtime: like every request it waits for a worker's event loop."""
        self._chosen().connect(lambda worker: worker.probe(done))

    def _call(self, job: Job) -> None:
        job.ended[PREPARING] = job.began[CALLING] = self._loop.now
        self._connect(job)

    def _connect(self, job: Job) -> None:
        replica, notify = self._chosen(job.work.replica), job.done
        job.replica = replica.index
        replica.open += 1

        def ended(over: Job) -> None:
            replica.open -= 1
            notify(over)

        job.done = ended
        replica.connect(partial(self._accept, replica, job))

    def _accept(self, replica: Replica, job: Job, worker: Worker) -> None:
        job.worker = replica.workers.index(worker)
        self.executed[replica.index, job.worker] += 1
        worker.accept(job)

    def _chosen(self, known: int = -1) -> Replica:
        if 0 <= known < len(self.replicas):
            return self.replicas[known]
        if self.favoured and self._balance.random() < self.favoured:
            return self.replicas[0]
        if self.balancing == "round-robin":
            self._turn += 1
            return self.replicas[self._turn % len(self.replicas)]
        if self.balancing == "least-connections":
            fewest = min(replica.open for replica in self.replicas)
            return self._balance.choice([replica for replica in self.replicas if replica.open == fewest])
        return self._balance.choice(self.replicas)

    def _ask(self, adapter: str, seconds: float, answered: Callable[[bool], None]) -> None:
        self.adapters[adapter].ask(seconds, answered)


# --- the CPU that each replica of the runtime used, window by window, as metrics-server reports it -------------------


WINDOW_S = 15.0  # metrics-server's resolution by default


class ReplicaUsage:
    """Measures a service's replicas at the end of each window, for as long as the event loop runs."""

    def __init__(self, loop: EventLoop, service: Service, window_s: float = WINDOW_S) -> None:
        self._loop = loop
        self._service = service
        self._window_s = window_s
        self._before: dict[int, float] = {}
        self._samples: list[tuple[float, int, float]] = []
        loop.after(window_s, self._measure)

    def samples(self, until: float) -> Iterator[tuple[float, int, float]]:
        """(simulated seconds, index of the replica, cores used on average since the last sample)."""
        return (sample for sample in self._samples if sample[0] <= until + self._window_s)

    def _measure(self) -> None:
        now = self._loop.now
        for replica in self._service.replicas:
            used = replica.core_s - self._before.get(replica.index, 0.0)
            self._before[replica.index] = replica.core_s
            self._samples.append((now, replica.index, used / self._window_s))
        self._loop.after(self._window_s, self._measure)
