"""The words by which platforms, stores, databases and Kubernetes report known errors."""

import re

import pandas as pd

from harness.analysis.timeline import Bools, Timeline
from harness.analysis.timeline.columns import containing
from harness.analysis.waits.failures import Failure, failures
from harness.detectors.detector import CannotJudgeError
from harness.model.records import Outcome

# A store that reports itself full: MinIO, SeaweedFS, Ceph, any file system, the HTTP status for it.
STORE_FULL = re.compile(
    r"minimum free d(?:isk|rive) threshold|XMinioStorageFull|no space left on device|disk quota exceeded|QuotaExceeded"
    r"|no (?:free|writable) volumes|not enough (?:free )?space|insufficient storage|volume .{0,40}is full",
    re.IGNORECASE,
)
# What KFP's launcher logs, and Argo's wait reports, when it could not write, whatever the cause.
UNWRITTEN = re.compile(
    r"(?:unable|failed) to (?:write|save|upload) (?:the )?(?:outputs?|artifacts?)|failed to put (?:file|directory)"
    r"|waiting for the condition",
    re.IGNORECASE,
)
# What Go's dialer says, as steps and drivers pass it on: no server answered, so none reported a full disk.
UNREACHED = re.compile(r"dial tcp|connection refused|no route to host|no such host", re.IGNORECASE)
# The store answered, with an error of its own: it was reached.
STORE_ANSWERED = re.compile(r"StatusCode: [1-5]\d\d|internal error, please try again", re.IGNORECASE)
# All that Kubernetes and Argo know of a step that failed by itself, and of what follows it: the reason is in its log.
BARE_EXIT = re.compile(
    r"(?:container main ended with exit code|(?:main: )?Error \(exit code) [1-9]\d*\)?"
    r"|child '.*' failed|omitted: depends condition not met"
)
OUT_OF_MEMORY = re.compile(r"OOMKilled|out of memory|MemoryError|memory cgroup out", re.IGNORECASE)
# SIGKILL without the kubelet's reason: the kernel killed a process of the container, and not the first one.
KILLED = re.compile(r"exit (?:code|status):? 137|signal: killed", re.IGNORECASE)
# A kubelet evicts: "The node was low on resource: memory. Threshold quantity: …".
NODE_PRESSURE = re.compile(r"node was low on resource|node had condition: \[", re.IGNORECASE)
_TOO_MANY, _UNAVAILABLE = (
    429,
    503,
)  # a server that limits how often it is asked answers one of them (RFC 6585, RFC 9110)
RETRY_AFTER = re.compile(r"; Retry-After: (.{1,40})$")
EVICTED = re.compile(
    r"\bevict|preempt|PodGC|node no longer exists|node (?:is )?shut(?:ting)? ?down|NodeShutdown|pod deleted|"
    "node .{0,60}(?:not found|lost)|imminent node",
    re.IGNORECASE,
)
# hetida designer names the stage and the exception; a data source that is down ends as a plain 500 of the runtime.
# Through the backend, that looks like a worker that was killed.
ADAPTER = re.compile(r"LOADING_DATA_FROM_ADAPTERS|SENDING_DATA_TO_ADAPTERS|Adapter\w*(?:Exception|Error)")
PLAIN_500 = re.compile(r"HTTP 500 · Internal Server Error")
BARE_500 = re.compile(f"{PLAIN_500.pattern}|HTTP 500 · Failure while calling the runtime")
_LEAST_SHARE = 0.005
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
    failed = failures(timeline)
    named = [f for f in failed if f.says(ADAPTER)]
    if not named and timeline.plan.target != "hetida":
        return [], []
    bare = [f for f in failed if f.says(BARE_500 if named else PLAIN_500) and not f.says(ADAPTER)]
    few = len(named) + len(bare) < _LEAST_SHARE * max(len(timeline.runs), 1)
    return ([], []) if few else (named, bare)
