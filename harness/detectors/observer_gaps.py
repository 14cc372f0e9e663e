"""The observation has holes: what happened in them is not in the record."""

import pandas as pd

from harness.analysis.timeline import Timeline, floats
from harness.detectors.detector import RUNS, moment, slowed
from harness.model.findings import Evidence, Finding
from harness.model.phases import GAP, WRONG_CLUSTER

NAME = "observer-gaps"
NEEDS = (RUNS,)


def detect(timeline: Timeline) -> list[Finding]:
    """What the observer said of itself."""
    events = timeline.events
    of_ourselves = events[(events["kind"] == "Observer").to_numpy(dtype=bool)]
    gaps = of_ourselves[(of_ourselves["reason"] == GAP).to_numpy(dtype=bool)]
    elsewhere = of_ourselves[(of_ourselves["reason"] == WRONG_CLUSTER).to_numpy(dtype=bool)]
    found = [_elsewhere(str(elsewhere["message"].iat[0]))] if len(elsewhere) else []
    return [*found, *_holes(gaps)] if len(gaps) else found


def _elsewhere(message: str) -> Finding:
    return Finding(
        NAME,
        "The pods that were watched are not those of the runs: nodes, pods and waits here are of another cluster",
        0.95,
        (Evidence(message, None, "", "events", f"kind = Observer and reason = {WRONG_CLUSTER}"),),
        "Choose the cluster that the platform runs in with --kube-context or KUBECONFIG, and the runs' namespace with "
        "--namespace.",
        ("kubectl config get-contexts",),
        slowed(0.5),
    )


def _holes(gaps: pd.DataFrame) -> list[Finding]:
    facts = [
        Evidence(f"{moment(at)}, {name}: {message}", at, "s", "events", "kind = Observer")
        for at, name, message in zip(floats(gaps, "at_s").tolist(), gaps["object"], gaps["message"], strict=True)
    ]
    return [
        Finding(
            NAME,
            f"The observation has {len(gaps)} gaps; what happened in them may be missing here",
            0.9,
            tuple(facts[:5]),
            "See that the observer's machine reaches the API servers during the whole test.",
            (),
            slowed(0.1),
        )
    ]
