"""The settings of a simulated installation of hetida designer, part of those of a platform."""

from dataclasses import dataclass
from typing import Annotated

from harness.simulator.engine.distributions import Amount, Lognormal
from harness.simulator.profile.bounds import Count, DurationAmount, OneOf, Seconds, Share, SomeCores, SomeSeconds

# Default durations of a hetida designer execution.
_LOADING = Amount(Lognormal(0.15, 0.4))
_OPERATING = Amount(Lognormal(0.4, 1.2))
_SENDING = Amount(Lognormal(0.1, 0.3))


@dataclass(frozen=True, slots=True)
class Execution:
    """Behaviour of the hetida designer executions whose transformation's name matches `match` (a shell pattern)."""

    match: str = "*"
    load: DurationAmount = _LOADING  # of one input from an idle adapter
    compute: DurationAmount = _OPERATING  # seconds of one core
    send: DurationAmount = _SENDING  # of one output to an idle adapter
    cores: SomeCores = 1.0  # used by the operators; more than 1 means that they release the GIL
    operators: Count = 1  # between two, the worker's event loop serves other executions
    failing: Share = 0.0  # share of executions whose operator raises


@dataclass(frozen=True, slots=True)
class DataAdapter:
    """An adapter and the database behind it."""

    id: str
    capacity: int = 0  # requests served at once, the others queue; 0 is no limit
    error_rate: Share = 0.0  # share of requests answered with an error


@dataclass(frozen=True, slots=True)
class Runtime:
    """The runtime service of hetida designer: replicas on nodes, worker processes in each replica."""

    nodes: Count = 3
    cores: SomeCores = 4.0  # per node, shared by its replicas
    replicas: Count = 3
    workers: Count = 4  # per replica (gunicorn's MAX_WORKERS, WORKERS_PER_CORE)
    # Between replicas: random (kube-proxy), round-robin, least-connections (nginx, IPVS).
    balancing: Annotated[str, OneOf(("random", "round-robin", "least-connections"))] = "random"
    names_replicas: bool = True  # the balancer adds X-Upstream-Addr to responses
    parse_s: Seconds = 0.004  # to read a request
    timeout_s: SomeSeconds = 900.0  # gunicorn's TIMEOUT: a worker blocked for longer is killed
    boot_s: Seconds = 6.0  # of a new worker process


@dataclass(frozen=True, slots=True)
class Backend:
    """Settings of hetida designer's backend service."""

    workers: Count = 4
    prepare_s: Seconds = 0.03  # from a request to the call of the runtime


RAISED, LOADING_FAILED, SENDING_FAILED = FAILURES = ("raised", "loading", "sending")  # how executions fail


@dataclass(frozen=True, slots=True)
class MeasuredExecutions:
    """What a recorded test showed of its executions, in the order of their arrivals; each has as many values.

    It takes the place of the durations and failures of `Execution`, and, where names are known, of the balancer's
    choices.
    """

    load: tuple[Seconds, ...]  # of all inputs together, without interruption
    compute: tuple[Seconds, ...]  # of one core
    send: tuple[Seconds, ...]  # of each output, without waiting for the worker
    failed: tuple[Annotated[str, OneOf(("", *FAILURES))], ...]  # "" where it succeeded
    replica: tuple[int, ...]  # -1 where the answer did not name it
    error_rate: Share = 0.0  # of the adapters, which explains their failures


@dataclass(frozen=True, slots=True)
class Hetida:
    """An installation of hetida designer."""

    runtime: Runtime = Runtime()
    backend: Backend = Backend()
    adapters: tuple[DataAdapter, ...] = (DataAdapter("plants"),)
    executions: tuple[Execution, ...] = (Execution(),)
    measured: MeasuredExecutions | None = None
