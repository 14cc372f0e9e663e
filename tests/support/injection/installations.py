"""The distribution of installations that the detectors' benchmark draws from.

Each number gives one test: a platform, a pipeline, a load, its faults and what is observed. The shares below are a
written guess at what is installed, not a survey; no threshold of a detector may be tuned to single draws.

* **Platform** 3 of 4 Kubeflow Pipelines, 1 of 4 hetida designer.
* **Nodes** machines of 2 to 32 cores with 2 to 8 GiB a core; half with an autoscaler (a fifth to a half of the maximum
  at the start; a node in one to five minutes). In 3 of 10 the steps have a tainted pool of their own and drivers run on
  the default pool; 1 of 5 has GPU machines for the heaviest step, 1 of 10 spot machines for the steps,
  which the autoscaler replaces.
* **Services** half with the defaults of API server, controller and agent, the others with higher limits; images of
  100 MiB to 4 GiB at 30 to 200 MiB/s; SeaweedFS or MinIO of 20 to 500 GiB at 100 MiB/s to 1 GiB/s.
* **Pipelines** chains of 1 to 6 steps, fans of 3 to 12 steps, loops of 8 to 30 iterations of which 4, 10 or all run at
  once; a typical step takes 2 s, 20 s, 2 min, 10 min or 1 h. Requests are 1 to 6 times what a step uses.
* **Load** 8 to 60 runs (fewer of large pipelines), constant, spread, Poisson, ramp or burst. Two thirds use 10 to
  70 % of the machines at their maximum, one third asks for 1.3 to 4 times as much as there is.
* **hetida** 1 to 8 replicas of 1 to 6 workers, any balancer, adapters with and without a limit; half name replicas.
* **Faults** none in 4 of 10, one in 4 of 10, two in 2 of 10, at the start or within the first third.
* **Observation** whole seconds in 7 of 10; everything in 7 of 10, else one source is missing, or all but runs; half
  do without Argo's metrics besides. Of hetida's replicas Kubernetes shows the workers in 2 of 3, and metrics-server
  their CPU use in half of these.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from random import Random

from harness.simulator.engine.distributions import Amount, Lognormal, fixed
from harness.simulator.faults import FAULTS
from harness.simulator.hetida.faults import FAULTS as OF_HETIDA
from harness.simulator.profile import (
    Agent,
    Api,
    ArtifactStore,
    Autoscaler,
    Controller,
    DataAdapter,
    Execution,
    Hetida,
    Kubelet,
    Pool,
    Profile,
    Runtime,
    Step,
    Taint,
)
from harness.simulator.profile.store_products import StoreProduct
from tests.support.injection.case import Case
from tests.support.injection.packages import Task, pipeline
from tests.support.injection.seen import RUNS_ONLY, SOURCES

_MI, _GI = 2**20, 2**30
_SCHEDULES = ("constant", "spread", "poisson", "ramp", "burst")
_STEPS_S = (2.0, 20.0, 120.0, 600.0, 3600.0)
_PODS = 400.0  # about, of a test: more only take longer to simulate
_OF_AUTOSCALER = frozenset({"autoscaler-slow", "autoscaler-at-max", "nodes-exhausted"})
_TAINT, _GPU_TAINT = Taint("dedicated", "steps"), Taint("sku", "gpu")
_SPOT_TAINT = Taint("kubernetes.azure.com/scalesetpriority", "spot")  # which every spot pool has
_OF_REPLICAS = (frozenset[str](), frozenset({"replica cpu"}), frozenset({"replicas"}))  # what is not observed
_LONGEST_S, _RETRIES_S, _TWO_DAYS_S = 6 * 3600.0, 900.0, 48 * 3600.0


@dataclass(frozen=True)
class Installation:
    """One drawn test: what `tests.support.injection.case.simulated` takes."""

    case: Case
    profile: Profile
    strength: float
    seed: int


def draw(seed: int, number: int) -> Installation:
    """The `number`-th test of a seed."""
    random = Random(f"{seed}/{number}")
    case, profile = (_hetida if random.random() < 0.25 else _kfp)(random)
    names = _faults(random, profile)
    at_s = [random.choice((0.0, 0.1, 0.3)) * case.over_s for _ in names]
    case = replace(case, faults=tuple(f"{name}@{at:.0f}s" for name, at in zip(names, at_s, strict=True)))
    strength, own_seed = random.choice((0.5, 1.0, 2.0)), random.randrange(2**31)
    if profile.hetida is not None:
        case = replace(case, without=random.choice(_OF_REPLICAS))
    elif Random(f"{seed}/{number}/metrics").random() < 0.5:
        case = replace(case, without=case.without | {"controller metrics"})
    return Installation(case, profile, strength, own_seed)


def _faults(random: Random, profile: Profile) -> Sequence[str]:
    possible = [*(OF_HETIDA if profile.hetida is not None else FAULTS)]
    if profile.hetida is None and profile.autoscaler is None:
        possible = [name for name in possible if name not in _OF_AUTOSCALER]
    if profile.hetida is None and not any(pool.spot for pool in profile.pools):
        possible.remove("spot-evictions")
    return random.sample(possible, random.choices((0, 1, 2), (4, 4, 2))[0])


def _between(random: Random, low: float, high: float) -> float:
    """Log-uniform."""
    return float(low * (high / low) ** random.random())


# --- Kubeflow Pipelines ---------------------------------------------------------------------------------------------


def _kfp(random: Random) -> tuple[Case, Profile]:
    step_s = random.choices(_STEPS_S, (3, 3, 3, 2, 1))[0]
    tasks = _tasks(random)
    steps = tuple(_step(random, task, step_s) for task in tasks)
    if random.random() < 0.75:  # with limits, the requests or twice as much
        tasks = [
            replace(t, cpu=max(step.requests_cpu, 1.0) * random.choice((1, 2)), memory=2 * step.requests_memory)
            for t, step in zip(tasks, steps, strict=True)
        ]
    on_gpu = random.random() < 0.2
    if on_gpu:
        heaviest = max(range(len(tasks)), key=lambda k: steps[k].duration.distribution.mean)
        tasks[heaviest] = replace(tasks[heaviest], gpus=1)
    pools, tolerations = _pools(random, steps, gpus=on_gpu)
    scaled = any(pool.max > pool.initial for pool in pools)
    profile = Profile(
        "drawn", "", pools,
        kubelet=Kubelet(image_bytes=_between(random, 100 * _MI, 4 * _GI),
                        pull_bytes_per_s=_between(random, 30 * _MI, 200 * _MI)),
        autoscaler=_autoscaler(random) if scaled else None,
        api=random.choice((Api(), Api(qps=50.0, burst=100))),
        controller=random.choice((
            Controller(), Controller(), Controller(qps=50.0, burst=75, requeue_s=2.0),
            Controller(qps=100.0, burst=150, requeue_s=1.0, operation_s=0.02),
        )),
        agent=random.choice((Agent(), Agent(workers=4))),
        store=ArtifactStore(
            product=random.choice((*StoreProduct,)), capacity=_between(random, 20 * _GI, 500 * _GI),
            bytes_per_s=_between(random, 100 * _MI, _GI),
        ),
        steps=steps,
    )  # fmt: skip
    spacing_s = max(_spacing_s(tasks, steps, pools), 0.05)
    pods = sum(task.times * (2 if task.times == 1 else 3) for task in tasks) + 1
    runs = max(8, min(round(_between(random, 12, 60)), int(_PODS / pods)))
    over_s = min(runs * spacing_s / _utilisation(random), _LONGEST_S)
    path_s = sum(step.duration.distribution.mean * ceil(t.times / (t.at_once or t.times)) + 20
                 for t, step in zip(tasks, steps, strict=True))  # fmt: skip
    # Most wait for the last runs, nobody for weeks; some give up after about the time that a run takes.
    patience_s = 20 * (over_s + runs * spacing_s + path_s) if random.random() < 0.8 else 2 * path_s
    return Case(
        runs=runs, over_s=over_s, profile="drawn", schedule=random.choice(_SCHEDULES),
        package=pipeline(tasks, tolerations), whole=random.random() < 0.7, without=_without(random),
        drain_s=max(_RETRIES_S, min(patience_s, _TWO_DAYS_S)),
    ), profile  # fmt: skip


def _tasks(random: Random) -> list[Task]:
    """A chain, a fan, or a loop between a first and a last step."""
    match random.choices(("chain", "fan", "loop"), (5, 2, 3))[0]:
        case "chain":
            names = [f"step-{k}" for k in range(random.randint(1, 6))]
            return [Task(name, (names[k - 1],) if k else ()) for k, name in enumerate(names)]
        case "fan":
            sides = [Task(f"side-{k}", ("first",)) for k in range(random.randint(3, 12))]
            return [Task("first"), *sides, Task("last", tuple(side.name for side in sides))]
        case _:
            loop = Task("each", ("first",), times=random.randint(8, 30), at_once=random.choice((0, 4, 10)))
            return [Task("first"), loop, Task("last", ("for-loop-each",))]


def _step(random: Random, task: Task, typical_s: float) -> Step:
    median_s = typical_s * _between(random, 0.4, 2.5)
    cpu, memory = _between(random, 0.1, 0.9), _between(random, 100 * _MI, 900 * _MI)
    too_much = random.choice((1.0, 1.2, 2.0, 6.0))
    size = _between(random, 0.2 * _MI, 300 * _MI)
    return Step(
        match=task.name, duration=Amount(Lognormal(median_s, 2 * median_s)), output=Amount(Lognormal(size, 3 * size)),
        cpu=fixed(cpu), memory=fixed(memory), requests_cpu=round(cpu * too_much, 2),
        requests_memory=round(memory * random.choice((1.2, 2.0))),
    )  # fmt: skip


def _pools(random: Random, steps: Sequence[Step], *, gpus: bool) -> tuple[tuple[Pool, ...], list[Mapping[str, str]]]:
    """The node pools, and what the steps have to tolerate."""
    scaled = random.random() < 0.5
    spot = scaled and random.random() < 0.2
    dedicated = spot or random.random() < 0.3
    largest = max(step.requests_cpu for step in steps)
    cores = random.choice([each for each in (2, 4, 8, 16, 32) if each - 0.2 >= largest])
    most = max(1, round(_between(random, 8, 200) / cores))
    first = max(1, round(most * random.choice((0.2, 0.5)))) if scaled else most
    memory = cores * max(random.choice((2, 4, 8)), 8 if cores == 2 else 2) * _GI
    taints = [_SPOT_TAINT] if spot else [_TAINT] if dedicated else []
    own = Pool(
        "steps" if dedicated else "default", cores, memory, initial=first, min=first, max=most, price=0.05 * cores,
        taints=() if spot else tuple(taints), spot=spot, evictions_per_hour=0.05 if spot else 0.0,
    )  # fmt: skip
    pools = [Pool("default", 4.0, initial=3, min=3, max=3, price=0.2), own] if dedicated else [own]
    if gpus:
        count = random.randint(1, 6)
        least = 0 if scaled and random.random() < 0.5 else count
        pools.append(
            Pool("gpu", max(8.0, cores), max(64 * _GI, memory), gpu=1, initial=least, min=least, max=count, price=3.0,
                 taints=(_GPU_TAINT,))
        )  # fmt: skip
        taints.append(_GPU_TAINT)
    return tuple(pools), [{"key": t.key, "operator": "Equal", "value": t.value, "effect": t.effect} for t in taints]


def _autoscaler(random: Random) -> Autoscaler:
    median_s = _between(random, 60, 300)
    return Autoscaler(provisioning=Amount(Lognormal(median_s, 1.8 * median_s)), failing=random.choice((0.0, 0.0, 0.1)))


def _spacing_s(tasks: Sequence[Task], steps: Sequence[Step], pools: Sequence[Pool]) -> float:
    """Seconds between runs at which the scarcest resource of the steps' machines would just be used up."""
    # The steps may tolerate the GPU pool, too; its cores are a reserve that is not counted.
    own = [
        pool for pool in pools if not pool.gpu and (pool.name == "steps" or len(pools) == 1 or not _dedicated(pools))
    ]
    cores = sum(pool.max * (pool.cpu - 0.3) for pool in own)
    memory = sum(pool.max * (pool.memory - 2.5 * _GI) for pool in own)
    gpus = sum(pool.max * pool.gpu for pool in pools)
    used = [(task, step, task.times * (step.duration.distribution.mean + 6))
            for task, step in zip(tasks, steps, strict=True)]  # fmt: skip
    return max(
        sum(step.requests_cpu * took for _, step, took in used) / cores,
        sum(step.requests_memory * took for _, step, took in used) / memory,
        sum(task.gpus * took for task, _, took in used) / gpus if gpus else 0.0,
    )


def _dedicated(pools: Sequence[Pool]) -> bool:
    return any(pool.name == "steps" for pool in pools)


def _utilisation(random: Random) -> float:
    return _between(random, 0.1, 0.7) if random.random() < 2 / 3 else _between(random, 1.3, 4.0)


def _without(random: Random) -> frozenset[str]:
    if random.random() < 0.7:
        return frozenset()
    drawn = (name for name in SOURCES if name != "database")  # of which the fast simulation records nothing
    return random.choice((*(frozenset({name}) for name in drawn), RUNS_ONLY))


# --- hetida designer ------------------------------------------------------------------------------------------------


def _hetida(random: Random) -> tuple[Case, Profile]:
    replicas, workers = random.randint(1, 8), random.choice((1, 2, 4, 6))
    nodes = random.randint(1, replicas)
    runtime = Runtime(
        nodes, random.choice((2.0, 4.0, 8.0)), replicas, workers,
        balancing=random.choice(("random", "round-robin", "least-connections")), names_replicas=random.random() < 0.5,
    )  # fmt: skip
    load, compute, send = (Lognormal(m, 2.5 * m) for m in (
        _between(random, 0.03, 0.6), _between(random, 0.05, 4.0), _between(random, 0.02, 0.3)
    ))  # fmt: skip
    like = Execution(load=Amount(load), compute=Amount(compute), send=Amount(send))
    adapters = (DataAdapter("plants", capacity=random.choice((0, 0, 8, 24, 60))),)
    profile = Profile(
        "hetida-drawn", "", (Pool("runtime", max(runtime.cores, 2.0), initial=nodes, min=nodes, max=nodes),),
        hetida=Hetida(runtime=runtime, adapters=adapters, executions=(like,)),
    )  # fmt: skip
    parallel = min(replicas * workers, nodes * runtime.cores)
    runs = round(_between(random, 40, 200))
    over_s = runs * (load.mean + compute.mean + send.mean) / parallel / _utilisation(random)
    return Case(
        runs=runs, over_s=over_s, profile="hetida-drawn", schedule=random.choice(_SCHEDULES),
        drain_s=_RETRIES_S + 20 * over_s,
    ), profile  # fmt: skip
