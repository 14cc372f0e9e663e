"""Runs that failed for a reason that no other detector knows, grouped by message."""

from harness.analysis.waits.concentration import concentration
from harness.analysis.waits.failures import failures, group
from harness.analysis.waits.stated import causes, failed_for, told
from harness.detectors.detector import Capability, Evidence, Finding, Timeline, broke, shell_word
from harness.detectors.error_texts import adapter_failures

NAME = "failures"
SEEN = ("real: failures",)
NEEDS = (Capability.RUNS,)
USES = {
    Capability.POD_EVENTS: "why steps failed",
    Capability.WORKFLOWS: "why tasks without a pod failed",
    Capability.LOGS: "what KFP's launcher reported",
}

_MOST_GROUPS = 5  # messages that a finding quotes
RUN_LABELS = {"kfp": "pipeline/runid", "argo": "workflows.argoproj.io/workflow"}  # of a run's pods, by target


def detect(timeline: Timeline) -> list[Finding]:
    """Failures whose messages match none of the known causes."""
    stated = {run for cause in causes(timeline) if cause.row and told(cause.row) for run in cause.failed}
    if any(adapter_failures(timeline)):
        stated |= failed_for(timeline, "runtime-error", "runtime-call-failed")
    unexplained = [f for f in failures(timeline) if f.row not in stated]
    if not unexplained:
        return []
    share = len(unexplained) / max(len(timeline.runs), 1)
    groups = group((f.at_s, f.texts[0] if f.texts else "no message was given") for f in unexplained)
    tasks = sorted({task for f in unexplained for task in f.tasks})
    facts = [
        Evidence(
            f"{g.count:,} times: “{g.message}”", float(g.count), "runs", "events", "kind = Run and reason = FAILED"
        )
        for g in groups[:_MOST_GROUPS]
    ]
    where = concentration(timeline, [f.row for f in unexplained])
    if where is not None:
        facts.insert(0, Evidence(where.sentence, float(where.there), "runs", "spans", f"{where.kind} = {where.name}"))
    if tasks:
        facts.append(Evidence(f"failed tasks: {', '.join(tasks[:6])}", None, "", "events", "kind = Pod"))
    example, label = timeline.runs["run"].iat[unexplained[0].row], RUN_LABELS.get(timeline.plan.target, "")
    chosen = f" -l {label}={shell_word(str(example))}" if label else ""
    return [
        Finding(
            NAME,
            f"{share:.0%} of the runs failed{f', on the {where.kind} {where.name}' if where else ''}: "
            f"“{groups[0].message[:120]}”",
            0.5,
            tuple(facts),
            f"Find out what is different about the {where.kind} {where.name}; elsewhere the same steps succeed."
            if where
            else "Check the logs of the failed steps: the pipeline's own code or its inputs fail.",
            () if timeline.executed else (f"kubectl get pods -n {timeline.namespace}{chosen}",),
            broke(share),
        )
    ]
