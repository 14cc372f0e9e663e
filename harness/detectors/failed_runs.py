"""Runs that failed for a reason that no other detector knows, grouped by what was said."""

import re

from harness.analysis.timeline import Timeline
from harness.analysis.waits.failures import failures, group
from harness.detectors import adapter_errors, database, oom, quota, spot_evictions, store_full
from harness.detectors.detector import RUNS, broke
from harness.model.findings import Evidence, Finding

NAME = "failures"
NEEDS = (RUNS,)

_KNOWN: tuple[re.Pattern[str], ...] = (
    store_full.FULL, store_full.UNWRITTEN, oom.KILLED, quota.EXCEEDED, database.TROUBLES,
    spot_evictions.EVICTED, adapter_errors.SAID,
)  # fmt: skip
_MOST_GROUPS = 5


def detect(timeline: Timeline) -> list[Finding]:
    """Failures whose texts fit none of the known causes."""
    known = (*_KNOWN, adapter_errors.BARE) if adapter_errors.detect(timeline) else _KNOWN
    unexplained = [f for f in failures(timeline) if not f.says(*known)]
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
    if tasks:
        facts.append(Evidence(f"they failed in {', '.join(tasks[:6])}", None, "", "events", "kind = Pod"))
    example = timeline.runs["run"].iat[unexplained[0].row]
    return [
        Finding(
            NAME,
            f"{share:.0%} of the runs failed: “{groups[0].message[:120]}”",
            0.5,
            tuple(facts),
            "The pipeline's own steps or their inputs fail; their logs say more.",
            (f"kubectl get pods -n {timeline.namespace} -l pipeline/runid={example}",),
            broke(share),
        )
    ]
