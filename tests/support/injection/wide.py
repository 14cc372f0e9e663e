"""Random platforms, loads, sizes and observation gaps, on which no threshold was tuned."""

from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

from harness.simulator.faults import FAULTS
from harness.simulator.hetida.faults import FAULTS as OF_HETIDA
from harness.simulator.profile.file import load_profile
from tests.support.injection.case import Case
from tests.support.injection.packages import PACKAGE, fan_out, on_gpus, single, tolerating_spot
from tests.support.injection.seen import RUNS_ONLY, SOURCES

_PROFILES = Path(__file__).with_name("profiles")
_SIZES = (20, 40, 100, 100, 200, 500)
_SCHEDULES = ("constant", "spread", "poisson", "ramp", "burst")
_STEPS_S = (None, None, 3.0, 15.0, 60.0, 240.0)
_BUSY = (0.2, 0.4, 0.6, 0.8)  # utilisation of the machines
_WITHOUT = (*(frozenset({name}) for name in SOURCES), RUNS_ONLY)
_PLATFORMS: Mapping[str, tuple[Callable[[], bytes], ...]] = {
    "demo": (lambda: PACKAGE, single, fan_out),
    "aks-20-nodes": (lambda: PACKAGE, single, fan_out),
    "kfp-default-install": (lambda: PACKAGE, single, fan_out),
    "spot-pool": (tolerating_spot,),
    "gpu-pool": (on_gpus, lambda: PACKAGE),
    str(_PROFILES / "own-cluster.yaml"): (lambda: PACKAGE, fan_out),
    str(_PROFILES / "quick-cloud.yaml"): (lambda: PACKAGE, single, fan_out),
}
_OF_HETIDA = (
    "hetida-pattern-1", "hetida-pattern-2", "hetida-pattern-3", "hetida-least-connections",
    str(_PROFILES / "hetida-small.yaml"),
)  # fmt: skip
_AUTOSCALED = frozenset({"autoscaler-slow", "autoscaler-at-max", "nodes-exhausted"})
# Faults that only show when the load exceeds the platform's capacity.
_UNDER_LOAD = _AUTOSCALED | {"api-throttled", "controller-backlog", "parallelism-cap", "quota"}
_CORES_OF_A_RUN, _STEPS_OF_A_RUN = 0.6, 3  # about, of the pipelines here


def draw(fault: str, number: int) -> tuple[Case, float]:
    """The `number`-th test of a fault ("" for none) and its strength; deterministic."""
    random = Random(f"{fault}/{number}")
    if fault in OF_HETIDA or (not fault and random.random() < 0.2):
        return _hetida(fault, random), random.choice((0.5, 1.0, 2.0))
    profiles = [name for name in _PLATFORMS if fault not in _AUTOSCALED or load_profile(name).autoscaler is not None]
    profile = "spot-pool" if fault == "spot-evictions" and random.random() < 0.5 else random.choice(profiles)
    runs, step_s = random.choice(_SIZES), random.choice(_STEPS_S)
    over_s = runs * _spacing_s(profile, step_s) / random.choice(_BUSY)
    return Case(
        faults=(f"{fault}@{random.choice((0.0, 0.1, 0.3)) * over_s:.0f}s",) if fault else (),
        runs=runs,
        over_s=over_s,
        profile=profile,
        schedule="burst" if fault in _UNDER_LOAD and random.random() < 0.5 else random.choice(_SCHEDULES),
        step_s=step_s,
        package=random.choice(_PLATFORMS[profile])(),
        many=random.random() < 0.5,
        whole=random.random() < 0.5,
        without=random.choice(_WITHOUT) if random.random() < 0.3 else frozenset(),
        drain_s=random.choice((900.0, 6 * 3600.0)),
    ), random.choice((0.5, 1.0, 2.0))


def _spacing_s(profile: str, step_s: float | None) -> float:
    """Seconds between runs at which the steps would just fill the maximum number of machines."""
    platform = load_profile(profile)
    pools = [pool for pool in platform.pools if not pool.taints]
    cores = sum(pool.cpu - 1 for pool in pools for _ in range(max(pool.initial, pool.max)))
    length_s = step_s or sum(step.duration.distribution.mean for step in platform.steps) / len(platform.steps)
    return _CORES_OF_A_RUN * _STEPS_OF_A_RUN * (length_s + 5) / cores


def _hetida(fault: str, random: Random) -> Case:
    profile = random.choice(_OF_HETIDA)
    hetida = load_profile(profile).hetida
    assert hetida is not None
    (like,) = hetida.executions
    workers = min(hetida.runtime.replicas * hetida.runtime.workers, hetida.runtime.nodes * hetida.runtime.cores)
    runs = random.choice((50, 100, 300, 600))
    mean_s = sum(amount.distribution.mean for amount in (like.load, like.compute, like.send))
    over_s = runs * mean_s / workers / random.choice(_BUSY)
    return Case(
        faults=(f"{fault}@{random.choice((0.0, 0.1, 0.3)) * over_s:.0f}s",) if fault else (),
        runs=runs, over_s=over_s, profile=profile, schedule=random.choice(_SCHEDULES),
    )  # fmt: skip


def of_all() -> tuple[str, ...]:
    """The names of all faults that can be injected."""
    return (*FAULTS, *OF_HETIDA)
