"""A burst of runs on the simulated platform, KFP or hetida designer, in simulated time."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path

import orjson

from harness import reading
from harness.model.errors import ConfigError
from harness.simulator.faults import inject
from harness.simulator.hetida import Ending, Job, Service
from harness.simulator.hetida.requests import backend_request
from harness.simulator.kfp.errors import RpcError
from harness.simulator.kfp.records import OVER, SUCCEEDED
from harness.simulator.platform import Platform
from harness.simulator.profile import Profile

_SLICE_S = 60.0
_LONGEST_S = 14 * 86400.0


@dataclass(frozen=True, slots=True)
class SimulatedBurst:
    """The result of a burst of `runs`: seconds until the last one ended and of each run, and how many succeeded."""

    runs: int
    duration_s: float
    run_s: tuple[float, ...]
    succeeded: int


def package(path: Path | None, profile: Profile | None = None) -> bytes:
    """The compiled pipeline (IR), or the transformation for a profile of hetida designer; none is the built-in one.

    Raises:
        ConfigError: the file can't be read.
    """
    from harness.targets import hetida, kfp

    if profile is not None and profile.hetida is not None:
        texts = {option.name: str(option.text(None)) for option in hetida.OPTIONS}
        return hetida.prepare({**texts, "transformation": str(path or "")}, simulated=True).package or b""
    if path is None:
        return kfp.EXAMPLE.read_bytes()
    try:
        return reading.read_bytes(path)
    except OSError as error:
        raise ConfigError(f"the pipeline {path} can't be read: {error.strerror}", "give its compiled YAML") from error


def with_nodes(profile: Profile, nodes: int) -> Profile:
    """The profile with exactly `nodes` machines for steps, all ready from the start, and no autoscaler.

    Of hetida designer it is that many replicas of the runtime, with as many machines for each as the profile has.

    Raises:
        ConfigError: the profile has no pool without taints.
    """
    if profile.hetida is not None:
        was = profile.hetida.runtime
        runtime = replace(was, replicas=nodes, nodes=ceil(nodes * was.nodes / was.replicas))
        return replace(profile, hetida=replace(profile.hetida, runtime=runtime))
    pools = [pool for pool in profile.pools if not pool.taints]
    if not pools:
        raise ConfigError(f"the profile '{profile.name}' has no pool without taints", "add one for the steps")
    main = max(pools, key=lambda pool: pool.max)
    resized = tuple(
        replace(pool, initial=nodes, min=nodes, max=nodes) if pool is main
        else pool if pool.taints
        else replace(pool, initial=0, min=0, max=0)
        for pool in profile.pools
    )  # fmt: skip
    return replace(profile, pools=resized, autoscaler=None)


def burst(profile: Profile, package: bytes, runs: int, seed: int) -> SimulatedBurst:
    """Start `runs` at once on an idle platform and simulate until all have ended.

    Raises:
        ConfigError: the pipeline can't run on this platform, or runs are unfinished after two simulated weeks.
    """
    platform = Platform(profile, seed)
    for fault in profile.faults:
        inject(platform, fault)
    if platform.hetida is not None:
        return _executions(platform, platform.hetida, package, runs)
    server = platform.server
    uploaded = server.catalogue.create_pipeline(package.replace(b"enableCache: true", b"enableCache: false"))
    version = server.catalogue.versions_of(uploaded.id)[0]
    started = [server.prepare_run(f"run-{k}", "", version, {}, by_reference=True) for k in range(runs)]
    rejected: list[RpcError] = []
    for run in started:
        server.start_run(run, lambda answer: rejected.append(answer) if isinstance(answer, RpcError) else None)
    _simulate(platform, runs, lambda: sum(run.state in OVER for run in started) + len(rejected))
    ends = [run.finished for run in started if run.finished is not None]
    return SimulatedBurst(runs, max(ends, default=0.0), tuple(ends), sum(run.state == SUCCEEDED for run in started))


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
