"""The workflow controller did nothing for a while, although ended pods and new workflows waited for it."""

from harness.analysis.waits.outage import outage
from harness.detectors.controller.slow_controller import namespace
from harness.detectors.detector import Capability, Evidence, Finding, Timeline, counted, format_duration, moment, slowed

NAME = "controller-down"
SEEN = ("real: controller-killed",)
NEEDS = (Capability.RUNS, Capability.PODS)
USES = {Capability.CONTROLLER: "whether the controller's metrics were missing at that time"}
TARGETS = ("kfp", "argo")
# They hold back pods and the ends of runs as well.
EXPLAINED_BY = dict.fromkeys(("api-errors", "db-connections", "db-full", "parallelism-cap", "quota"), 0.3)


def detect(timeline: Timeline) -> list[Finding]:
    """No pod created and no workflow ended for longer than a look, while several runs waited for either."""
    found = outage(timeline)
    if found is None:
        return []
    when = f"for {format_duration(found.length_s)}, from {moment(found.since_s)}"
    evidence = [
        Evidence(
            f"no pod was created and no workflow ended {when}, while {counted(found.runs, 'run')} waited for it",
            found.length_s, "s", "spans",
        )
    ]  # fmt: skip
    if found.silent:
        evidence.append(Evidence("its metrics could not be scraped in that time", None, "", "samples", "metric ~ argo"))
    if found.died:
        evidence.append(Evidence(f"its pod says “{found.died[:200]}”", None, "", "events", "kind = Pod"))
    place = namespace(timeline)
    return [
        Finding(
            NAME,
            f"The workflow controller was down or stopped working {when}",
            0.9 if found.silent or found.died else 0.75,
            tuple(evidence),
            "Find out why it stopped: a restart, a lost lease, a lost node, or an API server that did not answer it. A "
            "second replica with leader election shortens an outage.",
            (
                f"kubectl get pods -n {place} -l app=workflow-controller",
                f"kubectl logs -n {place} deployment/workflow-controller --previous --tail=50",
                f"kubectl get lease -n {place} workflow-controller -o yaml",
            ),
            slowed(found.share),
        )
    ]
