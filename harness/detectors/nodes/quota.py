"""A namespace's resource quota has no room left: it rejects pods, or runs.

Refusals say so, and the amounts that the API server counts.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from harness.analysis.waits.quota_use import UsedUp, used_up
from harness.analysis.waits.quota_waits import ROW, Refusal, quota_waits, refusals
from harness.detectors.controller.slow_controller import BY_WORKFLOWS
from harness.detectors.detector import CannotJudgeError, Capability, Timeline, broke, floats, shell_word, slowed
from harness.model import Evidence, Finding, Outcome, counted, format_bytes
from harness.model.phases import QUOTA_AMOUNT
from harness.reasons import builtin_row

NAME = "quota"
SEEN = ("real: quota-pods",)
NEEDS = (Capability.RUNS,)
USES = {
    Capability.WORKFLOWS: "whether a quota held pods of workflows back, and which",
}

MIN_OF_WAITS = 0.5  # of the time that runs wait for pods: then most of it is the quota's
_FIX = "Raise this quota, let steps request less, or run fewer pods at once; more machines do not help."
_SOURCES = (Capability.WORKFLOWS, Capability.POD_EVENTS)


def detect(timeline: Timeline) -> list[Finding]:
    """The API server's refusals: in waiting nodes of workflows, events of workloads, and answers to submissions.

    Argo writes no event about a rejected pod, and the run goes on when there is room: nothing fails.
    """
    by_quota: dict[tuple[str, str], list[Refusal]] = {}
    for refusal in (*refusals(timeline), *_of_answers(timeline)):
        by_quota.setdefault((refusal.namespace, refusal.quota), []).append(refusal)
    shows = (Capability.WORKFLOWS,) if timeline.plan.target in BY_WORKFLOWS else _SOURCES
    if not by_quota and (full := [each for each in used_up(timeline) if each.of_waits >= MIN_OF_WAITS]):
        return [_by_use(full[0])]
    if not by_quota and not any(show.observed(timeline) for show in shows):
        raise CannotJudgeError(Capability.WORKFLOWS.reason(timeline))
    return [_finding(timeline, by_quota[key]) for key in sorted(by_quota)]


def _of_answers(timeline: Timeline) -> Iterator[Refusal]:
    """Rejected submissions: a quota may count runs, too."""
    runs = timeline.runs
    due, rejected = floats(runs, "due_s"), (runs["outcome"] == Outcome.REJECTED.value).to_numpy(dtype=bool)
    for row in np.flatnonzero(rejected).tolist():
        message, tenant = str(runs["error"].iat[row] or ""), str(runs["tenant"].iat[row])
        if builtin_row(ROW).search(message) is not None:
            namespace = tenant if tenant in timeline.plan.tenants else timeline.namespace
            yield Refusal(row, "", float(due[row]), message, tenant, namespace, answer=True)


def _by_use(full: UsedUp) -> Finding:
    """The finding about a quota whose amounts were read, and of which no refusal was."""
    used, hard = (_amount(full.resource, value) for value in (full.used, full.hard))
    name, place = shell_word(full.quota), shell_word(full.namespace)
    return Finding(
        NAME,
        f"The namespace {full.namespace} has no quota left: {full.quota} had no room for another pod "
        f"({full.resource}: {used} of {hard} used)",
        0.9,
        (
            Evidence(
                f"during {full.of_waits:.0%} of the time for which runs waited for their next pod, the quota was used "
                f"up; that is {full.share:.0%} of all run time",
                full.share, "share", "samples", f"metric = {QUOTA_AMOUNT}",
            ),
        ),
        _FIX,
        (f"kubectl describe resourcequota {name} -n {place}", f"kubectl edit resourcequota {name} -n {place}"),
        slowed(full.share),
    )  # fmt: skip


def _amount(resource: str, amount: float) -> str:
    return format_bytes(amount) if "memory" in resource or "storage" in resource else f"{amount:g}"


def _finding(timeline: Timeline, said: Sequence[Refusal]) -> Finding:
    """The finding about one quota."""
    quota, namespace = said[0].quota, said[0].namespace
    pods = [refusal for refusal in said if refusal.row is not None and not refusal.answer]
    answers = [refusal for refusal in said if refusal.answer]
    tenant = namespace in {refusal.tenant for refusal in said}
    who = f"Tenant {namespace} has no quota left" if tenant else f"The namespace {namespace} has no quota left"
    what = "pods, and their runs wait" if pods else "runs" if answers else "pods"
    amounts = next(filter(None, (refusal.room for refusal in said)), {})
    room = ", ".join(f"{name}: {used} of {most} used" for name, (used, most) in [*amounts.items()][:3])
    name, place = shell_word(quota), shell_word(namespace)
    return Finding(
        NAME,
        f"{who}: {quota} rejects {what}{room and f' ({room})'}",
        0.95,
        tuple(_evidence(pods, [refusal for refusal in said if refusal.row is None], answers)),
        _FIX,
        (f"kubectl describe resourcequota {name} -n {place}", f"kubectl edit resourcequota {name} -n {place}"),
        max(
            slowed(_waited(timeline, len(pods))) if pods else 0.0,
            broke(len(answers) / len(timeline.runs)) if answers else 0.0,
        ),
    )


def _waited(timeline: Timeline, refused: int) -> float:
    """The share of the runs' time that they waited for pods, in proportion to this quota's refusals among all."""
    full = max((each.share for each in used_up(timeline)), default=0.0)
    share = max(quota_waits(timeline), full)
    return share * refused / sum(refusal.row is not None for refusal in refusals(timeline))


def _evidence(pods: Sequence[Refusal], others: Sequence[Refusal], answers: Sequence[Refusal]) -> Iterator[Evidence]:
    """What is known of runs that waited, of workloads that are no run's, and of rejected submissions."""
    runs = len({pod.row for pod in pods})
    for count, noun, said, table, of in (
        (runs, "run", f"pods of {counted(runs, 'run')}{_whose(pods)} that were looked at had to wait", "events", pods),
        (len(others), "event", f"{counted(len(others), 'event')} about workloads without a run", "events", others),
        (len(answers), "submission", f"{counted(len(answers), 'submission')}{_whose(answers)} were rejected",
         "submissions", answers),
    ):  # fmt: skip
        if count:
            statement = f"{said}: “{of[0].message[:240]}”"
            yield Evidence(statement, float(count), f"{noun}s", table, "message contains 'exceeded quota'")


def _whose(refusals: Sequence[Refusal]) -> str:
    tenants = sorted({refusal.tenant for refusal in refusals} - {""})
    return f" of {' and '.join(tenants[:3])}" if tenants else ""
