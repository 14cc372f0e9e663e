"""Many simulations at a time: on every core of this machine, or on a Dask cluster of the user's.

Results come in the order in which they were asked for, so that an outcome is the same whatever the number of workers.
"""

import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

from harness.model.errors import ConfigError, PipeswarmError, TargetUnreachableError
from harness.pool_worker import follow_parent

A = TypeVar("A", bound=Hashable)
R = TypeVar("R")

_ALONE_S = 2.0  # short sweeps end sooner than other processes would have started
_CONNECT_S = 10
_MODULES = ["harness.planning.experiment_tests", "harness.planning.simulated_capacity", "harness.planning.what_if"]


class SweepProgress(Protocol):
    """Gets the progress of the simulations."""

    def expect(self, more: int) -> None:
        """So many simulations more than expected before, or fewer."""

    def advance(self) -> None:
        """One more is over."""


class Untold:
    """Ignores the progress."""

    def expect(self, more: int) -> None:
        """See `SweepProgress`."""

    def advance(self) -> None:
        """See `SweepProgress`."""


class Sweep(Generic[A, R]):
    """A pure function of many arguments, computed by an executor that may work on several.

    Args:
        function: can be pickled, as its arguments and results can.
        workers: what works on it.
    """

    def __init__(self, function: Callable[[A], R], workers: "Workers | DaskWorkers") -> None:
        self._function = function
        self._workers = workers
        self._begun: dict[A, Future[R]] = {}

    @property
    def width(self) -> int:
        """How many arguments it can work on at present."""
        return self._workers.count

    def first(self, arguments: Sequence[A]) -> R:
        """The result for the first argument; work on the others begins, as they may be asked for next.

        Raises:
            PipeswarmError: a worker died, or the cluster can't be reached any more.
            Exception: what the function raises.
        """
        result = self._first(arguments)
        self._workers.progress.advance()
        return result

    def map(self, arguments: Sequence[A]) -> list[R]:
        """The results for all arguments, in their order; raises as `first` does."""
        return [self.first(arguments[place : place + 2 * self.width]) for place in range(len(arguments))]

    def _first(self, arguments: Sequence[A]) -> R:
        if self._workers.alone and arguments[0] not in self._begun:
            return self._function(arguments[0])
        executor = self._workers.executor()
        for argument in arguments:
            if argument not in self._begun:
                self._begun[argument] = executor.submit(self._function, argument)
        return self._workers.result(self._begun.pop(arguments[0]))


class Workers:
    """Processes of this machine; `DaskWorkers` are those of a cluster.

    Args:
        most: how many work at the same time; 1 is this process alone.
        clock: monotonic seconds.

    Attributes:
        progress: called for every result.
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.progress: SweepProgress = Untold()
        self._most = most
        self._clock = clock
        self._alone_until_s = clock() + _ALONE_S
        self._pool: ProcessPoolExecutor | None = None

    @property
    def count(self) -> int:
        """How many work at the same time at present: at first this process alone."""
        return 1 if self._clock() < self._alone_until_s else self._most

    @property
    def alone(self) -> bool:
        """This process computes what is asked for."""
        return self.count == 1

    def executor(self) -> Executor:
        """What takes the work."""
        if self._pool is None:
            preloads = "forkserver" in multiprocessing.get_all_start_methods()
            context = multiprocessing.get_context("forkserver" if preloads else "spawn")
            if preloads:
                context.set_forkserver_preload(_MODULES)
            self._pool = ProcessPoolExecutor(self._most, context, initializer=follow_parent)
        return self._pool

    def result(self, begun: "Future[R]") -> R:
        """What was computed.

        Raises:
            PipeswarmError: the process that worked on it died.
        """
        try:
            return begun.result()
        except BrokenProcessPool as error:
            raise PipeswarmError(
                "a process that simulated was killed", "if memory was short, use fewer: --jobs 1"
            ) from error

    def close(self) -> None:
        """End all work, also what has begun."""
        if self._pool is not None:
            processes = list(multiprocessing.active_children())
            self._pool.shutdown(wait=False, cancel_futures=True)
            for process in processes:
                process.terminate()
            for process in processes:
                process.join()


class DaskWorkers:
    """The workers of a Dask scheduler, which need this package; one that dies has its work done by others.

    Attributes:
        address: of the scheduler.
        progress: called for every result.
        alone: False; the cluster computes also while it has one thread, or none.

    Raises:
        ConfigError: Dask is not installed, or the address can't be one.
        TargetUnreachableError: no scheduler answers there, or it has no workers.
    """

    alone = False

    def __init__(self, address: str) -> None:
        try:
            import distributed
        except ImportError as error:
            raise ConfigError("--scheduler needs Dask", "pip install 'pipeswarm[dask]'") from error
        try:
            self._client = distributed.Client(address, timeout=_CONNECT_S, set_as_default=False)
        except (OSError, TimeoutError) as error:
            raise TargetUnreachableError(
                f"no Dask scheduler answers at {address}", "start one: dask scheduler; dask worker tcp://…"
            ) from error
        except ValueError as error:
            raise ConfigError(f"--scheduler '{address}': {error}", "write it as tcp://host:8786") from error
        self.address = address
        self.progress: SweepProgress = Untold()
        self._executor = self._client.get_executor(pure=False)

    @property
    def count(self) -> int:
        """Threads of all workers."""
        threads: int = sum(self._client.nthreads().values())
        return max(threads, 1)

    def executor(self) -> Executor:
        """What takes the work."""
        executor: Executor = self._executor
        return executor

    def result(self, begun: "Future[R]") -> R:
        """What was computed.

        Raises:
            PipeswarmError: every worker that tried died, the scheduler ended, or a worker lacks this package.
        """
        from distributed import KilledWorker

        hint = f"see the log of the scheduler at {self.address}"
        try:
            return begun.result()
        except KilledWorker as error:
            raise PipeswarmError("several Dask workers died of one simulation", hint) from error
        except CancelledError as error:
            raise TargetUnreachableError(f"the Dask scheduler at {self.address} has gone away", hint) from error
        except ModuleNotFoundError as error:
            raise ConfigError(
                f"a Dask worker lacks the package '{error.name}'", "install the same pipeswarm on every worker"
            ) from error

    def close(self) -> None:
        """End all work, also what has begun."""
        self._executor.shutdown(wait=False)
        self._client.close(timeout=_CONNECT_S)


@contextmanager
def open_workers(
    jobs: int, scheduler: str = "", progress: SweepProgress | None = None
) -> Iterator[Workers | DaskWorkers]:
    """What sweeps run on; closed at the end, at Ctrl-C at once.

    Args:
        jobs: processes of this machine.
        scheduler: the address of a Dask scheduler whose workers are used instead.
        progress: called for every result.

    Raises:
        PipeswarmError: as `DaskWorkers`.
    """
    workers = DaskWorkers(scheduler) if scheduler else Workers(jobs)
    workers.progress = progress or workers.progress
    try:
        yield workers
    finally:
        workers.close()


def usable_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
