"""The workflow controller postpones workflows, because as many are running as its limit allows."""

from harness.analysis.waits.failures import own_events
from harness.analysis.waits.startup_delay import startup_delay
from harness.analysis.waits.waits import waits_so_far
from harness.analysis.waits.workflow_limits import binding
from harness.detectors.controller.workflow_limit_fix import commands, evidence, fix, named
from harness.detectors.detector import Capability, Evidence, Finding, Timeline, slowed
from harness.model.phases import CONTROLLER

NAME = "workflows-postponed"
SEEN = ("real: parallelism",)
NEEDS = (Capability.RUNS, Capability.WORKFLOWS)
USES = {Capability.PODS: "how many workflows were active at once"}
TARGETS = ("argo",)  # with KFP, parallelism-cap finds the same from pods

_POSTPONED = "postponed because too many workflows are already running"


def detect(timeline: Timeline) -> list[Finding]:
    """What waiting workflows say, as the controller writes it."""
    own = own_events(timeline)
    postponed = own[own["message"].astype(str).str.contains(_POSTPONED, regex=False)]
    if not len(postponed):
        return []
    runs = int(postponed["run"].nunique())
    share = waits_so_far(timeline).shares()[CONTROLLER]
    most = startup_delay(timeline).most if len(timeline.pods) else 0
    at_once = f": {most} were active at once" if most else ""
    limit = binding(timeline, most)
    return [
        Finding(
            NAME,
            f"The controller's {named(limit)} holds workflows back{at_once}",
            0.95,
            (
                Evidence(
                    f"{runs:,} of the runs that were looked at were “{_POSTPONED}”", float(runs), "runs", "events",
                    "reason = PENDING",
                ),
                Evidence(f"{share:.1%} of all run time passed without a live pod", share, "share", "spans"),
                *evidence(limit, most),
            ),
            fix(limit),
            commands(limit),
            slowed(max(share, 0.01)),
        )
    ]  # fmt: skip
