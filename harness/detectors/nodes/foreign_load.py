"""Others used the cluster during the test: they took nodes and the controller's time from this test."""

from harness.analysis.capacity.others_load import OthersLoad, others_load
from harness.analysis.waits.scheduling_wait import scheduling_wait
from harness.analysis.waits.waits import waits_so_far
from harness.detectors.detector import Capability, Evidence, Finding, Timeline, counted, slowed
from harness.model.phases import CONTROLLER, UNSCHEDULABLE

NAME = "foreign-load"
NEEDS = (Capability.RUNS, Capability.PODS)
USES = {Capability.NODES: "the share of the nodes that others held"}
TARGETS = ("kfp",)

_MIN_GAIN = 0.05  # of the runs' time: with less, the test's result would hardly be another one without the others


def detect(timeline: Timeline) -> list[Finding]:
    """The wait for nodes and for the controller, as far as others account for it by what they used of both."""
    others = others_load(timeline)
    if others is None:
        return []
    waited, queued = scheduling_wait(timeline).share, max(waits_so_far(timeline).shares()[CONTROLLER], 0.0)
    gain = waited * others.held + queued * others.created
    if gain < _MIN_GAIN:
        return []
    return [
        Finding(
            NAME,
            f"Others used the cluster during the test: without them, runs would take up to {gain:.0%} less time",
            0.4,
            _evidence(timeline, others, waited, queued),
            "Repeat the test while the cluster is quiet, or give it nodes and a workflow controller of its own: this "
            "result is what others left.",
            (
                "kubectl get pods -A -l workflows.argoproj.io/workflow -o wide"
                if others.runs
                else "kubectl get pods -A -l '!workflows.argoproj.io/workflow' -o wide",
            ),
            slowed(gain),
        )
    ]


def _evidence(timeline: Timeline, others: OthersLoad, waited: float, queued: float) -> tuple[Evidence, ...]:
    facts = []
    if others.runs:
        facts.append(
            Evidence(
                f"{counted(others.runs, 'run')} of others had pods during the test; {counted(others.pods, 'pod')} "
                f"were created for them, {others.created:.0%} of all, while this test's runs spent {queued:.0%} of "
                "their time waiting for their next pod",
                others.created, "share", "spans", "run is not in the ledger",
            )
        )  # fmt: skip
    if others.workloads:
        said = f"{counted(others.workloads, 'other workload')} had pods on the nodes that this test's runs used"
        facts.append(Evidence(said, float(others.workloads), "workloads", "spans", "run contains a slash"))
    if others.held:
        facts.append(
            Evidence(
                f"their pods held {others.held:.0%} of the nodes' CPU or memory while this test's pods waited for a "
                f"node, which took {waited:.0%} of all run time",
                others.held, "share", "spans", f"phase = {UNSCHEDULABLE}",
            )
        )  # fmt: skip
    if timeline.foreign:
        facts.append(
            Evidence(
                f"{counted(timeline.foreign, 'listed run')} of the test's experiment did not belong to the test",
                float(timeline.foreign), "runs", "spans",
            )
        )  # fmt: skip
    return tuple(facts)
