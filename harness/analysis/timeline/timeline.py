"""The sealed run as typed frames: the one input of analysis, detectors and reports.

Instants become float seconds after the test's start (t0); a missing instant is NaN. Their names end in ``_s``, as in
``schedule.csv``.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
import pandas as pd

from harness.analysis.timeline.clocks import ahead, set_back
from harness.analysis.timeline.columns import (
    Bools,
    Floats,
    Ints,
    beginnings,
    blocks,
    category,
    distinct,
    floats,
    looked_up,
    occurring,
    shifted,
    within,
)
from harness.analysis.timeline.joining import (
    described_tasks,
    joined_pods,
    joined_runs,
    namespace_of,
    observed_runs,
    of_others,
    runs_of_events,
    twins,
)
from harness.analysis.timeline.memory import release, remembered
from harness.analysis.timeline.names import Names
from harness.model import Outcome, Plan
from harness.model.argo.nodes import DRIVER_SUFFIX
from harness.model.phases import COMPUTING, LASTING, POD_PHASES, RUN, SCHEDULING, SERVICE_PHASES, UNSCHEDULABLE
from harness.model.text.inert import shell_word
from harness.reasons import Catalogue, builtin

__all__ = ["Bools", "Floats", "Ints", "Timeline", "beginnings", "distinct", "floats"]

_OF_EVENTS = ("kind", "reason", "source", "type", "namespace")
_OF_RUNS = ("outcome", "state")  # repeated texts, as are these
_LARGE = 2**20  # rows
TEST_STARTED = "Started"
TEST_INTERRUPTED = "Interrupted"
WORKER_LOST = "WorkerLost"
CLOCK_STEPPED = "ClockStepped"
LATE_ROWS = "LateRows"
RECOVERED = "Recovered"
TOKEN_EXPIRES = "TokenExpires"  # noqa: S105  # a reason of events


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """What happened, as recorded by the load and the observer.

    Attributes:
        plan: what was intended.
        start_at: t0 as UTC ns; all ``_s`` below count from it.
        end_s: the last instant anything was recorded.
        runs: one row per arrival, by seq: seq, run, name, scenario_id, tenant, worker, outcome, status, error, due_s,
            sent_s, answered_s, created_s, over_s (the platform's timestamp), said_s (when the platform was first seen
            to report the end), state ("" while the run is unfinished), message (the platform's error); outcome and
            state are categories.
        foreign: number of observed runs that are not in the ledger.
        twins: of those, the ones with the name of an accepted arrival, created since it was sent.
        tasks: of some runs, as the platform described them: row (of `runs`), task (its id), start_s.
        pods: one row per interval of a pod of these runs, those of a pod and of a run adjacent: row (of `runs`), pod
            (position in `names`), task, phase (index into POD_PHASES), start_s, end_s, node, reason (what the cluster
            stated while it lasted).
        others_pods: the same, with run (the platform's id) instead of row, of runs that do not belong to this test.
        names: of all these pods; "" where the position stands for a run as a whole.
        events: at_s, kind, object, reason, message, source, run, count, type, namespace, of this test's runs, the
            platform and the cluster; kind, reason, source, type and namespace are categories.
        samples: metric, at_s, value, labels (a JSON text), of the test's own time (see `LASTING`).
        nodes: name, pool, created_s, ready_s, gone_s, gpus_s (when its GPUs could be allocated, by the observer's
            clock), cpu, memory, gpu, pods, spot, price, virtual (no machine), machine (its type's name).
        skew_s: by how much the platform's clock is ahead; its timestamps above are already corrected.
        catalogue: what the texts mean that the cluster stated.
        memory: results of `remembered` functions.
    """

    plan: Plan
    start_at: int
    end_s: float
    runs: pd.DataFrame
    foreign: int
    twins: int
    tasks: pd.DataFrame
    pods: pd.DataFrame
    others_pods: pd.DataFrame
    names: Names
    events: pd.DataFrame
    samples: pd.DataFrame
    nodes: pd.DataFrame
    skew_s: float = 0.0
    catalogue: Catalogue = field(default_factory=builtin, repr=False)
    memory: dict[Callable[..., Any], Any] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def from_frames(
        cls, plan: Plan, frames: Mapping[str, pd.DataFrame], catalogue: Catalogue | None = None
    ) -> "Timeline":
        """Join the tables of a run folder (`harness.store.tables.load`), which need not be kept meanwhile."""
        submissions, spans, samples, recorded = (frames[name] for name in ("submissions", "spans", "samples", "nodes"))
        listed, names, events = frames["runs"], Names(frames["steps"]), frames["events"]
        events = events.assign(**{name: category(events[name]) for name in _OF_EVENTS if name in events})
        del frames  # each table is freed once it is joined, unless the caller keeps it
        start_at = _start(plan, submissions, spans, events)
        whole = looked_up(names.where(lambda texts: texts == ""), spans["step"].to_numpy())
        observed = observed_runs(spans[whole & (spans["phase"] == RUN).to_numpy(dtype=bool)], listed, events, start_at)
        ids = listed["run"]
        del listed
        large = len(spans) > _LARGE
        if large:
            release()
        runs, unknown = joined_runs(submissions, observed, start_at)
        runs = runs.assign(**{name: category(runs[name]) for name in _OF_RUNS})
        skew_s = ahead(floats(runs, "sent_s"), floats(runs, "answered_s"), floats(runs, "created_s"))
        tasks = described_tasks(spans, ids, names, runs["run"], start_at)
        foreign, samples = observed[unknown], _of_test(shifted(samples, start_at, at="at_s"))
        happened = shifted(events, start_at, at="at_s")
        columns = {str(name): spans[name] for name in spans}
        del submissions, spans, events, observed  # and each column of spans once its intervals are there
        if large:
            release()  # as much as the largest column
        pods, others_pods = joined_pods(columns, ids, ~whole, runs["run"], start_at)
        if "gpus_at" not in recorded:  # in older folders
            recorded = recorded.assign(gpus_at=pd.array([pd.NA] * len(recorded), dtype="Int64"))
        instants = {"created_at": "created_s", "ready_at": "ready_s", "gone_at": "gone_s", "gpus_at": "gpus_s"}
        nodes = shifted(recorded, start_at, **instants)
        for name, default in (("virtual", False), ("machine", ""), ("ephemeral", 0.0)):  # in older folders
            if name not in nodes:
                nodes[name] = default
        if skew_s:
            set_back(skew_s, runs, (pods, others_pods), tasks, happened, nodes)
        happened = happened.assign(run=runs_of_events(happened, runs["run"]))
        own = np.zeros(len(names), dtype=np.bool_)
        own[pods["pod"].to_numpy()] = True
        return cls(
            plan=plan,
            start_at=start_at,
            end_s=_last(runs, pods, others_pods, happened, samples),
            runs=runs,
            foreign=len(foreign),
            twins=twins(foreign, runs, skew_s),
            tasks=tasks,
            pods=pods,
            others_pods=others_pods,
            names=names,
            events=happened[~of_others(happened, plan, runs["run"], names, own)].reset_index(drop=True),
            samples=samples,
            nodes=nodes,
            skew_s=skew_s,
            catalogue=catalogue or builtin(),
        )

    @property
    def large(self) -> bool:
        """There are enough pods for memory to matter."""
        return len(self.pods) > _LARGE

    @property
    def described(self) -> Ints:
        """Rows of `runs` whose tasks were read from the platform, ascending."""
        return np.unique(self.tasks["row"].to_numpy())

    @property
    def interrupted(self) -> bool:
        """The test was stopped by Ctrl-C or SIGTERM."""
        return bool(len(self.events_of("Test", TEST_INTERRUPTED)))

    def events_of(self, kind: str, *reasons: str) -> pd.DataFrame:
        """Events of one kind that have one of these reasons; "Test" is the kind of those that the load recorded."""
        chosen = (self.events["kind"] == kind) & self.events["reason"].isin(reasons)
        return self.events[chosen.to_numpy(dtype=bool)]

    def metric(self, name: str) -> pd.DataFrame:
        """The samples of one metric, by time."""
        return self.samples.take(self._by_metric.get(name, []))

    def labelled(self, metric: str, *names: str, **values: str) -> pd.DataFrame:
        """The samples of one metric that have these values of labels, by time; the named labels as columns.

        A label that a sample does not have is "".
        """
        samples = self.metric(metric)
        parsed = {text: orjson.loads(text or "{}") for text in map(str, samples["labels"].unique())}
        labels = [parsed[text] for text in map(str, samples["labels"])]
        columns = {name: pd.Series([str(of.get(name, "")) for of in labels], samples.index, str) for name in names}
        chosen = np.array([all(str(of.get(name)) == value for name, value in values.items()) for of in labels], bool)
        return samples.assign(**columns)[chosen]

    @property
    @remembered
    def _by_metric(self) -> Mapping[str, Ints]:
        by_metric = self.samples.groupby("metric", observed=True)
        return {str(name): np.asarray(places) for name, places in by_metric.indices.items()}

    def stretches(self, phase: str) -> pd.DataFrame:
        """The rows of `pods` in one phase."""
        return self.pods[(self.pods["phase"] == POD_PHASES.index(phase)).to_numpy(dtype=bool)]

    def of_runs(self, *phases: str) -> Bools:
        """Per row of `pods`: it is in one of these phases."""
        phase = self.pods["phase"].to_numpy()
        found = np.zeros(phase.size, dtype=np.bool_)
        for number in np.flatnonzero(np.isin(POD_PHASES, phases)).tolist():
            found |= phase == number
        return found

    def seconds_of(self, chosen: Bools) -> Floats:
        """How long the chosen rows of `pods` lasted, open ones until the end of the observation."""
        start, end = floats(self.pods, "start_s"), floats(self.pods, "end_s")
        seconds, low = np.empty(np.count_nonzero(chosen)), 0
        for here in blocks(chosen.size):
            part = np.nan_to_num(end[here][chosen[here]], nan=self.end_s) - start[here][chosen[here]]
            seconds[low : low + part.size] = part
            low += part.size
        return seconds

    def numbers_of(self, names: Iterable[str]) -> Ints:
        """The positions in `names` of the pods with these names, ascending."""
        wanted = set(names)
        if not wanted:
            return np.zeros(0, dtype=np.int64)
        return np.flatnonzero(self.names.where(lambda texts: within(texts, wanted)))

    def pods_called(self, names: Iterable[str]) -> pd.DataFrame:
        """The rows of `pods` of the pods with these names, and the names as a column `step`."""
        number = self.numbers_of(names)
        frame = self.pods[np.isin(self.pods["pod"].to_numpy(), number)] if number.size else self.pods[:0]
        return frame.assign(step=self.names.take(frame["pod"].to_numpy()).to_numpy())

    @property
    def waiting_for_run_nodes(self) -> pd.DataFrame:
        """The rows of `pods` that are unschedulable, without drivers that run elsewhere."""
        return self.pods[self.of_runs(UNSCHEDULABLE) & ~self.drives_elsewhere]

    @property
    def namespace(self) -> str:
        """The runs' namespace as a word of a command."""
        return shell_word(namespace_of(self.plan, self.events, self.runs["run"]))

    @property
    @remembered
    def run_nodes(self) -> pd.DataFrame:
        """The machines of the pools that the runs' steps ran on; all machines when that is unknown.

        Where no pod but drivers was on a known node, theirs.
        """
        nodes, homes = self.nodes, self.pods["node"].cat
        codes = homes.codes.to_numpy()
        for chosen in (~self._of_drivers, np.ones(codes.size, dtype=np.bool_)):
            # Rows without a node have the code -1, the node "" or none.
            hosts = homes.categories[occurring(codes[chosen], len(homes.categories))]
            if pools := set(nodes["pool"][nodes["name"].isin(hosts)]):
                return self.machines[self.machines["pool"].isin(pools)]
        return self.machines

    @property
    @remembered
    def drives_elsewhere(self) -> Bools:
        """Per row of `pods`: of a driver on another pool than the steps', or one that waits where all are on others.

        A taint keeps drivers, which tolerate none, off the pool of the steps: they take no room there.
        """
        homes, drivers = self.pods["node"].cat, self._of_drivers
        known = np.append(np.asarray(homes.categories.isin(self.nodes["name"]), dtype=np.bool_), False)
        own = np.append(np.asarray(homes.categories.isin(self.run_nodes["name"]), dtype=np.bool_), False)
        codes = homes.codes.to_numpy()
        here, placed = drivers & looked_up(own, codes), drivers & looked_up(known, codes)
        apart = placed | bool(placed.any() and not here.any())
        return np.asarray(drivers & ~here & apart, dtype=np.bool_)

    @property
    def _of_drivers(self) -> Bools:
        """Per row of `pods`: of one of KFP's drivers."""
        tasks = self.pods["task"].cat
        of_driver = np.asarray(tasks.categories.str.endswith(DRIVER_SUFFIX), dtype=np.bool_)
        return looked_up(of_driver, tasks.codes.to_numpy())

    @property
    @remembered
    def machines(self) -> pd.DataFrame:
        """The nodes without the virtual ones, which have no size: a cloud runs each of their pods by itself."""
        return self.nodes[~self.nodes["virtual"].to_numpy(dtype=bool)]

    @property
    @remembered
    def on_virtual(self) -> Bools:
        """Per row of `pods`: it is on a virtual node."""
        names = self.nodes["name"][self.nodes["virtual"].to_numpy(dtype=bool)]
        homes = self.pods["node"].cat
        # Rows without a node have the code -1, which is the last of these.
        virtual = np.append(np.asarray(homes.categories.isin(names), dtype=np.bool_), False)
        return looked_up(virtual, homes.codes.to_numpy())

    @property
    def answers_are_results(self) -> bool:
        """A run ends with the answer to its submission, as on a synchronous service."""
        answered, over = floats(self.runs, "answered_s"), floats(self.runs, "over_s")
        known = np.isfinite(answered) & np.isfinite(over)
        return bool(known.any() and np.mean(over[known] <= answered[known]) > 0.5)

    @property
    @remembered
    def executed(self) -> bool:
        """Runs are executions of a service that reports its phases, and not made of pods."""
        return bool(self.of_runs(COMPUTING).any()) and not bool(self.of_runs(SCHEDULING).any())

    @property
    def reported(self) -> Bools:
        """Per row of `pods`: no pod, but a phase that a run made of pods reports itself."""
        return self.of_runs(*SERVICE_PHASES) & (not self.executed)

    @property
    def is_over(self) -> Bools:
        """Per row of `runs`: the platform reported its end."""
        return (self.runs["state"] != "").to_numpy(dtype=bool)

    @property
    def is_open(self) -> Bools:
        """Per row of `runs`: accepted, and unfinished when the observation ended (censored)."""
        return (self.runs["outcome"] == Outcome.ACCEPTED.value).to_numpy(dtype=bool) & ~self.is_over


def _of_test(samples: pd.DataFrame) -> pd.DataFrame:
    """Samples of the test's own time, and what holds from before: other values are those of an earlier test."""
    kept = (samples["at_s"] >= 0) | samples["metric"].isin(LASTING)
    return samples if kept.all() else samples[kept].reset_index(drop=True)


def _start(plan: Plan, submissions: pd.DataFrame, spans: pd.DataFrame, events: pd.DataFrame) -> int:
    """t0: as the load recorded it, else the first arrival, else the plan's, else the first span."""
    started = events[(events["kind"] == "Test") & (events["reason"] == TEST_STARTED)]["at"]
    for instants in (started, submissions["due_at"]):
        if len(instants):
            return int(instants.min())
    if plan.started_at or not len(spans):
        return plan.started_at
    return int(spans["started_at"].min())


def _last(runs: pd.DataFrame, *frames: pd.DataFrame) -> float:
    stamps = [floats(runs, name) for name in ("due_s", "answered_s", "over_s")]
    stamps += [floats(frame, name) for frame in frames for name in ("start_s", "end_s", "at_s") if name in frame]
    latest = max(float(np.fmax.reduce(stamp, initial=-np.inf)) for stamp in stamps)
    return latest if np.isfinite(latest) else 0.0
