"""The observation has gaps, or it watched the wrong cluster: the record is incomplete."""

import pandas as pd

from harness.detectors.detector import Capability, Evidence, Finding, Timeline, counted, floats, moment, slowed
from harness.model.phases import GAP, INFERRED, WRONG_CLUSTER

NAME = "observer-gaps"
NEEDS = (Capability.RUNS,)
DOUBT = True


def detect(timeline: Timeline) -> list[Finding]:
    """The events that the observer recorded about itself."""
    gaps, elsewhere, inferred = (timeline.events_of("Observer", kind) for kind in (GAP, WRONG_CLUSTER, INFERRED))
    found = [_wrong_cluster(str(elsewhere["message"].iat[0]))] if len(elsewhere) else []
    found += [_inferred(str(message)) for message in inferred["message"]]
    return [*found, _incomplete(gaps)] if len(gaps) else found


def _wrong_cluster(message: str) -> Finding:
    return Finding(
        NAME,
        "The observed pods do not belong to the runs: nodes, pods and waits here are from another cluster",
        0.95,
        (Evidence(message, None, "", "events", f"kind = Observer and reason = {WRONG_CLUSTER}"),),
        "Select the platform's cluster with --kube-context or KUBECONFIG, and the runs' namespace with --namespace.",
        ("kubectl config get-contexts",),
        slowed(0.5),
    )


def _inferred(message: str) -> Finding:
    return Finding(
        NAME,
        "Runs are inferred from their pods: their begin and end are those of pods, and their names those of workflows",
        0.9,
        (Evidence(message, None, "", "events", f"kind = Observer and reason = {INFERRED}"),),
        "Give the address of the platform's API with --host while it still lists the runs.",
        (),
        slowed(0.0),
    )


def _incomplete(gaps: pd.DataFrame) -> Finding:
    facts = [
        Evidence(f"{moment(at)}, {name}: {message}", at, "s", "events", "kind = Observer")
        for at, name, message in zip(floats(gaps, "at_s").tolist(), gaps["object"], gaps["message"], strict=True)
    ]
    return Finding(
        NAME,
        f"The observation has {counted(len(gaps), 'gap')}: the record may be incomplete",
        0.9,
        tuple(facts[:5]),
        "Make sure that the observer's machine reaches the API servers during the whole test.",
        (),
        slowed(0.1),
    )
