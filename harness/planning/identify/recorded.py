"""A recorded test as the input of a simulation, and what was measured of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from harness.analysis.services.processes import scenario_names
from harness.analysis.tenants import fairness
from harness.analysis.timeline import Floats, Ints, Timeline, beginnings, floats
from harness.analysis.waits.waits import waits_so_far
from harness.model.errors import ConfigError
from harness.model.phases import NETWORK, RUNNING, STORING, UPLOAD_SECONDS
from harness.model.records import Outcome
from harness.model.scenario import Scenario
from harness.planning.identify.limits import ON_NODE, most_per_node
from harness.planning.identify.reproduction import CHECKED, Measures, OfTenant
from harness.planning.simulated_burst import package as default_package
from harness.simulator.fast import Arrival
from harness.store.folder import PIPELINE, SCENARIOS, RunFolder
from harness.targets import hetida
from harness.targets.kfp.pipeline import read_pipeline
from harness.targets.scenarios import ParamMode, read_scenarios

FEWEST = 5  # runs that ended, and had pods
_ANSWERS = (Outcome.ACCEPTED, Outcome.REJECTED)


@dataclass(frozen=True, slots=True)
class RecordedTest:
    """What a simulation of a recorded test begins with.

    Attributes:
        package: the compiled pipeline, Argo's manifest, or hetida's transformation.
        arrivals: when each was sent, seconds after the start, with its scenario.
        late_s: by arrival: from due to sent, and for executions the network's time.
        until_s: the end of the observation; none where all runs had ended.
        rejected: share of what was sent that the platform rejected; it is none of the arrivals, and never simulated.
    """

    package: bytes
    arrivals: tuple[Arrival, ...]
    late_s: tuple[float, ...]
    until_s: float | None
    rejected: float = 0.0


def recorded_test(folder: RunFolder, timeline: Timeline) -> RecordedTest:
    """Read what was sent and when.

    Raises:
        ConfigError: its runs can't be simulated, or there are too few to learn from.
    """
    name, runs = folder.path.name, timeline.runs
    if not simulable(timeline):
        hint = "give a test of KFP or Argo, whose pods were observed, or of hetida designer"
        raise ConfigError(f"{name} has runs without pods", hint)
    seen = np.unique(timeline.pods["row"].to_numpy())
    ended = int(np.count_nonzero(timeline.is_over[seen[seen >= 0]]))
    if ended < FEWEST:
        what = "whose answers contained their phases" if timeline.executed else "whose pods were observed"
        raise ConfigError(
            f"{name} has {ended} runs that ended and {what}; it takes {FEWEST} to calibrate a model",
            "give a longer test" if timeline.executed else "give a longer test, with its cluster observed",
        )
    sent, due, order = sent_s(timeline), floats(runs, "due_s"), accepted_rows(timeline)
    late = sent - due + network_s(timeline)
    accepted, rejected = ((runs["outcome"] == answer.value).to_numpy(dtype=bool) for answer in _ANSWERS)
    values = _values(folder, timeline.plan.target)
    names = zip(runs["scenario_id"].astype(str), scenario_names(timeline), runs["tenant"].astype(str), strict=True)
    scenarios = [Scenario(key, name or key, values.get(key, {}), {}, tenant) for key, name, tenant in names]
    return RecordedTest(
        folder.read_bytes(PIPELINE) if folder.has(PIPELINE) else _default(timeline),
        tuple(Arrival(float(max(sent[k], 0.0)), scenarios[k]) for k in order),
        tuple(float(late[k]) for k in order),
        float(timeline.end_s) if timeline.is_open.any() else None,
        float(rejected.sum() / (accepted | rejected).sum()),
    )


def simulable(timeline: Timeline) -> bool:
    """Whether its runs are made of pods, or are executions of a service that can be simulated."""
    return not timeline.executed or timeline.plan.target == "hetida"


def _default(timeline: Timeline) -> bytes:
    """What is sent where the folder does not keep it."""
    return hetida.EXAMPLE.read_bytes() if timeline.executed else default_package(None)


def sent_s(timeline: Timeline) -> Floats:
    """When each run was sent; when it was due, where that is not known."""
    sent = floats(timeline.runs, "sent_s")
    return np.where(np.isfinite(sent), sent, floats(timeline.runs, "due_s"))


def accepted_rows(timeline: Timeline) -> Ints:
    """The rows of the accepted runs, in the order in which they were sent."""
    accepted = (timeline.runs["outcome"] == Outcome.ACCEPTED.value).to_numpy(dtype=bool)
    return np.flatnonzero(accepted)[np.argsort(sent_s(timeline)[accepted], kind="stable")]


def network_s(timeline: Timeline) -> Floats:
    """By run, what an exchange takes without work; 0 where runs are made of pods."""
    found, split = np.zeros(len(timeline.runs)), waits_so_far(timeline)
    found[split.row] = split.of(NETWORK)
    return found


def _values(folder: RunFolder, target: str) -> Mapping[str, Mapping[str, object]]:
    """By scenario, the values of a pipeline's inputs; none where they were sent in another form."""
    if target != "kfp" or not (folder.has(SCENARIOS) and folder.has(PIPELINE)):
        return {}
    try:
        inputs = read_pipeline(folder.path / PIPELINE).inputs
        return {
            scenario.id: scenario.values for scenario in read_scenarios(folder.path / SCENARIOS, inputs, ParamMode())
        }
    except ConfigError:
        return {}


def measures_of(timeline: Timeline) -> Measures:
    """What was measured of a recorded test."""
    split, runs, there = waits_so_far(timeline), timeline.runs, on_nodes(timeline)
    sent = runs["outcome"] != Outcome.MISSED.value
    well = (runs["state"] == "SUCCEEDED").to_numpy(dtype=bool)
    over, said = floats(runs, "over_s"), floats(runs, "said_s")
    ended = timeline.is_over & np.isfinite(over)
    first = float(np.nanmin(floats(runs, "due_s")[runs["outcome"] == Outcome.ACCEPTED]))
    last = float(np.nanmax(over[ended])) if ended.any() and not timeline.is_open.any() else timeline.end_s
    machines, until = timeline.run_nodes, last
    lived = np.nan_to_num(floats(machines, "gone_s"), nan=until).clip(max=until)
    hours = (lived - floats(machines, "created_s").clip(min=0.0)).clip(min=0.0) / 3600
    price = floats(machines, "price")
    pods = timeline.pods["pod"].to_numpy()
    late = (said - over)[ended]
    return Measures(
        runs=int(split.row.size),
        lost=1 - float(np.count_nonzero(well)) / max(int(sent.sum()), 1),
        mean_s=float(split.total.mean()),
        p50_s=float(np.quantile(split.total, 0.5)),
        p95_s=float(np.quantile(split.total, 0.95)),
        makespan_s=last - first,
        phases={name: float(sum(split.of(part).mean() for part in parts)) for name, parts in CHECKED.items()},
        pods=np.unique(pods).size / max(int(split.row.size), 1),
        reported_s=float(np.nanmean(late)) if np.isfinite(late).any() else 0.0,
        node_hours=float(hours.sum()),
        cost=float((hours * price).sum()) if np.isfinite(price).all() and price.size else None,
        tasks={task: float(each.mean()) for task, each in seconds_by_task(timeline, RUNNING, STORING).items()},
        uploads={task: float(each.mean()) for task, each in uploads(timeline).items()},
        before_s=_before(timeline, split.row),
        most_per_node=most_per_node(there["node"].tolist(), floats(there, "start_s"), floats(there, "end_s")),
        tenants=by_tenant(runs["tenant"].iloc[split.row].tolist(), split.total),
        fairness=fairness(
            runs["tenant"].iloc[split.row].tolist(), scenario_names(timeline).iloc[split.row].tolist(), split.total
        ),
    )


def on_nodes(timeline: Timeline) -> pd.DataFrame:
    """By pod: its task and node, "" where that is not known, and from when to when it was there."""
    pods = timeline.pods[timeline.of_runs(*ON_NODE)]
    each = pods.assign(end_s=pods["end_s"].fillna(timeline.end_s)).groupby("pod")
    found = each.agg({"task": "first", "node": "first", "start_s": "min", "end_s": "max"})
    return found.assign(node=found["node"].astype(str).replace("nan", ""))


def by_tenant(tenant: Sequence[str], total: Floats) -> dict[str, OfTenant]:
    """How long the runs of each tenant took; empty where runs have none."""
    names = np.asarray(tenant, dtype=str)
    own = {str(name): total[names == name] for name in np.unique(names) if name}
    return {name: OfTenant(float(each.mean()), float(np.quantile(each, 0.95))) for name, each in own.items()}


def _before(timeline: Timeline, rows: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> float:
    """Mean seconds from the answer to the first pod, of runs with pods."""
    row = timeline.pods["row"].to_numpy()
    if timeline.executed:
        return 0.0
    new = beginnings(row)
    first = np.full(len(timeline.runs) + 1, np.nan)
    if new.size:
        first[row[new]] = np.minimum.reduceat(floats(timeline.pods, "start_s"), new)
    waited = first[rows] - floats(timeline.runs, "answered_s")[rows]
    return float(np.nanmean(waited)) if np.isfinite(waited).any() else 0.0


def seconds_by_task(timeline: Timeline, *phases: str) -> dict[str, Floats]:
    """By task, the seconds that each pod spent in these phases, as far as they ended."""
    pods = timeline.pods[timeline.of_runs(*phases) & np.isfinite(floats(timeline.pods, "end_s"))]
    lengths = (pods["end_s"] - pods["start_s"]).groupby([pods["task"].astype(str), pods["pod"]]).sum()
    return {str(task): each.to_numpy(dtype=np.float64) for task, each in lengths.groupby(level=0) if task}


def uploads(timeline: Timeline) -> dict[str, Floats]:
    """By task, the seconds that uploads of outputs took, as far as logs were read."""
    samples = timeline.labelled(UPLOAD_SECONDS, "task")
    return {str(task): floats(own, "value") for task, own in samples.groupby("task", sort=False)}
