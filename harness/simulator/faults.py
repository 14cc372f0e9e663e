"""Faults that can be injected by name: known causes against which a diagnosis can be checked.

A fault is written ``name``, ``name@30s`` (start time) or ``name@30s:0.8`` (with its strength, 1 by default). What a row
of the catalogue of stated reasons says is injected as ``stated:NAME``; its strength is the share of the runs, 0.5 by
default.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from math import inf

from harness.model.errors import ConfigError, suggestion
from harness.model.units import parse_duration
from harness.simulator.hetida import Service
from harness.simulator.hetida import faults as hetida_faults
from harness.simulator.platform import Platform
from harness.simulator.profile import FaultPlan, Profile, Quota
from harness.simulator.stated import PREFIX, SHARE, Statements, row_of

Inject = Callable[[Platform, float], None]
NONE = "none"
_RUN_BYTES = 51_200  # of a run with three steps, by the defaults
_MYSQLS_OWN = 151  # MySQL's default max_connections


@dataclass(frozen=True, slots=True)
class Fault:
    """One way to break a platform; `inject` starts it with a strength."""

    name: str
    title: str
    inject: Inject


def _store_full(platform: Platform, strength: float) -> None:
    store = platform.store
    store.used = min(store.capacity, store.used + 0.68 * strength * store.capacity)


def _store_slow(platform: Platform, strength: float) -> None:
    store = platform.store
    store.link.capacity = store.settings.bytes_per_s / (1 + 19 * strength)
    store.request_s = store.settings.request_s * (1 + 19 * strength)


def _store_unreachable(platform: Platform, strength: float) -> None:
    nodes = sorted(platform.cluster.nodes.values(), key=lambda node: node.index)
    cut_off = {node.name for node in nodes[: max(1, round(strength * len(nodes)))]}
    platform.store.unreachable = lambda node: node.name in cut_off


def _api_throttled(platform: Platform, strength: float) -> None:
    bucket = platform.server.bucket
    bucket.rate = min(bucket.rate, 5.0 / strength)
    bucket.burst = min(bucket.burst, 10)


def _api_errors(platform: Platform, strength: float) -> None:
    platform.server.error_rate = min(1.0, 0.2 * strength)


def _controller_backlog(platform: Platform, strength: float) -> None:
    client = platform.controller.client
    client.rate = min(client.rate, 8.0 / strength)
    client.burst = min(client.burst, 10)


def _parallelism_cap(platform: Platform, strength: float) -> None:
    platform.controller.limit_to(max(1, round(10 / strength)))


def _agent_lag(platform: Platform, strength: float) -> None:
    platform.agent.lag_s = max(platform.agent.lag_s, 15.0 * strength)


def _nodes_exhausted(platform: Platform, strength: float) -> None:
    """No nodes are added; with a strength below 1, fewer."""
    _grow_at_most(platform, 1 - min(1.0, strength))


def _autoscaler_slow(platform: Platform, strength: float) -> None:
    if platform.cluster.autoscaler is not None:
        platform.cluster.autoscaler.slowdown = 1 + 5 * strength


def _autoscaler_at_max(platform: Platform, strength: float) -> None:
    _grow_at_most(platform, 1 - 0.8 * min(1.0, strength))


def _grow_at_most(platform: Platform, share: float) -> None:
    """Let the pools grow only by that share of what they still could."""
    scaler = platform.cluster.autoscaler
    if scaler is not None:
        for pool in scaler.pools:
            here = len(platform.cluster.pool_nodes(pool))
            scaler.most[pool.name] = here + max(0, round((pool.max - here) * share))


def _image_pull(platform: Platform, strength: float) -> None:
    platform.cluster.kubelet.pull_factor = 1 + 14 * strength


def _of_some(row: str) -> Inject:
    """About a fifth of the runs, times the strength."""
    return lambda platform, strength: _state(platform, min(1.0, 0.2 * strength), row)


def _state(platform: Platform, share: float, row: str) -> None:
    platform.statements = platform.statements or Statements(platform)
    platform.statements.add(row_of(row), share)


def _oom(platform: Platform, strength: float) -> None:
    platform.steps.memory_factor = 1 + 1.5 * strength


def _cpu_starved(platform: Platform, strength: float) -> None:
    platform.steps.cpu_factor = 1 + 3 * strength


def _spot_evictions(platform: Platform, strength: float) -> None:
    """Evict half of the nodes that run steps, times the strength."""
    nodes = [
        node for node in platform.cluster.nodes.values() if node.labels.get("kubernetes.azure.com/mode") != "system"
    ]
    for node in sorted(nodes, key=lambda each: -each.index)[: max(1, round(len(nodes) * 0.5 * min(1.0, strength)))]:
        platform.cluster.evict_node(node)


def _db_connections(platform: Platform, strength: float) -> None:
    database = platform.server.database
    database.limit_to(database.connections or _MYSQLS_OWN)
    database.crowded = min(1.0, 0.4 * strength)


def _db_full(platform: Platform, strength: float) -> None:
    """Leave room for 20 runs, divided by the strength."""
    database = platform.server.database
    database.used = max(database.used, database.capacity - 20 / strength * _RUN_BYTES)


def _db_slow_listing(platform: Platform, strength: float) -> None:
    """As without indexes: the effect of a hundred thousand runs on a real platform, after a few."""
    platform.server.database.row_s = 0.05 * strength


def _quota(platform: Platform, strength: float) -> None:
    quotas = platform.controller.quotas
    next(iter(quotas.of_tenants.values()), quotas.shared).limit_to(Quota(cpu=4.0 / strength))


def _clock_skew(platform: Platform, strength: float) -> None:
    platform.skew.since, platform.skew.by_s = platform.loop.now, 7.0 * strength


def _driver_overhead(platform: Platform, strength: float) -> None:
    platform.drivers.slowdown = 1 + 9 * strength


_FAULTS = (
    Fault("store-full", "other data fills most of the artifact store's volume", _store_full),
    Fault("store-slow", "the artifact store is slow: bandwidth and requests", _store_slow),
    Fault("store-unreachable-from-old-nodes", "nodes that were up cannot reach the artifact store", _store_unreachable),
    Fault("api-throttled", "the API server's Kubernetes client is limited to 5 requests per second", _api_throttled),
    Fault("api-errors", "the API server answers some submissions with 500", _api_errors),
    Fault("controller-backlog", "the workflow controller creates few pods per second", _controller_backlog),
    Fault("parallelism-cap", "few workflows run at once", _parallelism_cap),
    Fault("agent-lag", "the persistence agent reports late", _agent_lag),
    Fault("nodes-exhausted", "no node can be added", _nodes_exhausted),
    Fault("autoscaler-slow", "new nodes take several times as long", _autoscaler_slow),
    Fault("autoscaler-at-max", "the autoscaler's maximum is low", _autoscaler_at_max),
    Fault("image-pull", "images are pulled slowly", _image_pull),
    Fault("oom", "steps need more memory than their limits", _oom),
    Fault("cpu-starved", "steps want more CPU than their limits and nodes give", _cpu_starved),
    Fault("spot-evictions", "the cloud evicts many machines at once", _spot_evictions),
    Fault("db-connections", "other clients use up the database's connections", _db_connections),
    Fault("db-full", "the database's disk is nearly full", _db_full),
    Fault("db-slow-listing", "listing runs takes longer with every stored run", _db_slow_listing),
    Fault("quota", "the namespace's quota (of the first tenant, if any) limits requests to 4 cores in total", _quota),
    Fault("clock-skew", "the platform's clock is 7 seconds ahead", _clock_skew),
    Fault("driver-overhead", "driver pods take ten times as long", _driver_overhead),
    Fault("image-missing", "the registry does not have the images of some steps", _of_some("image-missing")),
    Fault("node-pressure", "nodes run short of memory and evict some steps", _of_some("node-pressure")),
)
FAULTS = {fault.name: fault for fault in _FAULTS}


def _of_hetida(begin: Callable[[Service, float], None]) -> Inject:
    def start(platform: Platform, strength: float) -> None:
        assert platform.hetida is not None  # checked by `inject`
        begin(platform.hetida, strength)

    return start


HETIDA_FAULTS = {name: Fault(name, title, _of_hetida(begin)) for name, (title, begin) in hetida_faults.FAULTS.items()}
_ALL = FAULTS | HETIDA_FAULTS


def parse_fault(text: str) -> FaultPlan | None:
    """Parse ``name[@when][:strength]``; none for ``none``.

    Raises:
        ConfigError: unknown fault, or invalid time or strength.
    """
    written = text.strip()
    prefix = PREFIX * written.startswith(PREFIX)
    name, _, strength = written.removeprefix(PREFIX).partition(":")
    name, _, when = name.partition("@")
    name = prefix + name
    if name == NONE and not when and not strength:
        return None
    if prefix:
        row_of(name)
    elif name not in _ALL:
        raise ConfigError(f"there is no fault '{name}'", f"{suggestion(name, _ALL)}faults: {', '.join(_ALL)}, {NONE}")
    try:
        factor = float(strength or (SHARE if prefix else 1.0))
    except ValueError:
        factor = 0.0
    if not 0 < factor <= (1 if prefix else inf):
        raise ConfigError(
            f"the fault '{text}' has the strength '{strength}', which is invalid",
            "give the share of the runs, up to 1" if prefix else "give a number above 0; 1 is the usual strength",
        )
    return FaultPlan(name, parse_duration(when) if when else 0.0, factor)


def parse_faults(texts: Iterable[str]) -> tuple[FaultPlan, ...]:
    """Parse several faults, as given by command-line options.

    Raises:
        ConfigError: see `parse_fault`.
    """
    return tuple(plan for text in texts if (plan := parse_fault(text)) is not None)


def check(plans: Iterable[FaultPlan], profile: Profile) -> None:
    """Check that the faults can be injected into a platform with this profile.

    Raises:
        ConfigError: unknown fault, or one that the simulated platform cannot have.
    """
    for plan in plans:
        parse_fault(plan.name)
        of_service = plan.name in HETIDA_FAULTS
        if (of_service or plan.name.startswith(PREFIX)) and of_service == (profile.hetida is None):
            what, such = ("hetida designer", "hetida-pattern-1") if of_service else ("runs with pods", "demo")
            raise ConfigError(
                f"the fault '{plan.name}' needs {what}, which '{profile.name}' does not simulate",
                f"use a profile that has this, such as --profile {such}",
            )


def inject(platform: Platform, plan: FaultPlan) -> None:
    """Start a fault at its time.

    Raises:
        ConfigError: see `check`.
    """
    check([plan], platform.profile)
    if plan.name == NONE:
        return
    begin = _ALL[plan.name].inject if plan.name in _ALL else partial(_state, row=plan.name)
    if plan.at_s <= platform.loop.now:
        begin(platform, plan.strength)
    else:
        platform.loop.at(plan.at_s, begin, platform, plan.strength)
