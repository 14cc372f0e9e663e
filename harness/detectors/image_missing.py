"""Images can't be pulled: the registry refuses or does not have them, and the pods wait for good."""

from harness.analysis.timeline import Timeline
from harness.analysis.waits.failures import own_events
from harness.detectors.capability import Capability
from harness.detectors.detector import broke
from harness.model.findings import Evidence, Finding
from harness.model.phases import SUCCEEDED

NAME = "image-missing"
NEEDS = (Capability.RUNS, Capability.PODS)
FAULTS = ("image-missing",)

_PULL_FAILED = frozenset({"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName"})
_WORDS = r"pull image|ErrImagePull|ImagePullBackOff"


def detect(timeline: Timeline) -> list[Finding]:
    """Failed pulls, in the kubelet's events and in the states of containers."""
    events, runs = own_events(timeline), timeline.runs
    events = events[(events["kind"] == "Pod").to_numpy(dtype=bool)]
    failed = events["reason"].isin(_PULL_FAILED) | (
        (events["reason"] == "Failed") & events["message"].str.contains(_WORDS)
    )
    broken = events[failed.to_numpy(dtype=bool)]
    if not len(broken):
        return []
    pods, hit = broken["object"].nunique(), runs["run"].isin(broken["run"])
    stuck = int((hit & (runs["state"] != SUCCEEDED)).sum())
    share = stuck / max(len(runs), 1)
    example = max(broken["message"].astype(str), key=len)
    facts = (
        Evidence(f"images of {pods:,} pods could not be pulled: “{example[:240]}”", float(pods), "pods", "events"),
        Evidence(f"{stuck:,} runs ({share:.1%}) with such a pod did not succeed", share, "share", "submissions"),
    )
    return [
        Finding(
            NAME,
            f"Images can't be pulled: {share:.0%} of the runs wait for them or failed",
            0.95,
            facts,
            "Check the image's name and tag, that the registry has it, and the pull secret of the service account. "
            "Such runs stay RUNNING until they are terminated.",
            (
                f"kubectl get events -n {timeline.namespace} --field-selector reason=Failed",
                f"kubectl get serviceaccount pipeline-runner -n {timeline.namespace} -o yaml",
            ),
            broke(share),
        )
    ]
