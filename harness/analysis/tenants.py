"""Tenants side by side: what each sent and got, how long its runs took and waited, and how fairly all were treated.

Only runs of the same scenario are compared, as tenants may do different work. Jain's index of x is (Σx)² / (n Σx²): 1
when all are equal, 1/n when one has everything (Jain, Chiu, Hawe 1984); x is a tenant's speed, the reciprocal of how
long its runs took against all runs of the same scenarios.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from harness.analysis.latency import duration
from harness.analysis.services.processes import scenario_names
from harness.analysis.throughput import throughput
from harness.analysis.timeline import Floats, Timeline, remembered
from harness.analysis.waits.waits import waits
from harness.model.phases import COMPUTING, FAILED, LOADING, RUNNING, SENDING, STORING, SUCCEEDED
from harness.model.records import Outcome

_WORKING = (RUNNING, STORING, LOADING, COMPUTING, SENDING)  # in all other phases a run waits


@dataclass(frozen=True, slots=True)
class Tenant:
    """One tenant of a test.

    Attributes:
        name: as the scenarios or the schedule name it.
        intended: number of its arrivals.
        succeeded: of these, runs that succeeded.
        failed: runs that failed.
        lost: arrivals that were rejected or missed.
        per_hour: succeeded runs per hour of the test.
        mean_s: mean duration of its succeeded runs; none without any.
        p95_s: their 95th percentile.
        waited_s: mean time in which these runs did no work.
        slowdown: their duration against the other tenants' runs of the same scenarios; none where there are none.
    """

    name: str
    intended: int
    succeeded: int
    failed: int
    lost: int
    per_hour: float
    mean_s: float | None
    p95_s: float | None
    waited_s: float | None
    slowdown: float | None


@dataclass(frozen=True, slots=True)
class Tenants:
    """The tenants by name. `fairness` is Jain's index of their speeds; none where fewer than two can be compared."""

    tenants: tuple[Tenant, ...]
    fairness: float | None

    @property
    def worst(self) -> Tenant | None:
        """The tenant with the largest slowdown."""
        compared = [tenant for tenant in self.tenants if tenant.slowdown is not None]
        return max(compared, key=lambda each: each.slowdown or 0.0, default=None)


@remembered
def tenants(timeline: Timeline) -> Tenants | None:
    """Compare the tenants; none where the runs have none."""
    if not (timeline.runs["tenant"] != "").any():
        return None
    runs = tenant_runs(timeline)
    slowdowns, speeds = _slowdowns(runs)
    names = sorted(timeline.runs["tenant"].unique())
    found = tuple(_tenant(timeline, runs, name, slowdowns.get(name)) for name in names)
    return Tenants(found, _fairness(speeds))


def fairness(tenant: Sequence[str], scenario: Sequence[str], seconds: Floats) -> float | None:
    """Jain's index of the tenants' speeds, given each run's tenant, scenario and duration."""
    if len(set(tenant)) < 2:
        return None
    return _fairness(_slowdowns(pd.DataFrame({"tenant": tenant, "scenario": scenario, "s": seconds}))[1])


def _fairness(speeds: Mapping[str, float]) -> float | None:
    return jain(np.array([*speeds.values()])) if len(speeds) > 1 else None


def tenant_runs(timeline: Timeline) -> pd.DataFrame:
    """The succeeded runs: tenant, scenario (its name), due_s, s (duration), waited_s."""
    split = waits(timeline)
    waited = np.full(len(timeline.runs), np.nan)
    waited[split.row] = split.total - sum(split.of(phase) for phase in _WORKING)
    every = pd.DataFrame(
        {
            "tenant": timeline.runs["tenant"],
            "scenario": scenario_names(timeline),
            "due_s": timeline.runs["due_s"],
            "s": duration(timeline),
            "waited_s": waited,
        }
    )
    return every[(timeline.runs["state"] == SUCCEEDED).to_numpy(dtype=bool)]


def jain(values: Floats) -> float:
    """Jain's index of fairness of positive values."""
    return float(values.sum() ** 2 / (values.size * (values**2).sum()))


def _slowdowns(runs: pd.DataFrame) -> tuple[dict[str, float], dict[str, float]]:
    """By tenant: the duration of its runs against the others' runs of the same scenarios, and its speed against all."""
    shared = runs[runs.groupby("scenario")["tenant"].transform("nunique") > 1]
    of_scenario = shared.groupby("scenario")["s"].agg(["sum", "count"])
    slowdowns, speeds = {}, {}
    for name, mine in shared.groupby("tenant"):
        own = mine.groupby("scenario")["s"].agg(["sum", "count"])
        every = of_scenario.loc[own.index]
        others_mean = (every["sum"] - own["sum"]) / (every["count"] - own["count"])
        took = float(own["sum"].sum())
        expected, usual = (float((mean * own["count"]).sum()) for mean in (others_mean, every["sum"] / every["count"]))
        if took > 0 and expected > 0:
            slowdowns[str(name)], speeds[str(name)] = took / expected, usual / took
    return slowdowns, speeds


def _tenant(timeline: Timeline, runs: pd.DataFrame, name: str, slowdown: float | None) -> Tenant:
    own = timeline.runs[timeline.runs["tenant"] == name]
    mine = runs[runs["tenant"] == name]
    outcome, makespan_s = own["outcome"], throughput(timeline).makespan_s
    return Tenant(
        name=name,
        intended=len(own),
        succeeded=len(mine),
        failed=int((own["state"] == FAILED).sum()),
        lost=int((outcome != Outcome.ACCEPTED.value).sum()),
        per_hour=len(mine) / makespan_s * 3600 if makespan_s else 0.0,
        mean_s=float(mine["s"].mean()) if len(mine) else None,
        p95_s=float(np.quantile(mine["s"], 0.95, method="inverted_cdf")) if len(mine) else None,
        waited_s=float(mine["waited_s"].mean()) if mine["waited_s"].notna().any() else None,
        slowdown=slowdown,
    )


def figures(timeline: Timeline) -> Iterator[tuple[str, float]]:
    """The figures by which tests with tenants are compared, as (name, value)."""
    found = tenants(timeline)
    if found is None or found.fairness is None or found.worst is None or found.worst.slowdown is None:
        return
    yield "fairness of tenants (Jain)", found.fairness
    yield "slowdown of the worst tenant", found.worst.slowdown
