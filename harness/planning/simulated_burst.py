"""A burst of runs on the simulated platform, KFP or hetida designer, in simulated time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path

import orjson

from harness.model.errors import ConfigError
from harness.prepare.settings import Settings
from harness.simulator.cluster import Node, NullListener
from harness.simulator.cluster.shapes import Shape, admits, allocatable, labels_of, taints_of
from harness.simulator.faults import inject
from harness.simulator.hetida import Ending, Job, Service
from harness.simulator.hetida.requests import backend_request
from harness.simulator.kfp.errors import RpcError
from harness.simulator.kfp.packages import parse_package, reading
from harness.simulator.kfp.records import OVER, SUCCEEDED
from harness.simulator.platform import Platform
from harness.simulator.profile import Pool, Profile
from harness.simulator.workflows.graph import EXECUTOR, flatten

_FIX = "compile the pipeline with kfp 2; each of its inputs needs a default"
_SLICE_S = 60.0
_LONGEST_S = 14 * 86400.0


@dataclass(frozen=True, slots=True)
class SimulatedBurst:
    """The result of a burst of `runs`: seconds until the last one ended and of each run, and how many succeeded.

    `cost` is that of the nodes until then; none if the price of one is unknown.
    """

    runs: int
    duration_s: float
    run_s: tuple[float, ...]
    succeeded: int
    cost: float | None = None


class _Nodes(NullListener):
    """Knows every node that there was."""

    def __init__(self) -> None:
        self.all: dict[str, Node] = {}

    def node_changed(self, node: Node, reason: str = "", message: str = "") -> None:
        del reason, message
        self.all[node.name] = node

    def cost(self, until_s: float) -> float | None:
        total = 0.0
        for node in self.all.values():
            if node.pool.price is None:
                return None
            gone = until_s if node.gone is None else min(node.gone, until_s)
            total += max(0.0, gone - node.created) / 3600 * node.pool.price
        return total


def package(path: Path | None, profile: Profile | None = None, changes: Sequence[Settings] = ()) -> bytes:
    """The compiled pipeline (IR), or the transformation for a profile of hetida designer; none is the built-in one.

    `changes` are made to a pipeline.

    Raises:
        ConfigError: the file can't be read, or the pipeline can't be changed so.
    """
    from harness.targets import hetida, kfp
    from harness.targets.kfp.pipeline import read_pipeline

    if profile is not None and profile.hetida is not None:
        if changes:
            raise ConfigError("only pipelines of KFP can be prepared", "leave 'prepare' out")
        texts = {option.name: str(option.text(None)) for option in hetida.OPTIONS}
        return hetida.prepare({**texts, "transformation": str(path or "")}, simulated=True).package or b""
    return read_pipeline(path or kfp.EXAMPLE, changes, keep_caching=not changes).package


def with_nodes(profile: Profile, nodes: int, package: bytes, pool: str = "") -> Profile:
    """The profile with exactly `nodes` machines for the pipeline's steps, ready from the start, and no autoscaler.

    With a `pool`, that one has as many machines. Then the others and the autoscaler, which replaces evicted machines,
    stay, but other spot pools begin empty.
    Of hetida designer it is that many replicas of the runtime, with as many machines for each as the profile has.

    Raises:
        ConfigError: the profile has no pool that takes a step of the pipeline, or none called `pool`.
    """
    if pool:
        return _with_pool(profile, nodes, pool)
    if profile.hetida is not None:
        was = profile.hetida.runtime
        runtime = replace(was, replicas=nodes, nodes=ceil(nodes * was.nodes / was.replicas))
        return replace(profile, hetida=replace(profile.hetida, runtime=runtime))
    steps = steps_of(package)
    main = main_pool(profile, steps)
    others = [step for step in steps if not _takes(main, step)]

    def resized(pool: Pool) -> Pool:
        if pool is main:
            return replace(pool, initial=nodes, min=nodes, max=nodes)
        # Drivers tolerate no taint, and some steps may need another pool.
        if taints_of(main) or any(_takes(pool, step) for step in others):
            return replace(pool, initial=pool.initial or pool.max)
        return pool if pool.taints else replace(pool, initial=0, min=0, max=0)

    return replace(profile, pools=tuple(map(resized, profile.pools)), autoscaler=None)


def _with_pool(profile: Profile, nodes: int, pool: str) -> Profile:
    names = [] if profile.hetida is not None else [each.name for each in profile.pools]
    if pool not in names:
        raise ConfigError(
            f"the profile '{profile.name}' has no pool '{pool}' for steps", f"it has: {', '.join(names) or 'none'}"
        )
    sized = (
        replace(each, initial=nodes, min=nodes, max=nodes) if each.name == pool
        else replace(each, initial=0, min=0) if each.spot
        else each
        for each in profile.pools
    )  # fmt: skip
    return replace(profile, pools=tuple(sized))


def steps_of(package: bytes) -> list[Shape]:
    """The shapes of a compiled pipeline's steps.

    Raises:
        ConfigError: the pipeline can't be read.
    """
    try:
        spec, platform = parse_package(package)
        with reading():
            plans = flatten(spec, platform, {}, 1).plans
    except RpcError as error:
        raise ConfigError(f"the pipeline can't be read: {error.message}", _FIX) from error
    return [plan.container.shape for plan in plans if plan.role == EXECUTOR]


def main_pool(profile: Profile, steps: Sequence[Shape]) -> Pool:
    """The pool that takes most of the steps, by selectors, tolerations and requests; then the largest.

    Raises:
        ConfigError: none takes any.
    """

    def suits(pool: Pool) -> tuple[int, int, int]:
        taken = [step for step in steps if _takes(pool, step)]
        # Machines with GPUs are for the steps that need one, even if others could run there.
        return sum(bool(step.gpu) == bool(pool.gpu) for step in taken), len(taken), pool.max

    main = max(profile.pools, key=suits)
    if not any(_takes(main, step) for step in steps):
        raise ConfigError(
            f"no pool of the profile '{profile.name}' takes a step of the pipeline, by selectors, tolerations and size",
            "add one without taints, or with the labels and taints of the steps' pool",
        )
    return main


def _takes(pool: Pool, step: Shape) -> bool:
    enough = all(has >= wants for has, wants in zip(allocatable(pool), step[:3], strict=True))
    return enough and admits(labels_of(pool), taints_of(pool), step)


def burst(profile: Profile, package: bytes, runs: int, seed: int) -> SimulatedBurst:
    """Start `runs` at once on an idle platform and simulate until all have ended.

    Raises:
        ConfigError: the pipeline can't run on this platform, or runs are unfinished after two simulated weeks.
    """
    nodes = _Nodes()
    platform = Platform(profile, seed, nodes)
    for fault in profile.faults:
        inject(platform, fault)
    if platform.hetida is not None:
        return _executions(platform, platform.hetida, package, runs)
    server = platform.server
    try:
        uploaded = server.catalogue.create_pipeline(package.replace(b"enableCache: true", b"enableCache: false"))
        version = server.catalogue.versions_of(uploaded.id)[0]
        started = [server.prepare_run(f"run-{k}", "", version, {}, by_reference=True) for k in range(runs)]
    except RpcError as error:
        raise ConfigError(f"the simulated KFP refuses the pipeline: {error.message}", _FIX) from error
    rejected: list[RpcError] = []
    for run in started:
        server.start_run(run, lambda answer: rejected.append(answer) if isinstance(answer, RpcError) else None)
    _simulate(platform, runs, lambda: sum(run.state in OVER for run in started) + len(rejected))
    ends = [run.finished for run in started if run.finished is not None]
    last, succeeded = max(ends, default=0.0), sum(run.state == SUCCEEDED for run in started)
    return SimulatedBurst(runs, last, tuple(ends), succeeded, nodes.cost(last))


def _executions(platform: Platform, service: Service, package: bytes, runs: int) -> SimulatedBurst:
    request = backend_request({}, orjson.loads(package))
    ended: list[tuple[float, bool]] = []

    def end(job: Job) -> None:
        ended.append((platform.loop.now, job.ending is Ending.OK))

    for _ in range(runs):
        service.execute(service.work(request.name, request.sources(), request.sinks(), {}), end)
    _simulate(platform, runs, lambda: len(ended))
    ends = tuple(at_s for at_s, _ in ended)
    return SimulatedBurst(runs, max(ends, default=0.0), ends, sum(well for _, well in ended))


def _simulate(platform: Platform, runs: int, over: Callable[[], int]) -> None:
    loop = platform.loop
    while over() < runs:
        if loop.now > _LONGEST_S:
            raise ConfigError(
                f"{runs} runs have not finished after two simulated weeks", "check that a step fits the profile's nodes"
            )
        loop.run(loop.now + _SLICE_S)
