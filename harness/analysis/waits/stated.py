"""What the cluster stated while runs waited or when they failed, by cause, with the time and the runs that it cost.

A span carries what was stated while it lasted. A run's time in a phase is divided among its pods' spans there, so that
the times of all reasons and of what nothing was stated about add up to the phase (`harness.analysis.waits.waits`). A
message of the scheduler counts nodes by what keeps the pod off them: its time is divided by these counts.
"""

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from harness.analysis.timeline import Bools, Floats, Ints, Timeline, floats, looked_up, remembered
from harness.analysis.waits.failures import Failure, canonical, failures, own_events
from harness.analysis.waits.waits import Waits, waits_so_far
from harness.model.phases import CONTROLLER, OF_TASK, POD_PHASES, PROVISIONING, RUN_PHASES, RUNNING, UNSCHEDULABLE
from harness.model.records import Outcome
from harness.reasons import Catalogue, Match, Row, stated
from harness.reasons.catalogue import BLOCKS, FAILS, parsed, predicates

# Messages of a workflow's nodes that only repeat the state of their pods.
_OF_PODS = ("PodInitializing", "ContainerCreating", "Unschedulable: ")
_NOT_READY, _UNNAMED = stated("event", "NodeNotReady", "Node is not ready"), "untolerated-taints"
# Layers that other detectors cover where no cause was stated.
SPOKEN_OF = frozenset({"pipeline", "store", "platform", "registry"})
_CODES = re.compile(r"(?:[Cc]ode|[Ss]tatus|HTTP|Err(?:or|no))\W{1,2}(\d{1,5})\b")
_EXIT_CODE = re.compile(r"exit code (\d+)")
_UNTOLD = 3  # above all ranks
_WAITING_TASKS = frozenset({"PENDING", "RUNNING"})


@dataclass(frozen=True, slots=True)
class _Replaced:
    """What a run waits for after a pod of it is lost.

    Attributes:
        never: for another one, when the observation ended.
        created_s: until that was created.
        began_s: from then until it ran.
        most_s: that the run waited for pods at all.
    """

    never: bool
    created_s: float
    began_s: float
    most_s: float


@dataclass(slots=True)
class Cause:
    """What one row of the catalogue, or one text that no row knows, cost.

    Attributes:
        row: of the catalogue; none for an unknown text.
        title: what happened, with names from the text.
        texts: verbatim, by how many spans or runs stated each.
        seconds: by phase and row of `Timeline.runs`: for how long runs waited, or ran in vain.
        after_s: beside them, from the creation of pods in place of lost ones until these ran.
        shared_s: of these seconds, stated together with nodes that only lack room: whether the cause is one is a guess.
        failed: rows of runs that failed and stated it.
        refused: rows of submissions that the platform rejected with it.
        stuck: rows of runs that had not ended, and stated it last.
        pods: names of some pods that stated it.
        nodes: on which these were.
    """

    row: Row | None
    title: str
    texts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    seconds: dict[str, dict[int, float]] = field(default_factory=dict)
    after_s: float = 0.0
    shared_s: float = 0.0
    failed: set[int] = field(default_factory=set)
    refused: set[int] = field(default_factory=set)
    stuck: set[int] = field(default_factory=set)
    pods: dict[str, None] = field(default_factory=dict)
    nodes: dict[str, None] = field(default_factory=dict)

    def lose(self, run: int, waits: _Replaced, share: float) -> None:
        """Add what a run waits for once a pod of it is lost."""
        if waits.never:
            self.stuck.add(run)
        so_far = self.seconds.setdefault(CONTROLLER, {})
        so_far[run] = min(so_far.get(run, 0.0) + waits.created_s * share, waits.most_s)
        self.after_s += waits.began_s * share

    @property
    def waited(self) -> Mapping[int, float]:
        """Seconds by row of `Timeline.runs`, in all phases."""
        found: dict[int, float] = defaultdict(float)
        for by_run in self.seconds.values():
            for run, seconds in by_run.items():
                found[run] += seconds
        return found

    @property
    def runs(self) -> set[int]:
        """Rows of all runs that it hit."""
        return {*self.waited, *self.failed, *self.refused, *self.stuck}

    @property
    def example(self) -> str:
        """The text that was stated most often."""
        return max(self.texts, key=lambda text: (self.texts[text], text), default="")

    @property
    def liftable(self) -> bool:
        """More nodes of the same kind, or nothing that is known, end the wait."""
        return self.row is None or self.row.nodes_help


@remembered
def causes(timeline: Timeline) -> tuple[Cause, ...]:
    """All causes that were stated, in no order."""
    found: dict[str, Cause] = {}
    for add in (_of_spans, _of_tasks, _of_failures, _of_refusals):
        add(timeline, found)
    return tuple(found.values())


@remembered
def unstated(timeline: Timeline) -> Mapping[str, float]:
    """By phase, the share of its time for which nothing was stated but what more nodes would end.

    The scheduler's words count for the phase UNSCHEDULABLE, together with the time for which nodes were on their way.

    This part is left to the detectors that infer a cause from times.
    """
    split, shares = waits_so_far(timeline), {}
    for phase in RUN_PHASES:
        whole = float(split.of(phase).sum())
        whole += float(split.of(PROVISIONING).sum()) if phase == UNSCHEDULABLE else 0.0
        told = sum(
            sum(cause.seconds.get(phase, {}).values())
            for cause in causes(timeline)
            if not cause.liftable and not (cause.row and cause.row.general and cause.row.layer in SPOKEN_OF)
        )
        shares[phase] = 1.0 if whole <= 0 else float(np.clip(1 - told / whole, 0.0, 1.0))
    return shares


def _cause(found: dict[str, Cause], text: str, match: Match) -> Cause:
    """The cause of a text, under the row's name, or under the text without numbers and names."""
    words = text.partition(": ")[2] or text.partition("/")[2]
    row = match.row
    key = row.name if row else canonical(words)
    if key not in found:
        title = row.filled(row.cause, match.groups) if row else canonical(words)
        found[key] = Cause(row, title)
    return found[key]


def shares_of(text: str, catalogue: Catalogue, unready: int = 0) -> list[tuple[str, Match, float]]:
    """The parts of a text with their matches and shares, which add up to 1; only the scheduler's has several.

    Nodes that are reserved for something else, or that the pod excludes, do not count where more of the
    others would end the wait. So many nodes were `unready`: these have the taints that the scheduler does not name.
    """
    parts = [(part, catalogue.match(part), count) for part, count in predicates(text)]
    if unready:
        lost = catalogue.match(_NOT_READY)
        parts = [
            (part, lost if match.row and match.row.name == _UNNAMED and count <= unready else match, count)
            for part, match, count in parts
        ]
    if any(match.row and match.row.nodes_help for _, match, _ in parts):
        parts = [part for part in parts if not (part[1].row and part[1].row.beside)]
    whole = sum(count for *_, count in parts)
    return [(part, match, count / whole) for part, match, count in parts]


def _of_spans(timeline: Timeline, found: dict[str, Cause]) -> None:
    pods = timeline.pods
    reasons = pods["reason"].cat
    told = np.append(np.array([bool(text) for text in reasons.categories], dtype=np.bool_), False)
    chosen = (pods["row"].to_numpy() >= 0) & looked_up(told, reasons.codes.to_numpy())
    if not chosen.any():
        return
    row, phase = pods["row"].to_numpy()[chosen].astype(np.int64), pods["phase"].to_numpy()[chosen]
    seconds = _seconds(timeline, chosen, row, phase)
    still = ~np.isfinite(floats(pods, "end_s")[chosen]) & timeline.is_open[row]
    names = timeline.names.take(pods["pod"].to_numpy()[chosen]).to_numpy()
    code, node = reasons.codes.to_numpy()[chosen], pods["node"].to_numpy(dtype=object)[chosen]
    unready = timeline.events_of("Node", "NodeNotReady")["object"].nunique()
    parts = {
        each: shares_of(str(reasons.categories[each]), timeline.catalogue, unready) for each in np.unique(code).tolist()
    }
    failed, again = {failure.row: failure for failure in failures(timeline)}, _Again(timeline)
    ended = np.nan_to_num(floats(pods, "end_s")[chosen], nan=timeline.end_s)
    last = np.full(len(timeline.runs), -np.inf)
    own = pods["row"].to_numpy() >= 0
    np.maximum.at(last, pods["row"].to_numpy()[own], np.nan_to_num(floats(pods, "end_s")[own], nan=np.inf))
    task, named = pods["task"].cat.codes.to_numpy()[chosen], pods["task"].to_numpy(dtype=object)[chosen]
    for k in range(row.size):
        run, where = int(row[k]), POD_PHASES[phase[k]]
        full = any(match.row and match.row.nodes_help for _, match, _ in parts[int(code[k])])
        for part, match, share in parts[int(code[k])]:
            cause = _cause(found, part, match)
            cause.texts[part] += 1
            cause.pods.setdefault(str(names[k]))
            if node[k]:
                cause.nodes.setdefault(str(node[k]))
            if still[k]:
                cause.stuck.add(run)
            if where == RUNNING:
                fails = match.row is not None and match.row.effect == FAILS
                elsewhere = run in failed and _has_another_cause(failed[run], named[k], match.row)
                if run in failed and not elsewhere and (fails or match.row is None):
                    cause.failed.add(run)
                if not fails or elsewhere:
                    continue  # it runs on; what ends a pod costs the work that it had done
                if not still[k]:
                    gone = timeline.is_open[run] and ended[k] >= last[run]  # and no other one came
                    cause.lose(run, again.waits(run, int(task[k]), ended[k], gone=bool(gone)), share)
            by_run = cause.seconds.setdefault(where, {})
            by_run[run] = by_run.get(run, 0.0) + float(seconds[k]) * share
            cause.shared_s += float(seconds[k]) * share * full


def _has_another_cause(failure: Failure, task: str, row: Row | None) -> bool:
    """Whether a run failed by the pod of another task, or with another exit code than the row's cause has."""
    codes = {code for text in failure.texts for code in _EXIT_CODE.findall(text)}
    if row is not None and row.exit_code and codes and row.exit_code not in codes:
        return True
    return bool(failure.tasks) and task not in failure.tasks


class _Again:
    """When a task that lost its pod got another one."""

    def __init__(self, timeline: Timeline) -> None:
        pods, order = timeline.pods, np.argsort(timeline.pods["row"].to_numpy(), kind="stable")
        self._row, self._start = pods["row"].to_numpy()[order], floats(pods, "start_s")[order]
        self._task = pods["task"].cat.codes.to_numpy()[order]
        self._runs = pods["phase"].to_numpy()[order] == POD_PHASES.index(RUNNING)
        self._end_s, self._split = timeline.end_s, waits_so_far(timeline)

    def waits(self, run: int, task: int, ended_s: float, *, gone: bool) -> _Replaced:
        """From the end of a lost pod; of one that is `gone`, to the end of the observation."""
        low, high = np.searchsorted(self._row, (run, run + 1))
        later = (self._task[low:high] == task) & (self._start[low:high] >= ended_s)
        created_s = float(self._start[low:high][later].min(initial=self._end_s if gone else np.inf))
        began_s = float(self._start[low:high][later & self._runs[low:high]].min(initial=np.inf))
        return _Replaced(
            gone,
            created_s - ended_s if np.isfinite(created_s) else 0.0,
            max(began_s - created_s, 0.0) if np.isfinite(began_s) else 0.0,
            _of_run(self._split, CONTROLLER, run),
        )


def _seconds(timeline: Timeline, chosen: Bools, row: Ints, phase: Ints) -> Floats:
    """The part of its run's time in its phase that each chosen row of `pods` represents."""
    pods, split = timeline.pods, waits_so_far(timeline)
    runs = np.unique(row)
    mine = np.isin(pods["row"].to_numpy(), runs)
    cell = np.searchsorted(runs, pods["row"].to_numpy()[mine]) * len(POD_PHASES) + pods["phase"].to_numpy()[mine]
    whole = np.bincount(cell, np.maximum(timeline.seconds_of(mine), 0.0), runs.size * len(POD_PHASES))
    of_run = np.zeros(runs.size * len(POD_PHASES))
    at = np.searchsorted(split.row, runs)
    there = (at < split.row.size) & (split.row[np.minimum(at, split.row.size - 1)] == runs)
    for k, name in enumerate(POD_PHASES):
        seconds = split.of(name) + (split.of(PROVISIONING) if name == UNSCHEDULABLE else 0.0)
        of_run[k :: len(POD_PHASES)][there] = seconds[at[there]]
    here = np.searchsorted(runs, row) * len(POD_PHASES) + phase
    own = np.maximum(timeline.seconds_of(chosen), 0.0)
    return np.where(whole[here] > 0, own / np.maximum(whole[here], 1e-9) * np.maximum(of_run[here], 0.0), 0.0)


def _of_tasks(timeline: Timeline, found: dict[str, Cause]) -> None:
    """What the nodes of workflows stated that were read while their runs waited for a pod."""
    events = own_events(timeline)
    waiting = events[(events["kind"] == OF_TASK) & events["reason"].isin(_WAITING_TASKS)]
    split, place = waits_so_far(timeline), {name: k for k, name in enumerate(timeline.runs["run"])}
    by_run: dict[int, list[str]] = defaultdict(list)
    for run, message in zip(waiting["run"], waiting["message"], strict=True):
        if message and not str(message).startswith(_OF_PODS):
            by_run[place[run]].append(stated("workflow", "", str(message)))
    for run, texts in by_run.items():
        text = min(texts, key=lambda each: timeline.catalogue.match(each).rank)
        cause = _cause(found, text, timeline.catalogue.match(text))
        cause.texts[text] += 1
        cause.seconds.setdefault(CONTROLLER, {})[run] = _of_run(split, CONTROLLER, run)
        if timeline.is_open[run] and not (timeline.pods["row"].to_numpy() == run).any():
            cause.stuck.add(run)


def _of_run(split: Waits, phase: str, run: int) -> float:
    """A run's seconds in a phase; 0 where it was not split."""
    at = int(np.searchsorted(split.row, run))
    known = at < split.row.size and split.row[at] == run
    return max(float(split.of(phase)[at]), 0.0) if known else 0.0


def _of_failures(timeline: Timeline, found: dict[str, Cause]) -> None:
    """Why runs failed: the most telling of what was stated, where a span did not say it already."""
    known: dict[int, int] = {}  # by run, the rank of the best cause that a span stated
    for cause in found.values():
        for run in cause.failed if cause.row else ():
            known[run] = min(known.get(run, _UNTOLD), Match(cause.row).rank)
    matches: dict[tuple[str, ...], Match] = {}  # of texts that differ in names and numbers only, other than codes
    for failure in failures(timeline):
        told = []
        for text in failure.texts:
            words = canonical(text), *_CODES.findall(text)
            if words not in matches:
                matches[words] = timeline.catalogue.search(text)
            told.append((text, matches[words]))
        if not told:
            continue
        text, match = min(told, key=lambda each: timeline.catalogue.place(each[1]))
        if known.get(failure.row, _UNTOLD) <= match.rank:
            continue
        cause = _cause(found, stated("workflow", "", text), match)
        cause.texts[stated("workflow", "", text)] += 1
        cause.failed.add(failure.row)
        cause.nodes.update(dict.fromkeys(failure.nodes))


def _of_refusals(timeline: Timeline, found: dict[str, Cause]) -> None:
    """Submissions that the platform rejected for a reason that the catalogue knows."""
    runs = timeline.runs
    for row in np.flatnonzero((runs["outcome"] == Outcome.REJECTED.value).to_numpy(dtype=bool)).tolist():
        text = stated("platform", "", str(runs["error"].iat[row] or ""))
        match = timeline.catalogue.match(text)
        if match.row:
            cause = _cause(found, text, match)
            cause.texts[text] += 1
            cause.refused.add(row)


def refused_for_others(timeline: Timeline) -> Bools:
    """Rows of `Timeline.runs` that the platform rejected for a cause that it stated."""
    found = np.zeros(len(timeline.runs), dtype=np.bool_)
    for cause in causes(timeline):
        if cause.row and not cause.row.general:
            found[sorted(cause.refused)] = True
    return found


def told(row: Row) -> bool:
    """Whether its finding is named where it fails runs; of what says only that something failed, others speak."""
    return not row.general or row.layer not in SPOKEN_OF or bool(row.yields_to)


def failed_for(timeline: Timeline, *names: str) -> set[int]:
    """Rows of runs that failed with the words of these rows of the catalogue."""
    return {run for cause in causes(timeline) if cause.row and cause.row.name in names for run in cause.failed}


def failures_for(timeline: Timeline, *names: str) -> list[Failure]:
    """The runs that failed with the words of these rows, by their ends."""
    rows = failed_for(timeline, *names)
    return [failure for failure in failures(timeline) if failure.row in rows]


def words_of(timeline: Timeline, *names: str) -> str:
    """What was stated most often of the first of these rows that was stated; "" where none was."""
    by_name = {cause.row.name: cause for cause in causes(timeline) if cause.row}
    return next((parsed(by_name[name].example)[2] for name in names if name in by_name), "")


def blocked(cause: Cause) -> set[int]:
    """Rows of runs that are blocked until someone intervenes."""
    return cause.stuck if cause.row and cause.row.effect == BLOCKS else set()
