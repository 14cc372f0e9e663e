"""Pods that a resource quota refused: the API server's words about them, and how long their runs waited.

Argo writes no event about a refused pod: its workflow's node says so, and it is asked for again until there is room.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from harness.analysis.timeline import Floats, Ints, Timeline, containing, floats, merged, remembered
from harness.analysis.waits.critical_path import critical_path
from harness.analysis.waits.startup_delay import startup_delay
from harness.analysis.waits.waits import waits_so_far
from harness.reasons import builtin_row

# kube-apiserver: "pods "NAME" is forbidden: exceeded quota: QUOTA, requested: pods=1, used: pods=6, limited: pods=6"
# (its plugin resourcequota).
_POD = re.compile(r'pods "([^"]{1,253})" is forbidden')
ROW = "quota"  # of the catalogue
_AMOUNTS = re.compile(r"used: ([\w./=,-]{1,400}), limited: ([\w./=,-]{1,400})")
LOOKS_S = 10.5  # to the controller's next look at a workflow, with the request that creates the pod
_AT_ONCE_S = 2.0  # in which a quick controller creates a new workflow's first pod
_READ = 0.15  # of the workflows that wait: one is read every few seconds
_NOTHING = 1e-9


@dataclass(frozen=True, slots=True)
class Refusal:
    """A message of the API server about a pod of a run, or about a workload that is no run's.

    Attributes:
        row: of the run in `Timeline.runs`; none for a workload.
        object: a task of a workflow, or the ReplicaSet or Job after which its pods are called.
        at_s: when it was refused.
        message: the API server's.
        tenant: of the run, or whose namespace it is; "" without tenants.
        namespace: of the quota.
        answer: it is the answer to a submission: the run itself was refused.
    """

    row: int | None
    object: str
    at_s: float
    message: str
    tenant: str
    namespace: str
    answer: bool = False

    @property
    def quota(self) -> str:
        """The quota's name."""
        return (builtin_row(ROW).search(self.message) or {}).get("quota", ROW)

    @property
    def room(self) -> dict[str, tuple[str, str]]:
        """What is used of each exceeded resource, and its limit; empty if the message doesn't say."""
        amounts = _AMOUNTS.search(self.message)
        if amounts is None:
            return {}
        used, most = (dict(part.split("=", 1) for part in text.split(",") if "=" in part) for text in amounts.groups())
        return {name: (used.get(name, "?"), limit) for name, limit in most.items()}


@remembered
def refusals(timeline: Timeline) -> tuple[Refusal, ...]:
    """Messages about this test's pods, and about workloads that are no run's."""
    events, runs, tenants = timeline.events, timeline.runs, timeline.plan.tenants
    frame = events[containing(events["message"], builtin_row(ROW))]
    if not len(frame):
        return ()
    row_of = {name: row for row, name in enumerate(runs["run"])}
    places = frame["namespace"] if "namespace" in frame else frame["run"].map(lambda _: "")
    told = frame["run"], frame["object"], frame["message"]
    found = []
    for run, name, message, place, at_s in zip(*told, places, floats(frame, "at_s").tolist(), strict=True):
        row = row_of.get(run) if run else None
        if run and row is None:
            continue
        tenant = str(runs["tenant"].iat[row]) if row is not None else str(place) if place in tenants else ""
        namespace = tenant if tenant in tenants else str(place) or timeline.namespace
        found.append(Refusal(row, str(name), at_s, str(message), tenant, namespace))
    return tuple(found)


@remembered
def quota_waits(timeline: Timeline) -> float:
    """The share of the runs' time that they waited for refused pods, of all quotas.

    An observer reads a workflow now and then, and so learns of a few refusals only. They show that there is a quota;
    then what pods wait longer than to the controller's next look, they wait for it.
    """
    of_run: dict[int, list[Refusal]] = {}
    for refusal in refusals(timeline):
        if refusal.row is not None:
            of_run.setdefault(refusal.row, []).append(refusal)
    if not of_run:
        return 0.0
    runs, row = timeline.runs, timeline.pods["row"].to_numpy()
    over = np.nan_to_num(np.where(timeline.is_open, timeline.end_s, floats(runs, "over_s")), nan=timeline.end_s)
    theirs = np.flatnonzero(np.isin(row, list(of_run)))
    theirs = theirs[np.argsort(row[theirs], kind="stable")]
    ordered = row[theirs]
    seen = 0.0
    for at, said in of_run.items():
        low, high = np.searchsorted(ordered, (at, at + 1))
        since, until = merged(*_waits(timeline, theirs[low:high], said, float(over[at])))
        seen += float((until - since).sum())
    took = np.clip(over - floats(runs, "due_s"), 0.0, None)
    asked = np.arange(len(runs)) if theirs.size else np.array(list(of_run))  # without pods, their runs stand for all
    longer = max(_beyond_looks(timeline), _before_first_pods(timeline, len(of_run)))
    return min(1.0, max(longer, seen / max(float(np.nansum(took[asked])), _NOTHING)))


def _beyond_looks(timeline: Timeline) -> float:
    """The share of the runs' time that pods came later than at the controller's next look.

    By the chains of pods that the runs' ends waited for, or by the time between pods that the runs had none.
    """
    chain, start, whole = critical_path(timeline), startup_delay(timeline), float(waits_so_far(timeline).total.sum())
    in_chains = float(np.clip(chain.gaps_s - LOOKS_S, 0.0, None).sum()) / max(chain.whole_s, _NOTHING)
    looks_s = LOOKS_S * chain.gaps_s.size / max(chain.runs, 1)
    without_pods = float(np.clip(start.between - looks_s, 0.0, None).sum()) / max(whole, _NOTHING)
    return max(in_chains, without_pods)


def _before_first_pods(timeline: Timeline, refused: int) -> float:
    """The share of the runs' time that they waited for their first pods, where of those a part is known to be refused.

    The controller takes up a new workflow at once; few of those that wait are read.
    """
    start, whole = startup_delay(timeline), float(waits_so_far(timeline).total.sum())
    late = np.clip(start.before - _AT_ONCE_S, 0.0, None)
    if refused < _READ * np.count_nonzero(late):
        return 0.0
    return float(late.sum()) / max(whole, _NOTHING)


def _waits(timeline: Timeline, mine: Ints, said: Iterable[Refusal], over: float) -> tuple[Floats, Floats]:
    """Begin and end of a run's waits for its refused pods, as far as seen; `mine` are the rows of its pods.

    Each lasts until that pod was created, or else one of its task, or else until the run's end.
    """
    pods = timeline.pods.take(mine)
    start, tasks = floats(pods, "start_s"), pods["task"].to_numpy(dtype=object)
    names = timeline.names.take(pods["pod"].to_numpy()).to_numpy(dtype=object)
    first: dict[str, float] = {}
    for refusal in said:
        pod = _POD.search(refusal.message)
        key = pod[1] if pod is not None and (names == pod[1]).any() else refusal.object
        first[key] = min(first.get(key, np.inf), refusal.at_s)
    ends = []
    for key, since in first.items():
        named = names == key
        if not named.any():
            named = (tasks == key) | np.array([str(name).startswith(f"{key}-") for name in names], dtype=bool)
        ends.append(float(start[named & (start >= since)].min(initial=over)))
    begun = np.array(list(first.values()))
    return begun, np.maximum(begun, np.array(ends))
