"""Finished workflows pile up: nothing removes them."""

import numpy as np

from harness.detectors.detector import CannotJudgeError, Capability, Evidence, Finding, Timeline, slowed

NAME = "finished-workflows"
NEEDS = (Capability.RUNS, Capability.CONTROLLER)
TARGETS = ("argo", "kfp")

_METRIC = "argo_workflows"  # workflows by phase, from the controller's own metrics
_FINISHED = frozenset({"Succeeded", "Failed", "Error"})
# The controller keeps all of them in memory and looks at them again; the archive and listings take as long.
_MIN_FINISHED = 5_000
_MIN_SHARE_RISING = 0.9  # of the changes go up


def detect(timeline: Timeline) -> list[Finding]:
    """There are thousands of finished workflows, and their number only grows."""
    samples = timeline.labelled(_METRIC, "phase")
    if not len(samples):
        raise CannotJudgeError("the workflow controller's metrics were not recorded (--metrics argo=… or Prometheus)")
    finished = samples[samples["phase"].isin(_FINISHED)]
    counts = finished.groupby("at_s", sort=True)["value"].sum().to_numpy(dtype=np.float64)
    if counts.size < 2 or counts[-1] < _MIN_FINISHED or counts[-1] <= counts[0]:  # two show a change
        return []
    steps = np.diff(counts)
    moved = steps[steps != 0]
    if float((moved > 0).mean()) < _MIN_SHARE_RISING:
        return []
    last = float(counts[-1])
    return [
        Finding(
            NAME,
            f"{last:,.0f} finished workflows are kept, and none are removed",
            0.8,
            (
                Evidence(
                    f"their number grew from {counts[0]:,.0f} to {last:,.0f} during the test",
                    last, "workflows", "samples", f"metric = {_METRIC}",
                ),
            ),
            "Give workflows a time to live: ttlStrategy in workflowDefaults of the controller's ConfigMap, and podGC "
            "for their pods; with KFP, TTL_SECONDS_AFTER_WORKFLOW_FINISH of its persistence agent.",
            (
                "kubectl get workflows -A -l workflows.argoproj.io/completed=true --no-headers | wc -l",
                f"kubectl edit configmap workflow-controller-configmap -n {timeline.namespace}",
            ),
            slowed(0.1),
        )
    ]  # fmt: skip
