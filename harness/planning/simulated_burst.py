"""A burst of runs on the simulated platform, in simulated time."""

from dataclasses import dataclass, replace
from pathlib import Path

from harness import reading
from harness.model.errors import ConfigError
from harness.simulator.faults import inject
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


def package(path: Path | None) -> bytes:
    """The compiled pipeline (IR); none is the built-in training pipeline.

    Raises:
        ConfigError: the file can't be read.
    """
    from harness.targets import kfp

    if path is None:
        return kfp.EXAMPLE.read_bytes()
    try:
        return reading.read_bytes(path)
    except OSError as error:
        raise ConfigError(f"the pipeline {path} can't be read: {error.strerror}", "give its compiled YAML") from error


def with_nodes(profile: Profile, nodes: int) -> Profile:
    """The profile with exactly `nodes` machines for steps, all ready from the start, and no autoscaler.

    Raises:
        ConfigError: the profile has no pool without taints.
    """
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


def burst(profile: Profile, pipeline: bytes, runs: int, seed: int) -> SimulatedBurst:
    """Start `runs` at once on an idle platform and simulate until all have ended.

    Raises:
        ConfigError: the pipeline can't run on this platform, or runs are unfinished after two simulated weeks.
    """
    platform = Platform(profile, seed)
    for fault in profile.faults:
        inject(platform, fault)
    server, loop = platform.server, platform.loop
    uploaded = server.catalogue.create_pipeline(pipeline.replace(b"enableCache: true", b"enableCache: false"))
    version = server.catalogue.versions_of(uploaded.id)[0]
    started = [server.prepare_run(f"run-{k}", "", version, {}, by_reference=True) for k in range(runs)]
    rejected: list[RpcError] = []
    for run in started:
        server.start_run(run, lambda answer: rejected.append(answer) if isinstance(answer, RpcError) else None)
    while sum(run.state in OVER for run in started) + len(rejected) < runs:
        if loop.now > _LONGEST_S:
            raise ConfigError(
                f"{runs} runs have not finished after two simulated weeks", "check that a step fits the profile's nodes"
            )
        loop.run(loop.now + _SLICE_S)
    ends = [run.finished for run in started if run.finished is not None]
    return SimulatedBurst(runs, max(ends, default=0.0), tuple(ends), sum(run.state == SUCCEEDED for run in started))
