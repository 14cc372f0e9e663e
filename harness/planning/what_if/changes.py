"""Changes as users write them: ``nodes=40``, ``controller.qps=50``, ``image.train=2Gi``, ``runs×2``."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from math import ceil
from typing import Any, get_type_hints

import yaml

from harness.model.errors import ConfigError, suggestion
from harness.model.schedules import Constant, Poisson, Spread, due_times
from harness.model.units import parse_duration, parse_quantity, parse_rate
from harness.planning.what_if import policies, service
from harness.planning.what_if.scenario import Apply, Change, Scenario
from harness.planning.what_if.values import above_0, float_of, parsed
from harness.prepare.changes import prepared
from harness.prepare.settings import Resources, Settings
from harness.prepare.steps import container_of, matching
from harness.reading import parse_yaml
from harness.simulator.engine.distributions import fixed
from harness.simulator.fast import Arrival
from harness.simulator.profile import Autoscaler, Pool, Profile
from harness.simulator.profile.checks import problem

# Sections of a profile whose settings go by their names, such as controller.qps.
_SECTIONS = ("api", "agent", "autoscaler", "controller", "database", "kubelet", "scheduler", "store")
_SHORT = {
    "parallelism": "controller.parallelism", "ttl": "controller.ttl_s", "packing": "scheduler.packing",
    "preemption": "scheduler.preemption",
}  # fmt: skip
_OF_POOLS = ("nodes", "max", "min", "cpu", "memory", "spot", "price")
_RUNS = re.compile(r"runs *(?:=? *[×x*]|=) *([0-9]{1,9}(?:\.[0-9]{1,9})?)")
_NODES = re.compile(r"[0-9]{1,9}")
_TIMES = re.compile(r"[×x*]")
_RATES: Mapping[str, type[Constant | Poisson]] = {"constant": Constant, "poisson": Poisson}
_LONGER = 1.5  # than the mean time of as many arrivals
_SWEEP = re.compile(r"(.+?)=([^.:]+)\.\.([^.:]+):(.+)")
_EVICTIONS = 0.05  # of a spot node per hour, as `capacity --spot` expects
_MOST_RUNS, _MOST_NODES, _MOST_VALUES = 20_000, 10_000, 50
_AT_LIMIT = 0.95  # of its limit: a step that uses as much would use more


def parse_change(text: str, scenario: Scenario, images: Mapping[str, Iterable[str]]) -> Change:
    """A change, or several joined by commas, as ``--set`` takes them.

    Args:
        text: what the user wrote.
        scenario: what it will change; it is tried out.
        images: of each task's pods.

    Raises:
        ConfigError: an unknown setting or an impossible value.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise ConfigError("--set is empty", "write it as --set nodes=40")
    changes = [Change(part, _applying(part, scenario, images)) for part in parts]
    whole = changes[0]
    for change in changes[1:]:
        whole += change
    tried = whole.apply(scenario).profile
    if found := problem(tried):
        raise ConfigError(f"--set {text}: {found.key} {found.message}", found.hint)
    return whole


def parse_sweep(text: str) -> list[str]:
    """The changes of ``--sweep nodes=10..60:10``: one for each value, both ends included.

    Raises:
        ConfigError: it is written in another way, or has too many values.
    """
    match = _SWEEP.fullmatch(text.strip())
    try:
        low, high, step = (parse_quantity(group) for group in match.groups()[1:]) if match else (0.0, 0.0, 0.0)
    except ConfigError:
        match = None
    if match is None or not step > 0 or high < low:
        raise ConfigError(f"--sweep {text}: it has no range", "write it as --sweep nodes=10..60:10")
    steps = (high - low) / step + 1e-9
    if steps >= _MOST_VALUES:
        raise ConfigError(f"--sweep {text} has more than {_MOST_VALUES} values", "take larger steps")
    count = int(steps) + 1
    return [f"{match[1]}={low + k * step:.10g}" for k in range(count)]


def _applying(text: str, scenario: Scenario, images: Mapping[str, Iterable[str]]) -> Apply:
    profile = scenario.profile
    if match := _RUNS.fullmatch(text):
        factor = float(match[1])
        return partial(_with_runs, factor=factor if _TIMES.search(text) else None, count=int(factor))
    name, sign, value = (part.strip() for part in text.partition("="))
    if not sign or not value:
        raise ConfigError(f"--set {text}: it has no value", "write it as --set nodes=40")
    name = (_SHORT if profile.hetida is None else service.SHORT).get(name, name)
    applying = _of_platform(text, name, value, scenario) or _of_runs(text, name, value, images)
    if applying is not None:
        return applying
    known = _known(profile, images)
    shown = (
        "nodes, pool.NAME.max, controller.qps, parallelism, quota.cpu, queue.TENANT.cpu, image.STEP, step.STEP.cpu, "
        "runs×2, schedule"
    )
    if profile.hetida is not None:
        shown = "replicas, workers, nodes, balancing, runtime.cores, adapter.NAME.capacity, runs×2, schedule"
    raise ConfigError(f"--set {text}: there is no setting '{name}'", f"{suggestion(name, known)}settings: {shown}, …")


def _of_platform(text: str, name: str, value: str, scenario: Scenario) -> Apply | None:
    profile = scenario.profile
    head, _, rest = name.partition(".")
    if profile.hetida is not None:
        return service.applying(text, name, value, profile.hetida)
    if name in {"nodes", "spot", "price"}:
        return partial(_with_pools, names=_main(profile), setting=name, value=_of_pool(text, name, value))
    pool, _, setting = rest.rpartition(".")
    if head == "pool" and pool in {each.name for each in profile.pools} and setting in _OF_POOLS:
        return partial(_with_pools, names=(pool,), setting=setting, value=_of_pool(text, setting, value))
    if head in _SECTIONS and rest in _fields(head):
        return partial(_with_field, section=head, setting=rest, value=parsed(text, (head, rest), value))
    return policies.applying(text, name, value, scenario)


def _of_runs(text: str, name: str, value: str, images: Mapping[str, Iterable[str]]) -> Apply | None:
    head, _, rest = name.partition(".")
    task, _, setting = rest.rpartition(".")
    if name == "schedule":
        return partial(_with_schedule, text=value)
    if head == "image" and rest in images:
        return partial(_with_image, image=next(iter(images[rest])), size=above_0(text, value, parse_quantity))
    if head == "step" and setting == "cpu" and task in images:
        return partial(_with_cpu, task=task, cores=above_0(text, value, parse_quantity))
    return None


def _known(profile: Profile, images: Iterable[str]) -> list[str]:
    if profile.hetida is not None:
        return ["schedule", "runs", *service.known(profile.hetida)]
    pools = [f"pool.{pool.name}.{each}" for pool in profile.pools for each in _OF_POOLS]
    sections = [f"{section}.{field}" for section in _SECTIONS for field in _fields(section)]
    tasks = [name for task in images for name in (f"image.{task}", f"step.{task}.cpu")]
    whole = ["nodes", "price", "spot", "schedule", "runs", *_SHORT]
    return [*whole, *pools, *sections, *tasks, *policies.known(profile)]


def _fields(section: str) -> dict[str, object]:
    cls: Any = Autoscaler if section == "autoscaler" else type(getattr(Profile(""), section))
    return {field.name: get_type_hints(cls)[field.name] for field in fields(cls)}


# --- values -----------------------------------------------------------------------------------------------------------


def _of_pool(text: str, setting: str, value: str) -> float:
    if setting == "spot":
        if value in {"on", "off"}:
            return _EVICTIONS if value == "on" else 0.0
        return above_0(text, value, float_of)
    if setting == "price":
        return above_0(text, value, float_of)
    if setting in {"cpu", "memory"}:
        return above_0(text, value, parse_quantity)
    if not _NODES.fullmatch(value) or not 0 < int(value) <= _MOST_NODES:
        raise ConfigError(f"--set {text}: {value} is no number of nodes", f"give 1 to {_MOST_NODES:,}")
    return int(value)


# --- changes ----------------------------------------------------------------------------------------------------------


def _main(profile: Profile) -> tuple[str, ...]:
    """The pools that grow, or else the largest one."""
    grows = tuple(pool.name for pool in profile.pools if pool.max > pool.initial)
    return grows or (max(profile.pools, key=lambda pool: (pool.max, pool.cpu)).name,)


def _with_pools(scenario: Scenario, *, names: tuple[str, ...], setting: str, value: float) -> Scenario:
    profile = scenario.profile
    pools = tuple(_with_pool(pool, setting, value) if pool.name in names else pool for pool in profile.pools)
    scaler = profile.autoscaler
    if scaler is None and any(pool.max > pool.initial or pool.spot for pool in pools):
        scaler = Autoscaler()
    return replace(scenario, profile=replace(profile, pools=pools, autoscaler=scaler))


def _with_pool(pool: Pool, setting: str, value: float) -> Pool:
    match setting:
        case "nodes":
            return replace(pool, initial=int(value), min=int(value), max=int(value))
        case "max":
            return replace(pool, max=int(value), initial=min(pool.initial, int(value)), min=min(pool.min, int(value)))
        case "min":
            least = int(value)
            return replace(pool, min=least, initial=max(pool.initial, least), max=max(pool.max, least))
        case "spot":
            # Spot nodes without a taint, so that the runs' pods go there.
            cloud = replace(pool.eviction, cloud="gke") if value > 0 else pool.eviction
            price = pool.price if pool.spot == (value > 0) else None  # the other kind's price is not known
            return replace(pool, spot=value > 0, evictions_per_hour=value, eviction=cloud, price=price)
        case "price":
            return replace(pool, price=value)
        case "cpu":
            return replace(pool, cpu=value)
        case _:
            return replace(pool, memory=value)


def _with_field(scenario: Scenario, *, section: str, setting: str, value: object) -> Scenario:
    profile = scenario.profile
    changed: Any = {section: replace(getattr(profile, section) or Autoscaler(), **{setting: value})}
    return replace(scenario, profile=replace(profile, **changed))


def _with_image(scenario: Scenario, *, image: str, size: float) -> Scenario:
    kubelet = scenario.profile.kubelet
    model = replace(kubelet, images={**kubelet.images, image: size})
    return replace(scenario, profile=replace(scenario.profile, kubelet=model))


def _with_cpu(scenario: Scenario, *, task: str, cores: float) -> Scenario:
    """Another request and limit. A step that used all of its limit uses as much of the new one, and takes less time."""
    documents = [each for each in parse_yaml(scenario.test.package, "the pipeline") if each is not None]
    try:
        amount = Resources(cpu_request=f"{cores:g}", cpu_limit=f"{cores:g}")
        changed = prepared(documents, Settings(tasks=(task,), caching=True, resources=amount))
    except (LookupError, ConfigError) as error:
        raise ConfigError(f"--set step.{task}.cpu: this works for steps of KFP's pipelines", "leave it out") from error
    package = yaml.dump_all(changed, Dumper=yaml.CSafeDumper, sort_keys=True).encode()
    profile = scenario.profile
    steps, measured = list(profile.steps), dict(profile.measured)
    for k, step in enumerate(steps):
        if step.match != task:
            continue
        steps[k] = replace(step, requests_cpu=0.0)  # the recorded ones: the pipeline has others now
        used = step.cpu.distribution.mean
        if task in measured and _limit(documents, task) * _AT_LIMIT <= used < cores:
            steps[k] = replace(steps[k], cpu=fixed(cores))
            work = tuple(seconds * used / cores for seconds in measured[task].work)
            measured[task] = replace(measured[task], work=work)
    model = replace(profile, steps=tuple(steps), measured=measured)
    return Scenario(model, replace(scenario.test, package=package))


def _limit(documents: Sequence[Any], task: str) -> float:
    """The CPU limit of a step, in cores; infinite without one."""
    for found in matching(documents[0], (task,)):
        resources = (container_of(documents[0], found) or {}).get("resources", {})
        given = resources.get("resourceCpuLimit", resources.get("cpuLimit"))
        if given:
            return parse_quantity(given)
    return float("inf")


def _with_runs(scenario: Scenario, *, factor: float | None, count: int) -> Scenario:
    """As many runs, each a copy of a recorded one, at the same times."""
    arrivals, late = scenario.test.arrivals, scenario.test.late_s
    wanted = count if factor is None else ceil(factor * len(arrivals))
    if not 0 < wanted <= _MOST_RUNS:
        raise ConfigError(f"--set runs: {wanted:,} runs can't be simulated", f"give 1 to {_MOST_RUNS:,} runs")
    places = [k * len(arrivals) // wanted for k in range(wanted)]
    test = replace(scenario.test, arrivals=tuple(arrivals[k] for k in places), late_s=tuple(late[k] for k in places))
    return replace(scenario, test=test)


def _with_schedule(scenario: Scenario, *, text: str) -> Scenario:
    """The same runs at other times: ``burst``, ``spread:1h``, ``constant:5/m``, ``poisson:5/m``."""
    arrivals = scenario.test.arrivals
    due = _due(text, len(arrivals))
    moved = tuple(Arrival(at, arrival.scenario) for at, arrival in zip(due, arrivals, strict=False))
    return replace(scenario, test=replace(scenario.test, arrivals=moved, late_s=(0.0,) * len(moved)))


def _due(text: str, count: int) -> Sequence[float]:
    """When that many arrivals are due, in seconds."""
    name, _, value = text.partition(":")
    if name == "burst" and not value:
        return [0.0] * count
    if name == "spread" and value:
        return due_times(Spread(count, parse_duration(value), 0.0), 0)
    if name in _RATES and value and (per_s := parse_rate(value)) > 0:
        return due_times(_RATES[name](per_s, count / per_s * _LONGER), 0)[:count]
    raise ConfigError(
        f"--set schedule={text}: it is no schedule", "write burst, spread:1h, constant:5/m or poisson:5/m"
    )
