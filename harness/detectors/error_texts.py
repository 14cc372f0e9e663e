"""Failures and refusals that several detectors judge."""

import re

import pandas as pd

from harness.analysis.timeline import containing
from harness.analysis.waits.failures import Failure, failures
from harness.analysis.waits.stated import failures_for
from harness.detectors.detector import Bools, CannotJudgeError, Timeline
from harness.model.records import Outcome

# A server that limits how often it is asked answers one of them (RFC 6585, RFC 9110).
_TOO_MANY, _UNAVAILABLE = 429, 503
RETRY_AFTER = re.compile(r"; Retry-After: (.{1,40})$")
_LEAST_SHARE = 0.005  # of the runs: as for validity, fewer change no figure of the report
FEW_ACCEPTED = 5  # submissions that a rate needs


def require_reasons(timeline: Timeline) -> None:
    """Check that failed runs, if there are any, have said why.

    Raises:
        CannotJudgeError: none has: KFP's API gives no reason, and nothing else was observed.
    """
    failed = failures(timeline)
    if failed and not any(f.texts for f in failed):
        raise CannotJudgeError(
            "runs failed, and nothing that was observed says why: no access to pods, events or workflows"
        )


def is_limited(runs: pd.DataFrame) -> Bools:
    """Which rows were refused by a limit on how often the platform is asked.

    A platform that is away or starts answers 503 with Retry-After as well, and accepts nothing meanwhile.
    """
    asked = ((runs["status"] == _UNAVAILABLE) & containing(runs["error"], RETRY_AFTER)).fillna(False)
    sent = runs["sent_s"]
    meanwhile = (runs["outcome"] == Outcome.ACCEPTED.value) & (sent >= sent[asked].min()) & (sent <= sent[asked].max())
    limited = (runs["status"] == _TOO_MANY) | (asked & (int(meanwhile.sum()) >= FEW_ACCEPTED))
    return (limited & (runs["outcome"] == Outcome.REJECTED.value)).to_numpy(dtype=bool, na_value=False)


def adapter_failures(timeline: Timeline) -> tuple[list[Failure], list[Failure]]:
    """Failures that name an adapter, and those without a reason; both empty when too few executions failed this way.

    Where none names an adapter, only plain 500s of hetida designer count.
    """
    named = failures_for(timeline, "adapter-errors")
    if not named and timeline.plan.target != "hetida":
        return [], []
    bare = failures_for(timeline, "runtime-error", *(("runtime-call-failed",) if named else ()))
    few = len(named) + len(bare) < _LEAST_SHARE * max(len(timeline.runs), 1)
    return ([], []) if few else (named, bare)
