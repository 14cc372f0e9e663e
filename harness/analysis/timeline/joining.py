"""Join the tables of a run folder: the ledger with the platform's runs, and the intervals of pods.

Also who owns a record: this test's runs or the platform, which are judged, or another workload.
"""

from collections.abc import Collection
from typing import Any

import numpy as np
import pandas as pd

from harness.analysis.timeline.clocks import RESOLUTION_S, TOLERANCE_S, ahead
from harness.analysis.timeline.columns import (
    Bools,
    Floats,
    Ints,
    after,
    beginnings,
    blocks,
    category,
    floats,
    looked_up,
    position,
    shifted,
    within,
)
from harness.analysis.timeline.names import Names
from harness.model.phases import POD_PHASES, TASK, TERMINAL_STATES
from harness.model.plan import Plan
from harness.model.records import Outcome

# Components of Kubernetes, such as autoscalers.
_SYSTEM = "kube-system"
_DEFAULT = "kubeflow"  # of KFP
# A decision about the cluster's nodes, reported in an event of a pod that happens to wait.
_DECISIONS = frozenset({"TriggeredScaleUp"})


def of_others(events: pd.DataFrame, plan: Plan, runs: Collection[str], names: Names, own: Bools) -> Bools:
    """Per event: it belongs to a run that is not of this test, or to an object that is neither its nor the platform's.

    Args:
        events: as recorded; older folders don't name the objects' namespaces, so that only runs identify them.
        plan: names the platform's namespaces, and the runs' if it was given.
        runs: this test's.
        names: of all pods.
        own: per name, whether it is of a pod of this test's runs; where none was observed, those in the runs' namespace
            count as its.
    """
    run, of_pod = events["run"], (events["kind"] == "Pod").to_numpy(dtype=bool)
    ours = within(run, runs) & (run != "").to_numpy(dtype=bool)
    if of_pod.any():
        # Looked up the other way round: a large test has millions of pods, and events of some.
        said = events["object"][of_pod].reset_index(drop=True)
        seen = own & names.where(lambda texts: within(texts, said))
        ours[of_pod] |= within(said, names.take(np.flatnonzero(seen)))
    apart = run != ""
    if "namespace" in events:
        platform = {"", _SYSTEM, *plan.observer.platform_namespaces}
        with_runs = events["namespace"].isin({namespace_of(plan, events, runs), *plan.tenants})
        apart |= ~events["namespace"].fillna("").isin(platform) & ~(with_runs & (~of_pod | (not own.any())))
    return np.asarray(apart & ~ours & ~events["reason"].isin(_DECISIONS), dtype=np.bool_)


def runs_of_events(events: pd.DataFrame, runs: Collection[str]) -> "pd.Series[str]":
    """The run of each event, "" for none; a ReplicaSet called ``RUN-…`` is the run's.

    Only the name shows it for a pod that was never created, such as a Dask worker's that a quota refuses.

    Args:
        events: as recorded.
        runs: this test's.
    """
    found = events["run"].fillna("")
    unnamed = (found == "") & (events["kind"] == "ReplicaSet")
    if not unnamed.any():
        return found
    known = set(runs) - {"", None}
    return found.mask(unnamed, events["object"].map(lambda name: _prefix(str(name), known) if name else ""))


def _prefix(name: str, known: Collection[str]) -> str:
    """The longest of the known names that the name continues after a hyphen; "" for none."""
    ends = (at for at in range(len(name) - 1, 0, -1) if name[at] == "-")
    return next((name[:at] for at in ends if name[:at] in known), "")


def namespace_of(plan: Plan, events: pd.DataFrame, runs: Collection[str]) -> str:
    """The runs' namespace: as given, else where most events of their pods happened, else KFP's default.

    Args:
        plan: of the test.
        events: as recorded.
        runs: this test's.
    """
    given = str(plan.target_options.get("namespace") or "")
    if given or "namespace" not in events:
        return given or _DEFAULT
    of_pods = events.loc[events["kind"] == "Pod", ["run", "namespace"]]
    places = of_pods["namespace"][within(of_pods["run"], runs)].fillna("")
    seen = places[places != ""].mode()
    return str(seen.iloc[0]) if len(seen) else _DEFAULT


_OF_PODS = {
    "start_s": "started_at", "end_s": "ended_at", "pod": "step", "task": "task", "node": "node", "reason": "reason",
}  # fmt: skip


def observed_runs(spans: pd.DataFrame, listed: pd.DataFrame, events: pd.DataFrame, start_at: int) -> pd.DataFrame:
    """The platform's runs, one row each: run, name, created_s, over_s, said_s, state, message.

    Args:
        spans: of runs as a whole.
        listed: by the number of spans' runs, their ids (run) and names.
        events: among them, the ends that the platform reported.
        start_at: t0 as UTC ns.
    """
    spans = spans.iloc[beginnings(spans["run"].to_numpy())]  # a run's are adjacent
    run, name = (listed[each].take(spans["run"].to_numpy()).reset_index(drop=True) for each in ("run", "name"))
    said = (events["kind"] == "Run").to_numpy(dtype=bool) & events["reason"].isin(TERMINAL_STATES).to_numpy(dtype=bool)
    ends = events.loc[said, ["at", "object", "reason", "message"]]
    ends, seen = _last_of_each(ends, position(ends["object"], run))
    reported_s = after(ends["at"], start_at)
    alone = seen < 0
    runs = pd.concat([run, ends["object"][alone]], ignore_index=True)
    of_span = np.append(np.arange(len(spans)), np.full(np.count_nonzero(alone), -1))
    of_end = np.full(len(runs), -1)
    of_end[np.append(seen[~alone], np.arange(len(spans), len(runs)))] = np.append(*map(np.flatnonzero, (~alone, alone)))
    reported = _picked_floats(reported_s, of_end)
    ended = _picked_floats(after(spans["ended_at"], start_at), of_span)
    return pd.DataFrame(
        {
            "run": runs,
            "name": _picked(name, of_span),
            "created_s": _picked_floats(after(spans["started_at"], start_at), of_span),
            "over_s": np.where(np.isfinite(reported), np.where(np.isfinite(ended), ended, reported), np.nan),
            "said_s": reported,
            "state": _picked(ends["reason"], of_end),
            "message": _picked(ends["message"], of_end),
        }
    )


def _last_of_each(ends: pd.DataFrame, seen: Ints) -> tuple[pd.DataFrame, Ints]:
    """The last reported end of each run, by its number in `seen`, and where that is -1 by its id."""
    kept = ~pd.Series(seen).duplicated(keep="last").to_numpy() & (seen >= 0)
    kept[seen < 0] = ~ends["object"][seen < 0].duplicated(keep="last").to_numpy()
    return ends[kept], seen[kept]


def joined_runs(submissions: pd.DataFrame, observed: pd.DataFrame, start_at: int) -> tuple[pd.DataFrame, Bools]:
    """The ledger joined with the platform's runs, and which of these are not in the ledger."""
    if not len(submissions):
        return _unsent(observed), np.zeros(len(observed), dtype=np.bool_)
    runs = shifted(submissions, start_at, due_at="due_s", sent_at="sent_s", answered_at="answered_s")
    runs = runs.rename(columns={"run_name": "name"})
    for name in ("run", "error", "tenant"):
        runs[name] = runs[name].fillna("")
    runs = _recover(runs, observed)
    place = position(runs["run"], observed["run"])
    foreign = np.ones(len(observed), dtype=np.bool_)
    foreign[place[place >= 0]] = False
    # Which of several arrivals with one id the run is, is unknown: the first has it, the others have no end.
    one = (runs["run"] != "").to_numpy(dtype=bool) & ~pd.Series(place).duplicated().to_numpy(dtype=bool)
    at = np.where(one, place, -1)
    seen = {name: _picked_floats(floats(observed, name), at) for name in ("created_s", "over_s", "said_s")}
    runs = runs.assign(**seen, state=_picked(observed["state"], at), message=_picked(observed["message"], at))
    return runs, foreign


def _recover(runs: pd.DataFrame, observed: pd.DataFrame) -> pd.DataFrame:
    """A submission whose run exists counts as accepted if no answer came, or one without the run's id.

    Of several runs with its name the first one created since it was sent is it.
    """
    no_id = runs["status"].isna() | (runs["status"] // 100 == 2)
    unanswered = ((runs["outcome"] == Outcome.REJECTED.value) & no_id).to_numpy(dtype=bool)
    if not unanswered.any():
        return runs
    unclaimed = (position(observed["run"], runs["run"]) < 0) & (observed["name"] != "").to_numpy(dtype=bool)
    created_s = _picked_floats(floats(observed, "created_s"), position(runs["run"], observed["run"]))
    skew_s = ahead(floats(runs, "sent_s"), floats(runs, "answered_s"), created_s)
    named = observed[unclaimed]
    named = named[_since_sent(named, runs, skew_s)].sort_values("created_s", kind="stable", ignore_index=True)
    if not len(named):
        return runs
    at = np.where(unanswered, position(runs["name"], named["name"]), -1)
    recovered = at >= 0
    runs.loc[recovered, "run"] = named["run"].take(at[recovered]).to_numpy()
    runs.loc[recovered, "outcome"] = Outcome.ACCEPTED.value
    return runs


def twins(foreign: pd.DataFrame, runs: pd.DataFrame, skew_s: float) -> int:
    """How many of the `foreign` runs bear the name of an accepted arrival, and are not older than it."""
    accepted = runs[runs["outcome"] == Outcome.ACCEPTED.value].reset_index(drop=True)
    return int(np.count_nonzero(_since_sent(foreign[foreign["name"] != ""], accepted, skew_s)))


def _since_sent(named: pd.DataFrame, runs: pd.DataFrame, skew_s: float) -> Bools:
    """Which of the platform's runs have the name of an arrival and were created since it was sent.

    Older ones are of an earlier test with the same scenarios.
    """
    sent_s = _picked_floats(floats(runs, "sent_s"), position(named["name"], runs["name"]))
    return np.asarray(floats(named, "created_s") - skew_s + RESOLUTION_S + TOLERANCE_S >= sent_s)


def _unsent(observed: pd.DataFrame) -> pd.DataFrame:
    """Without a load of our own: a run is due, sent and answered when the platform created it."""
    runs = observed.sort_values(["created_s", "run"], kind="stable", ignore_index=True)
    count = len(runs)
    created = floats(runs, "created_s")
    return runs.assign(
        seq=pd.array(range(count), dtype="Int64"),
        scenario_id="",
        tenant="",
        worker=pd.array([0] * count, dtype="Int64"),
        outcome=Outcome.ACCEPTED.value,
        status=pd.array([pd.NA] * count, dtype="Int64"),
        error="",
        due_s=created,
        sent_s=created,
        answered_s=created,
    )


def joined_pods(
    spans: dict[str, "pd.Series[Any]"], ids: "pd.Series[str]", of_pod: Bools, runs: "pd.Series[str]", start_at: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Intervals of the pods of `runs`, and of other runs' pods; repeated texts are categories, to keep them small.

    The columns of spans are taken out one by one, since they are by far the largest table.
    """
    of_category = position(pd.Series(spans["phase"].cat.categories), pd.Series(POD_PHASES, dtype="str"))
    phase = looked_up(np.append(of_category, -1).astype(np.int8), spans.pop("phase").cat.codes.to_numpy())
    run = spans.pop("run").to_numpy()
    row_of_run = np.where((ids != "").to_numpy(dtype=bool), position(ids, runs), -1).astype(np.int32)
    row = looked_up(row_of_run, run)
    of_pod = of_pod & (phase >= 0)
    ours, theirs = of_pod & (row >= 0), of_pod & (row < 0)
    pods, beside = (
        {"row": row[ours], "phase": phase[ours]},
        {"run": ids.take(run[theirs]).array, "phase": phase[theirs]},
    )
    del run, row, phase, of_pod
    for name, old in _OF_PODS.items():
        column = spans.pop(old)
        pods[name], beside[name] = (_kept(column, chosen, start_at) for chosen in (ours, theirs))
    order = ["pod", "task", "phase", "start_s", "end_s", "node", "reason"]
    return (
        pd.DataFrame({name: pods.pop(name) for name in ("row", *order)}, copy=False),
        pd.DataFrame({name: beside.pop(name) for name in ("run", *order)}, copy=False),
    )


def _kept(column: "pd.Series[Any]", kept: Bools, start_at: int) -> Any:
    """The kept ones of steps, texts as categories, or instants as seconds."""
    if isinstance(column.dtype, pd.Int64Dtype):
        return _seconds(column, kept, start_at)
    if isinstance(column.dtype, pd.CategoricalDtype):
        return category(pd.Series(column.array[kept])).array
    return column.to_numpy()[kept]


def _seconds(instants: "pd.Series[int]", kept: Bools, start_at: int) -> Floats:
    """The kept ones of very many instants, in blocks: intermediate copies of the column would be as large as it."""
    seconds, low = np.empty(np.count_nonzero(kept)), 0
    for here in blocks(kept.size):
        part = after(instants.iloc[here], start_at)[kept[here]]
        seconds[low : low + part.size] = part
        low += part.size
    return seconds


def described_tasks(
    spans: pd.DataFrame, ids: "pd.Series[str]", names: Names, runs: "pd.Series[str]", start_at: int
) -> pd.DataFrame:
    """The tasks that the platform described: row (of `runs`), task (the platform's id of it), start_s."""
    known = spans["phase"].cat.categories
    code = known.get_loc(TASK) if TASK in known else -2  # no row has it
    of_task = spans[spans["phase"].cat.codes.to_numpy() == code]
    frame = pd.DataFrame({
        "row": position(ids.take(of_task["run"].to_numpy()), runs),
        "task": names.take(of_task["step"].to_numpy()).to_numpy(),
        "start_s": after(of_task["started_at"], start_at),
    })  # fmt: skip
    return frame[frame["row"] >= 0].reset_index(drop=True)


def _picked(column: "pd.Series[str]", at: Ints) -> "pd.Series[str]":
    """The texts at these positions; "" at -1."""
    if not len(column):
        return pd.Series([""] * at.size, dtype="str")
    return column.take(np.maximum(at, 0)).reset_index(drop=True).mask(at < 0, "")


def _picked_floats(values: Floats, at: Ints) -> Floats:
    """The values at these positions; NaN at -1."""
    return np.where(at >= 0, np.append(values, np.nan)[at], np.nan)
