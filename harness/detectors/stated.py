"""What the cluster stated in words while runs waited or when they failed, ranked by what it cost.

The catalogue (`harness.reasons`) says which words mean which cause; a finding has the name of its row. Words that no
row knows are quoted.
"""

from collections.abc import Iterator

from harness.analysis.waits.concentration import concentration
from harness.analysis.waits.stated import Cause, blocked, causes, told
from harness.analysis.waits.waits import waits_so_far
from harness.detectors.detector import CannotJudgeError, Capability, Timeline, broke, shell_word, slowed
from harness.model import Evidence, Finding, counted, format_duration
from harness.model.phases import RUNNING
from harness.reasons import parsed

NAME = "stated"
NEEDS = (Capability.SUBMISSIONS,)
USES = {
    Capability.RUNS: "why runs failed",
    Capability.PODS: "what kept pods from starting",
    Capability.POD_EVENTS: "why pods were not started, pulled or mounted",
    Capability.WORKFLOWS: "why tasks without a pod waited or failed",
}
BY_CATALOGUE = True
UNKNOWN = "unknown-reason"

MIN_SHARE, MIN_S = 0.02, 2.0  # of the runs' time, and of a run: stamps are whole seconds
_SURE, _GENERAL, _SHARED, _UNKNOWN = 0.95, 0.7, 0.6, 0.55
_MOST_UNKNOWN, _MOST_NODES = 3, 3  # findings of unknown texts; nodes that a command names
_FIX_UNKNOWN = (
    "The catalogue does not know this text: look at what the command shows. A row of your own (--reasons) can name the "
    "cause and the fix."
)


def detect(timeline: Timeline) -> list[Finding]:
    """One finding for each cause that cost time or runs; what more nodes would end is left to others.

    Raises:
        CannotJudgeError: nothing was stated, and no pod was observed.
    """
    found = [finding for cause in causes(timeline) for finding in _of(timeline, cause)]
    found.sort(key=lambda each: (-each.severity, each.title))
    if not found and not timeline.answers_are_results and not Capability.PODS.observed(timeline):
        raise CannotJudgeError(Capability.PODS.reason(timeline))
    unknown = [finding for finding in found if finding.name == UNKNOWN]
    return [finding for finding in found if finding.name != UNKNOWN or finding in unknown[:_MOST_UNKNOWN]]


def _elsewhere(cause: Cause, *, waits: bool) -> bool:
    """Whether other detectors cover it: nodes that lack room, steps and stores that failed without a cause."""
    row = cause.row
    if row is None or row.nodes_help:
        return row is not None
    return not (told(row) or waits or cause.stuck)


def _of(timeline: Timeline, cause: Cause) -> Iterator[Finding]:
    whole, runs = float(waits_so_far(timeline).total.sum()), max(len(timeline.runs), 1)
    waited = cause.waited
    seconds = sum(waited.values())
    share, each_s = seconds / whole if whole > 0 else 0.0, seconds / max(len(waited), 1)
    stuck = blocked(cause)
    waits = share >= MIN_SHARE and each_s >= MIN_S
    if _elsewhere(cause, waits=waits):
        return
    if cause.row is None and not (waits or cause.stuck):
        return  # runs that failed with unknown texts are reported by their messages
    if not (waits or stuck or cause.failed or cause.refused or (cause.stuck and cause.row)):
        return
    costs = [
        slowed(share + (cause.after_s / whole if whole > 0 else 0.0)) if waits else 0.0,
        broke(len({*stuck, *cause.failed}) / runs) if stuck or cause.failed else 0.0,
        broke(len(cause.refused) / runs) if cause.refused else 0.0,
        slowed(len(cause.stuck) / runs) if cause.stuck else 0.0,
    ]
    row = cause.row
    effects = list(_effects(timeline, cause, share, each_s, waits=waits))
    what = f"{cause.title}{_where(cause)}" if row else f"Kubernetes says “{cause.title[:160]}”"
    title = f"{what}: {effects[0]}"
    yield Finding(
        row.name if row else UNKNOWN,
        title[:1].upper() + title[1:],
        _confidence(cause, seconds),
        tuple(_evidence(timeline, cause, effects)),
        row.filled(row.fix, _groups(timeline, cause)) if row else _FIX_UNKNOWN,
        _commands(timeline, cause),
        max(costs),
    )


def _confidence(cause: Cause, seconds: float) -> float:
    if cause.row is None:
        return _UNKNOWN
    if cause.shared_s > seconds / 2 and not cause.failed and not cause.refused:
        return _SHARED
    return _GENERAL if cause.row.general else _SURE


def _where(cause: Cause) -> str:
    """The nodes of what happened to nodes, where they are few."""
    of_nodes = cause.row is not None and cause.row.layer == "node" and 0 < len(cause.nodes) <= _MOST_NODES
    return f" ({', '.join(sorted(cause.nodes))})" if of_nodes else ""


def _effects(timeline: Timeline, cause: Cause, share: float, each_s: float, *, waits: bool) -> Iterator[str]:
    """What it cost, the worst first."""
    runs = len(timeline.runs)
    if stuck := blocked(cause):
        yield f"{len(stuck):,} of {counted(runs, 'run')} are blocked until someone intervenes"
    elif cause.stuck:
        yield f"{len(cause.stuck):,} of {counted(runs, 'run')} had not ended when the observation did"
    if cause.failed:
        yield f"{len(cause.failed):,} of {counted(runs, 'run')} failed"
    if cause.refused:
        yield f"{len(cause.refused):,} of {counted(runs, 'submission')} were rejected"
    if waits:
        hit, lost = counted(len(cause.waited), "run"), sum(cause.seconds.get(RUNNING, {}).values())
        what = "lost" if lost > sum(cause.waited.values()) / 2 else "waited"
        yield f"{hit} {what} {format_duration(each_s)} each (mean), {share:.0%} of all run time"


def _evidence(timeline: Timeline, cause: Cause, effects: list[str]) -> Iterator[Evidence]:
    text = parsed(cause.example)[2] or cause.example
    yield Evidence(f"stated: “{text[:300]}”", float(sum(cause.texts.values())), "times", "spans", "reason")
    for effect in effects:
        yield Evidence(effect, None, "", "spans", "reason")
    for phase, by_run in sorted(cause.seconds.items()):
        seconds = max(by_run.values(), default=0.0)
        if seconds >= MIN_S:
            what = "the most work lost" if phase == RUNNING else f"the longest wait in the phase “{phase}”"
            longest = f"{what} took {format_duration(seconds)}"
            yield Evidence(longest, seconds, "s", "spans", f"phase = {phase}")
    if cause.failed and (where := concentration(timeline, cause.failed)):
        yield Evidence(where.sentence, float(where.there), "runs", "spans", f"{where.kind} = {where.name}")
    elif cause.nodes and len(cause.nodes) < max(len(timeline.nodes), 2):
        names = ", ".join(sorted(cause.nodes)[:6])
        yield Evidence(f"on {counted(len(cause.nodes), 'node')}: {names}", float(len(cause.nodes)), "nodes", "spans")
    others = [each for each in cause.texts if each != cause.example]
    if others:
        yield Evidence(f"also stated: “{(parsed(others[0])[2] or others[0])[:200]}”", None, "", "spans", "reason")


def _groups(timeline: Timeline, cause: Cause) -> dict[str, str]:
    return dict(timeline.catalogue.match(cause.example).groups)


def _commands(timeline: Timeline, cause: Cause) -> tuple[str, ...]:
    """Read-only commands first, then those that change something, each only where all of its names are known."""
    row = cause.row
    names = {key: shell_word(value) for key, value in _groups(timeline, cause).items()}
    names["namespace"] = timeline.namespace
    for key, known in (("pod", cause.pods), ("node", cause.nodes)):
        if known:
            names[key] = shell_word(next(iter(known)))
    if row is None:
        pod = names.get("pod")
        return (f"kubectl describe pod {pod} -n {timeline.namespace}",) if pod else ()
    return tuple(
        row.filled(command, names) for command in (*row.show, *row.change) if row.places(command) <= set(names)
    )
