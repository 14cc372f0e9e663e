"""One tenant's load makes the runs of the others take longer."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from harness.analysis.tenants import tenant_runs, tenants
from harness.analysis.timeline import Floats, Timeline, active, floats
from harness.detectors.detector import Capability, Evidence, Finding, by_chance, format_duration, slowed

NAME = "noisy-neighbour"
NEEDS = (Capability.RUNS,)

_MIN_RUNS = 10  # runs of the others, with and without the neighbour's load
_MIN_RATIO = 1.5  # times as long as without the neighbour: a smaller effect has many causes
_MAX_CHANCE = 1e-3  # of the Mann-Whitney test: each tenant is tried against the others
_MIN_SHARE_IN_FLIGHT = 0.5  # of the runs in flight are the neighbour's


@dataclass(frozen=True, slots=True)
class _Neighbour:
    """What a tenant does to the others: their median relative durations while it has few and many runs in flight.

    `held` is its share of all runs in flight while it has many, `gain` the share of the others' time that it costs.
    """

    name: str
    quiet: float
    busy: float
    chance: float
    held: float
    gain: float


def detect(timeline: Timeline) -> list[Finding]:
    """The others' durations, against their scenarios' medians, by the neighbour's load (Mann and Whitney 1947)."""
    found = tenants(timeline)
    if found is None or len(found.tenants) < 2:
        return []
    runs = tenant_runs(timeline)
    judged = [_judge(timeline, runs, tenant.name) for tenant in found.tenants]
    noisy = max((neighbour for neighbour in judged if neighbour is not None), key=lambda each: each.gain, default=None)
    return [] if noisy is None else [_finding(noisy, runs)]


def _judge(timeline: Timeline, runs: pd.DataFrame, name: str) -> _Neighbour | None:
    from scipy.stats import mannwhitneyu

    others = runs[runs["tenant"] != name]
    usual = others.groupby("scenario")["s"].transform("median")
    relative = (others["s"] / usual.where(usual > 0)).fillna(1.0).to_numpy(dtype=np.float64)
    due = floats(others, "due_s")
    mine = _in_flight(timeline, timeline.runs["tenant"] == name, due)
    many = mine > np.median(mine) if mine.size else np.zeros(0, dtype=np.bool_)
    if min(np.count_nonzero(many), np.count_nonzero(~many)) < _MIN_RUNS:
        return None
    all_in_flight = _in_flight(timeline, timeline.runs["tenant"] != "", due)
    held = float(mine[many].sum() / max(all_in_flight[many].sum(), 1.0))
    quiet, busy = float(np.median(relative[~many])), float(np.median(relative[many]))
    chance = float(mannwhitneyu(relative[many], relative[~many], alternative="greater").pvalue)
    if busy < _MIN_RATIO * quiet or chance > _MAX_CHANCE or held < _MIN_SHARE_IN_FLIGHT:
        return None
    gain = (relative[many].mean() - relative[~many].mean()) * np.count_nonzero(many) / relative.sum()
    return _Neighbour(name, quiet, busy, chance, held, float(max(gain, 0.0)))


def _in_flight(timeline: Timeline, of: "pd.Series[bool]", at: Floats) -> Floats:
    """The number of these runs in flight at each instant."""
    runs = timeline.runs[of.to_numpy(dtype=bool)]
    return active(floats(runs, "due_s"), np.nan_to_num(floats(runs, "over_s"), nan=timeline.end_s), at)


def _finding(noisy: _Neighbour, runs: pd.DataFrame) -> Finding:
    usual_s = float(runs["s"][runs["tenant"] != noisy.name].median())
    return Finding(
        NAME,
        f"The load of tenant {noisy.name} slows the others: their runs take {noisy.busy / noisy.quiet:.1f} times as "
        "long while it has many in flight",
        0.7,
        (
            Evidence(
                f"runs of other tenants took {noisy.busy / noisy.quiet:.1f} times as long when they were due while "
                f"{noisy.name} had many runs in flight ({by_chance(noisy.chance)}; their median is "
                f"{format_duration(usual_s)})",
                noisy.busy / noisy.quiet, "times", "submissions", f"tenant ≠ {noisy.name}",
            ),
            Evidence(
                f"{noisy.held:.0%} of all runs in flight were its own then",
                noisy.held, "share", "submissions", f"tenant = {noisy.name}",
            ),
        ),
        f"Bound what tenant {noisy.name} can use at once: a ResourceQuota or a limit on parallel runs for its "
        "namespace, a lower priority class, or nodes of its own.",
        (),
        slowed(noisy.gain),
    )  # fmt: skip
