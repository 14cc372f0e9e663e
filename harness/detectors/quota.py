"""A namespace's quota refuses pods."""

import re

from harness.analysis.timeline import Timeline
from harness.analysis.waits.failures import failures
from harness.detectors.detector import RUNS, CannotJudgeError, broke, slowed
from harness.model.findings import Evidence, Finding

NAME = "quota"
NEEDS = (RUNS,)

EXCEEDED = re.compile(r"exceeded quota:? *([\w.-]*)[^“”]*", re.IGNORECASE)


def detect(timeline: Timeline) -> list[Finding]:
    """The API server's own words, in events or in runs' messages."""
    events = timeline.events
    spoken = events["message"][(events["message"] != "").to_numpy(dtype=bool)].dropna()
    texts = [str(message) for message in spoken if EXCEEDED.search(str(message))]
    said = [f for f in failures(timeline) if f.says(EXCEEDED)]
    if not texts and not said:
        if not (events["kind"] == "Pod").any():
            raise CannotJudgeError("a quota's refusals are events, and none of pods were observed")
        return []
    share = len(said) / max(len(timeline.runs), 1)
    example = texts[0] if texts else next(t for f in said for t in f.texts if EXCEEDED.search(t))
    found = EXCEEDED.search(example)
    name = (found[1] if found else "") or "quota"
    return [
        Finding(
            NAME,
            f"The namespace's quota ({name}) refused pods" + (f": {share:.0%} of the runs failed" if said else ""),
            0.95,
            (Evidence(f"{max(len(texts), len(said)):,} times: “{example[:240]}”", float(len(texts)), "", "events"),),
            "Raise the quota, or run fewer pods at once.",
            (
                f"kubectl describe resourcequota -n {timeline.namespace}",
                f"kubectl edit resourcequota {name} -n {timeline.namespace}",
            ),
            broke(share) if said else slowed(0.5),
        )
    ]
