"""A namespace's resource quota rejects pods."""

from harness.analysis.timeline import Timeline
from harness.analysis.waits.failures import failures
from harness.detectors.capability import Capability
from harness.detectors.detector import CannotJudgeError, broke, slowed
from harness.detectors.error_texts import QUOTA_EXCEEDED
from harness.model.findings import Evidence, Finding
from harness.model.inert import shell_word

NAME = "quota"
NEEDS = (Capability.RUNS,)
FAULTS = ("quota",)


def detect(timeline: Timeline) -> list[Finding]:
    """The API server's error text, in events or in the runs' messages."""
    events = timeline.events
    messages = events["message"][(events["message"] != "").to_numpy(dtype=bool)].dropna()
    texts = [str(message) for message in messages if QUOTA_EXCEEDED.search(str(message))]
    failed = [f for f in failures(timeline) if f.says(QUOTA_EXCEEDED)]
    if not texts and not failed:
        if not (events["kind"] == "Pod").any():
            raise CannotJudgeError("quota rejections appear in pod events, and none were observed")
        return []
    share = len(failed) / max(len(timeline.runs), 1)
    example = texts[0] if texts else next(t for f in failed for t in f.texts if QUOTA_EXCEEDED.search(t))
    found = QUOTA_EXCEEDED.search(example)
    name = (found[1] if found else "") or "quota"
    return [
        Finding(
            NAME,
            f"The namespace's quota ({name}) rejected pods" + (f": {share:.0%} of the runs failed" if failed else ""),
            0.95,
            (Evidence(f"{max(len(texts), len(failed)):,} times: “{example[:240]}”", float(len(texts)), "", "events"),),
            "Raise the quota, or run fewer pods at once.",
            (
                f"kubectl describe resourcequota -n {timeline.namespace}",
                f"kubectl edit resourcequota {shell_word(name)} -n {timeline.namespace}",
            ),
            broke(share) if failed else slowed(0.5),
        )
    ]
