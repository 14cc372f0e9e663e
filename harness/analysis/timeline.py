"""The sealed run as typed frames: the one input of analysis, detectors and reports.

Instants become float seconds after the test's start (t0), so that every later step is plain arithmetic; a missing
instant is NaN. Names end in ``_s`` as in ``schedule.csv``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from harness.analysis.clocks import ahead
from harness.model.phases import COMPUTING, POD_PHASES, RUN, TERMINAL_STATES
from harness.model.plan import Plan
from harness.model.records import Outcome

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

TEST_STARTED = "Started"
TEST_INTERRUPTED = "Interrupted"
WORKER_LOST = "WorkerLost"


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """What happened, from whoever saw it.

    Attributes:
        plan: what was intended.
        start_at: t0 as UTC ns; all ``_s`` below count from it.
        end_s: the last instant anything was recorded.
        runs: a row an arrival, by seq: seq, run, name, scenario_id, worker, outcome, status, error, due_s, sent_s,
            answered_s, created_s, over_s (the platform's stamp), said_s (when the platform was first seen to say so),
            state ("" while the run goes on), message (the platform's error).
        foreign: number of observed runs that are not in the ledger.
        pods: a row a stretch of a pod, all of a pod and all pods of a run together: row (of `runs`, -1 when foreign),
            pod (position in `names`), task, phase (index into POD_PHASES), start_s, end_s, node.
        names: of the pods; "" where the number stands for a run as a whole.
        events: at_s, kind, object, reason, message, source, run, count, type.
        samples: metric, at_s, value, labels (a JSON text).
        nodes: name, pool, created_s, ready_s, gone_s, cpu, memory, gpu, pods, spot, price.
        skew_s: what the platform's clock was found to be ahead; its stamps above are set back by it already.
    """

    plan: Plan
    start_at: int
    end_s: float
    runs: pd.DataFrame
    foreign: int
    pods: pd.DataFrame
    names: "pd.Series[str]"
    events: pd.DataFrame
    samples: pd.DataFrame
    nodes: pd.DataFrame
    skew_s: float = 0.0

    @classmethod
    def from_frames(cls, plan: Plan, frames: Mapping[str, pd.DataFrame]) -> "Timeline":
        """Join the tables of a run folder (`harness.store.tables.load`)."""
        submissions, spans, events = frames["submissions"], frames["spans"], frames["events"]
        start_at = _start(plan, submissions, spans, events)
        names = frames["steps"]["step"]
        whole = (names == "").to_numpy(dtype=bool)[spans["step"].to_numpy()]
        observed = _observed_runs(
            _as_texts(spans[whole & (spans["phase"] == RUN).to_numpy(dtype=bool)]), events, start_at
        )
        runs = _runs(submissions, observed, start_at)
        skew_s = ahead(floats(runs, "sent_s"), floats(runs, "answered_s"), floats(runs, "created_s"))
        pods = _pods(spans, ~whole, runs["run"], start_at)
        happened = _shifted(events, start_at, at="at_s")
        nodes = _shifted(frames["nodes"], start_at, created_at="created_s", ready_at="ready_s", gone_at="gone_s")
        if skew_s:
            _set_back(skew_s, runs, pods, happened, nodes)
        samples = _shifted(frames["samples"], start_at, at="at_s")
        return cls(
            plan=plan,
            start_at=start_at,
            end_s=_last(runs, pods, happened, samples),
            runs=runs,
            foreign=int(np.count_nonzero(position(observed["run"], runs["run"]) < 0)),
            pods=pods,
            names=names,
            events=happened,
            samples=samples,
            nodes=nodes,
            skew_s=skew_s,
        )

    @property
    def interrupted(self) -> bool:
        """The test was stopped by Ctrl-C or SIGTERM."""
        return bool(len(self.test_events(TEST_INTERRUPTED)))

    def test_events(self, reason: str) -> pd.DataFrame:
        """What the load said of the test itself."""
        return self.events[(self.events["kind"] == "Test") & (self.events["reason"] == reason)]

    def metric(self, name: str) -> pd.DataFrame:
        """The samples of one metric, in the order of time."""
        return self.samples[self.samples["metric"] == name]

    def stretches(self, phase: str) -> pd.DataFrame:
        """The rows of `pods` in one phase."""
        return self.pods[(self.pods["phase"] == POD_PHASES.index(phase)).to_numpy(dtype=bool)]

    def numbers_of(self, names: Iterable[str]) -> Ints:
        """The positions in `names` of the pods with these names, ascending."""
        wanted = set(names)
        if not wanted:
            return np.zeros(0, dtype=np.int64)
        return np.flatnonzero(self.names.isin(wanted).to_numpy(dtype=bool))

    def pods_called(self, names: Iterable[str]) -> pd.DataFrame:
        """The rows of `pods` of the pods with these names, and the names as a column `step`."""
        number = self.numbers_of(names)
        found = self.pods[np.isin(self.pods["pod"].to_numpy(), number)] if number.size else self.pods[:0]
        return found.assign(step=self.names.take(found["pod"].to_numpy()).to_numpy())

    @property
    def namespace(self) -> str:
        """Of the platform's runs; KFP's own when the plan does not say."""
        return str(self.plan.target_options.get("namespace") or "kubeflow")

    @property
    def workers(self) -> pd.DataFrame:
        """The nodes of the pools that the runs' pods ran on; all nodes when that was not seen."""
        return _workers(self)

    @property
    def answers_are_results(self) -> bool:
        """A run is over with its submission's answer, as on services that nobody lists: to answer is to work."""
        answered, over = floats(self.runs, "answered_s"), floats(self.runs, "over_s")
        known = np.isfinite(answered) & np.isfinite(over)
        return bool(known.any() and np.mean(over[known] <= answered[known]) > 0.5)

    @property
    def executed(self) -> bool:
        """Runs are executions of a service, which tells its phases, and not made of pods."""
        return bool((self.pods["phase"] == POD_PHASES.index(COMPUTING)).any())

    @property
    def is_over(self) -> Bools:
        """Per row of `runs`: the platform said that the run is over."""
        return (self.runs["state"] != "").to_numpy(dtype=bool)

    @property
    def is_open(self) -> Bools:
        """Per row of `runs`: accepted, and not over when the observation ended (censored)."""
        return (self.runs["outcome"] == Outcome.ACCEPTED.value).to_numpy(dtype=bool) & ~self.is_over


@lru_cache(maxsize=1)  # every detector asks; a timeline never changes
def _workers(timeline: Timeline) -> pd.DataFrame:
    nodes, homes = timeline.nodes, timeline.pods["node"].cat
    of_runs = homes.codes.to_numpy()[timeline.pods["row"].to_numpy() >= 0]
    hosts = homes.categories[np.bincount(of_runs, minlength=len(homes.categories)) > 0]
    pools = set(nodes["pool"][nodes["name"].isin(hosts)])
    return nodes[nodes["pool"].isin(pools)] if pools else nodes


def floats(frame: pd.DataFrame, name: str) -> Floats:
    """A numeric column as an array, not to be written to; what is missing is NaN."""
    if frame[name].dtype == np.float64:
        return frame[name].to_numpy()
    return frame[name].to_numpy(dtype=np.float64, na_value=np.nan)


def after(instants: "pd.Series[int]", start_at: int) -> Floats:
    """UTC nanoseconds (Int64) as seconds after `start_at`; subtracted as integers, so no digit is lost."""
    missing = instants.isna().to_numpy(dtype=bool)
    integers = instants.to_numpy(dtype=np.int64, na_value=start_at, copy=True)
    integers -= start_at
    shifted: Floats = integers / 1e9
    shifted[missing] = np.nan
    return shifted


def _start(plan: Plan, submissions: pd.DataFrame, spans: pd.DataFrame, events: pd.DataFrame) -> int:
    """t0: as the load said it, else the first arrival, else the plan's, else the first thing seen."""
    said = events[(events["kind"] == "Test") & (events["reason"] == TEST_STARTED)]["at"]
    for instants in (said, submissions["due_at"]):
        if len(instants):
            return int(instants.min())
    if plan.started_at or not len(spans):
        return plan.started_at
    return int(spans["started_at"].min())


def _shifted(frame: pd.DataFrame, start_at: int, **names: str) -> pd.DataFrame:
    columns = {new: after(frame[old], start_at) for old, new in names.items()}
    return frame.drop(columns=list(names)).assign(**columns).reset_index(drop=True)


def _set_back(skew_s: float, runs: pd.DataFrame, pods: pd.DataFrame, events: pd.DataFrame, nodes: pd.DataFrame) -> None:
    """Bring the platform's stamps to the harness's clock; what the harness stamped stays."""
    for frame, names in (
        (runs, ("created_s", "over_s", "said_s")),
        (pods, ("start_s", "end_s")),
        (nodes, ("created_s", "ready_s", "gone_s")),
    ):
        for name in names:
            frame[name] -= skew_s
    events["at_s"] -= np.where(events["source"] == "kubernetes", skew_s, 0.0)


def position(values: "pd.Series[str]", among: "pd.Series[str]") -> Ints:
    """Where each value first stands in `among`; -1 where it does not."""
    found = pc.index_in(pa.array(values), value_set=pa.array(among))
    return np.asarray(found.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)


def _as_texts(frame: pd.DataFrame) -> pd.DataFrame:
    """Categories as the texts that they stand for."""
    return frame.astype({name: "str" for name in frame if isinstance(frame[name].dtype, pd.CategoricalDtype)})


def _picked(column: "pd.Series[str]", at: Ints) -> "pd.Series[str]":
    """The texts at these positions; "" at -1."""
    if not len(column):
        return pd.Series([""] * at.size, dtype="str")
    return column.fillna("").take(np.maximum(at, 0)).reset_index(drop=True).mask(at < 0, "")


def _picked_floats(values: Floats, at: Ints) -> Floats:
    """The values at these positions; NaN at -1."""
    return np.where(at >= 0, np.append(values, np.nan)[at], np.nan)


def _observed_runs(spans: pd.DataFrame, events: pd.DataFrame, start_at: int) -> pd.DataFrame:
    """What the platform said of runs, a row each: run, name, created_s, over_s, said_s, state, message."""
    ends = events[(events["kind"] == "Run").to_numpy(dtype=bool) & events["reason"].isin(TERMINAL_STATES).to_numpy()]
    ends = ends.drop_duplicates("object", keep="last")
    said_s = after(ends["at"], start_at)
    runs = pd.concat([spans["run"], ends["object"]], ignore_index=True).drop_duplicates(ignore_index=True)
    of_span, of_end = position(runs, spans["run"]), position(runs, ends["object"])
    said = _picked_floats(said_s, of_end)
    ended = _picked_floats(after(spans["ended_at"], start_at), of_span)
    return pd.DataFrame(
        {
            "run": runs,
            "name": _picked(spans["task"], of_span),  # a run's span carries its name where a step's carries the task
            "created_s": _picked_floats(after(spans["started_at"], start_at), of_span),
            "over_s": np.where(np.isfinite(said), np.where(np.isfinite(ended), ended, said), np.nan),
            "said_s": said,
            "state": _picked(ends["reason"], of_end),
            "message": _picked(ends["message"], of_end),
        }
    )


def _runs(submissions: pd.DataFrame, observed: pd.DataFrame, start_at: int) -> pd.DataFrame:
    """The ledger beside what the platform said."""
    if not len(submissions):
        return _unsent(observed)
    runs = _shifted(submissions, start_at, due_at="due_s", sent_at="sent_s", answered_at="answered_s")
    runs = runs.rename(columns={"run_name": "name"})
    for name in ("run", "error"):
        runs[name] = runs[name].fillna("")
    runs = _recover(runs, observed)
    at = np.where((runs["run"] != "").to_numpy(dtype=bool), position(runs["run"], observed["run"]), -1)
    seen = {name: _picked_floats(floats(observed, name), at) for name in ("created_s", "over_s", "said_s")}
    return runs.assign(**seen, state=_picked(observed["state"], at), message=_picked(observed["message"], at))


def _recover(runs: pd.DataFrame, observed: pd.DataFrame) -> pd.DataFrame:
    """A submission without an answer whose run exists was accepted: the answer was lost, not the run."""
    unanswered = ((runs["outcome"] == Outcome.REJECTED.value) & runs["status"].isna()).to_numpy(dtype=bool)
    unclaimed = (position(observed["run"], runs["run"]) < 0) & (observed["name"] != "").to_numpy(dtype=bool)
    named = observed[unclaimed].reset_index(drop=True)
    if not unanswered.any() or not len(named):
        return runs
    at = np.where(unanswered, position(runs["name"], named["name"]), -1)
    recovered = at >= 0
    runs.loc[recovered, "run"] = named["run"].take(at[recovered]).to_numpy()
    runs.loc[recovered, "outcome"] = Outcome.ACCEPTED.value
    return runs


def _unsent(observed: pd.DataFrame) -> pd.DataFrame:
    """Observed without a load of ours: a run is due, sent and answered when the platform created it."""
    runs = observed.sort_values(["created_s", "run"], kind="stable", ignore_index=True)
    count = len(runs)
    created = floats(runs, "created_s")
    return runs.assign(
        seq=pd.array(range(count), dtype="Int64"),
        scenario_id="",
        worker=pd.array([0] * count, dtype="Int64"),
        outcome=Outcome.ACCEPTED.value,
        status=pd.array([pd.NA] * count, dtype="Int64"),
        error="",
        due_s=created,
        sent_s=created,
        answered_s=created,
    )


def _pods(spans: pd.DataFrame, of_pod: Bools, runs: "pd.Series[str]", start_at: int) -> pd.DataFrame:
    """Stretches of pods; texts that repeat are categories, so that millions of rows stay small."""
    of_category = position(pd.Series(spans["phase"].cat.categories), pd.Series(POD_PHASES, dtype="str"))
    phase = np.append(of_category, -1).astype(np.int8)[spans["phase"].cat.codes.to_numpy()]
    kept = of_pod & (phase >= 0)
    of_run = spans["run"].cat.categories
    row_of_run = np.where(of_run != "", position(pd.Series(of_run), runs), -1).astype(np.int32)
    # Column by column: a copy of all columns at once would double the memory of the largest table.
    return pd.DataFrame(
        {
            "row": row_of_run[spans["run"].cat.codes.to_numpy()[kept]],
            "pod": spans["step"].to_numpy()[kept],
            "task": _category(spans["task"]).array[kept],
            "phase": phase[kept],
            "start_s": after(spans["started_at"], start_at)[kept],
            "end_s": after(spans["ended_at"], start_at)[kept],
            "node": _category(spans["node"]).array[kept],
        },
        copy=False,
    )


def _category(column: "pd.Series[str]") -> "pd.Series[Any]":
    """The column as categories, with "" for what is missing."""
    known = column.astype("category")
    if "" not in known.cat.categories:
        known = known.cat.add_categories("")
    return known.fillna("")


def distinct(numbers: "NDArray[np.integer[Any]]") -> int:
    """How many different numbers; equal ones stand together."""
    return int(np.count_nonzero(np.diff(numbers))) + 1 if numbers.size else 0


def _last(runs: pd.DataFrame, *frames: pd.DataFrame) -> float:
    stamps = [floats(runs, name) for name in ("due_s", "answered_s", "over_s")]
    stamps += [floats(frame, name) for frame in frames for name in ("start_s", "end_s", "at_s") if name in frame]
    latest = max(float(np.fmax.reduce(each, initial=-np.inf)) for each in stamps)
    return latest if np.isfinite(latest) else 0.0
