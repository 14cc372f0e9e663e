"""A multi-tenant day: how many runs start in each stage, when, for which tenant, and with which scenario."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from generators import streams
from generators.streams import Floats, Ints, Stream
from harness.documents import Document, Place
from harness.model import ConfigError, parse_duration
from harness.model.schedules import MOST_ARRIVALS

_MOST_WIDTH = 1_000_000  # runs at once
_DEFAULT_STAGE_S = 300.0
_MAX_STAGES = 100_000


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of the day: `stages` stages of `low` to `high` runs, each within `variation` of the previous one."""

    name: str
    stages: int
    low: int
    high: int
    variation: int
    shares: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Tenant:
    """A tenant's share of all runs, and its mix: by column, the values (with their shares) of its scenarios."""

    name: str
    share: float = 1.0
    mix: Mapping[str, Mapping[str, float | None]] | None = None
    order: str = "random"


@dataclass(frozen=True, slots=True)
class Workload:
    """Phases of stages of `stage_s` seconds each. `spacing` is "random", "even" or "burst" within a stage."""

    phases: tuple[Phase, ...]
    tenants: tuple[Tenant, ...]
    stage_s: float = _DEFAULT_STAGE_S
    spacing: str = "random"
    seed: int | None = None

    @property
    def duration_s(self) -> float:
        """The length of all phases together."""
        return self.stage_s * sum(phase.stages for phase in self.phases)


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Runs in the order in which they are due: seconds after the start, name of the tenant, id of the scenario."""

    due_s: Floats
    tenants: tuple[str, ...]
    scenario_ids: tuple[str, ...]


def read_workload(document: Document) -> Workload:
    """The workload of a document that has passed the schema.

    Raises:
        ConfigError: lengths, widths or names contradict each other.
    """
    place, data = Place(document), document.data
    stage_s = _duration(data.get("stage", _DEFAULT_STAGE_S), place / "stage")
    tenants = tuple(_tenant(given) for given in data.get("tenants") or [{"name": "default"}])
    names = [tenant.name for tenant in tenants]
    if len(set(names)) < len(names):
        raise (place / "tenants").error("two tenants have the same name", "rename one of them")
    phases = tuple(
        _phase(given, stage_s, names, place / "phases" / index) for index, given in enumerate(data["phases"])
    )
    if not sum(tenant.share for tenant in tenants) > 0:
        raise (place / "tenants").error("the shares add up to 0", "give at least one tenant a share above 0")
    if sum(phase.stages for phase in phases) > _MAX_STAGES:
        raise (place / "phases").error(f"more than {_MAX_STAGES:,} stages", "make stages longer")
    return Workload(phases, tenants, stage_s, data.get("spacing", "random"), data.get("seed"))


def _phase(given: Mapping[str, object], stage_s: float, tenants: Sequence[str], place: Place) -> Phase:
    length_s = _duration(given["for"], place / "for")
    if length_s / stage_s > _MAX_STAGES:
        raise (place / "for").error(f"more than {_MAX_STAGES:,} stages", "make stages longer")
    stages = round(length_s / stage_s)
    if stages < 1 or not math.isclose(stages * stage_s, length_s):
        raise (place / "for").error(f"{given['for']} is not a whole number of stages of {stage_s:g} s", "change one")
    width = given["width"]
    assert isinstance(width, list)
    low, high = map(int, width)
    if low > high:
        raise (place / "width").error(f"min {low} is above max {high}", "swap the two")
    variation = given.get("variation", max(1, -(-(high - low) // 4)))
    shares = given.get("shares") or {}
    assert isinstance(variation, int | float)
    assert isinstance(shares, Mapping)
    if max(high, variation) > _MOST_WIDTH:
        raise (place / "width").error(f"more than {_MOST_WIDTH:,} runs at once", "give a smaller width")
    for name in shares:
        if name not in tenants:
            raise (place / "shares" / name).error("unknown tenant", f"tenants are: {', '.join(tenants)}")
    if shares and not sum(shares.values()) > 0:
        raise (place / "shares").error("the shares add up to 0", "give at least one tenant a share above 0")
    return Phase(str(given["name"]), stages, low, high, int(variation), shares)


def _tenant(given: Mapping[str, object]) -> Tenant:
    mix = given.get("mix") or {}
    assert isinstance(mix, Mapping)
    read: dict[str, Mapping[str, float | None]] = {}
    for column, values in mix.items():
        pairs = values.items() if isinstance(values, Mapping) else ((value, None) for value in values)
        read[str(column)] = {_text(value): weight for value, weight in pairs}
    share = given.get("share", 1.0)
    assert isinstance(share, int | float)
    return Tenant(str(given["name"]), float(share), read, str(given.get("order", "random")))


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _duration(value: object, place: Place) -> float:
    try:
        seconds = parse_duration(value if isinstance(value, int | float) else str(value))
    except ConfigError as error:
        raise place.error(error.message, error.hint) from error
    if not 0 < seconds < math.inf:
        raise place.error(f"{value} is not a positive duration", "write it as 5m")
    return seconds


def widths(workload: Workload, seed: int) -> Ints:
    """The number of runs that start in each stage: a random walk within each phase's limits.

    When the limits of a phase are out of reach of the last width, each stage approaches them by the variation.
    """
    total = sum(phase.stages for phase in workload.phases)
    draws = streams.uniform(streams.words(Stream(seed, "workload", "width"), 0, total))
    found = np.empty(total, dtype=np.int64)
    last: int | None = None
    stages = (phase for phase in workload.phases for _ in range(phase.stages))
    for index, phase in enumerate(stages):
        low, high = phase.low, phase.high
        if last is not None:
            low, high = max(low, last - phase.variation), min(high, last + phase.variation)
        if low > high:
            assert last is not None
            last = last + phase.variation if last < phase.low else last - phase.variation
        else:
            last = low + min(int(draws[index] * (high - low + 1)), high - low)
        found[index] = last
    return found


def arrivals(workload: Workload, seed: int, scenarios: Mapping[str, Sequence[str]]) -> Arrivals:
    """The runs of the day. `scenarios` has the columns `id` and those that tenants' mixes name, as text.

    Raises:
        ConfigError: no scenario matches a tenant's mix.
    """
    counts = widths(workload, seed)
    if (runs := int(counts.sum())) > MOST_ARRIVALS:
        raise ConfigError(
            f"the workload starts {runs:,} runs; a schedule may have at most {MOST_ARRIVALS:,}",
            "make phases shorter, stages longer, or widths smaller",
        )
    due_s = _due(workload, counts, seed)
    stage_of = np.repeat(np.arange(len(counts)), counts)
    tenant_of = _tenants(
        workload, stage_of, streams.uniform(streams.words(Stream(seed, "workload", "tenant"), 0, runs))
    )
    chosen = np.empty(runs, dtype=np.int64)
    for index, tenant in enumerate(workload.tenants):
        mine = np.flatnonzero(tenant_of == index)
        draws = streams.uniform(streams.words(Stream(seed, "workload", f"scenario {tenant.name}"), 0, len(mine)))
        chosen[mine] = _scenarios(tenant, scenarios, draws)
    ids = scenarios["id"]
    return Arrivals(
        due_s, tuple(workload.tenants[i].name for i in tenant_of), tuple(ids[row] for row in chosen.tolist())
    )


def _due(workload: Workload, counts: Ints, seed: int) -> Floats:
    """Non-decreasing due times in seconds, to the millisecond."""
    runs = int(counts.sum())
    starts = np.repeat(np.arange(len(counts)) * workload.stage_s, counts)
    if workload.spacing == "burst":
        return starts
    if workload.spacing == "even":
        place = np.concatenate([(np.arange(count)) / count for count in counts if count] or [np.empty(0)])
    else:
        place = streams.uniform(streams.words(Stream(seed, "workload", "due"), 0, runs))
    return np.sort(np.floor((starts + place * workload.stage_s) * 1000.0) / 1000.0)


def _tenants(workload: Workload, stage_of: Ints, draws: Floats) -> Ints:
    found = np.zeros(len(stage_of), dtype=np.int64)
    bounds = np.cumsum([0, *(phase.stages for phase in workload.phases)])
    for phase, (first, last) in zip(workload.phases, pairwise(bounds), strict=True):
        inside = (stage_of >= first) & (stage_of < last)
        shares = [phase.shares.get(t.name, 0.0 if phase.shares else t.share) for t in workload.tenants]
        found[inside] = streams.weighted(np.array(shares), draws[inside])
    return found


def _scenarios(tenant: Tenant, scenarios: Mapping[str, Sequence[str]], draws: Floats) -> Ints:
    weights = np.ones(len(scenarios["id"]))
    for column, shares in (tenant.mix or {}).items():
        if column not in scenarios:
            raise ConfigError(
                f"the mix of tenant {tenant.name} names the column '{column}', which the scenarios do not have",
                f"their columns are: {', '.join(scenarios)}",
            )
        cells = scenarios[column]
        counts = {value: cells.count(value) for value in shares}
        for row, cell in enumerate(cells):
            share = shares.get(cell, 0.0)
            weights[row] *= 1.0 if share is None else share / max(counts.get(cell, 0), 1)
    if not weights.sum() > 0:
        raise ConfigError(
            f"no scenario matches the mix of tenant {tenant.name}", "use values of the scenarios, or drop the mix"
        )
    if tenant.order == "in_turn":
        fitting = np.flatnonzero(weights)
        return fitting[np.arange(len(draws)) % len(fitting)].astype(np.int64)
    return streams.weighted(weights, draws)
