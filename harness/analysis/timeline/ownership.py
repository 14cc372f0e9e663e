"""Who owns a record: this test's runs or the platform, which are judged, or another workload."""

from collections.abc import Collection

import numpy as np
import pandas as pd

from harness.analysis.timeline.columns import Bools, within
from harness.analysis.timeline.names import Names
from harness.model.plan import Plan

# Components of Kubernetes, such as autoscalers.
_SYSTEM = "kube-system"
_DEFAULT = "kubeflow"  # of KFP
# A decision about the cluster's nodes, reported in an event of a pod that happens to wait.
_DECISIONS = frozenset({"TriggeredScaleUp"})


def of_others(events: pd.DataFrame, plan: Plan, runs: Collection[str], names: Names, own: Bools) -> Bools:
    """Per event: it belongs to a run that is not of this test, or to an object that is neither its nor the platform's.

    Args:
        events: as recorded; older folders don't name the objects' namespaces, so that only runs identify them.
        plan: names the platform's namespaces, and the runs' if it was given.
        runs: this test's.
        names: of all pods.
        own: per name, whether it is of a pod of this test's runs; where none was observed, those in the runs' namespace
            count as its.
    """
    run, of_pod = events["run"], (events["kind"] == "Pod").to_numpy(dtype=bool)
    ours = within(run, runs) & (run != "").to_numpy(dtype=bool)
    if of_pod.any():
        # Looked up the other way round: a large test has millions of pods, and events of some.
        said = events["object"][of_pod].reset_index(drop=True)
        seen = own & names.where(lambda texts: within(texts, said))
        ours[of_pod] |= within(said, names.take(np.flatnonzero(seen)))
    apart = run != ""
    if "namespace" in events:
        platform = {"", _SYSTEM, *plan.observer.platform_namespaces}
        with_runs = events["namespace"].isin({namespace_of(plan, events, runs), *plan.tenants})
        apart |= ~events["namespace"].fillna("").isin(platform) & ~(with_runs & (~of_pod | (not own.any())))
    return np.asarray(apart & ~ours & ~events["reason"].isin(_DECISIONS), dtype=np.bool_)


def runs_of_events(events: pd.DataFrame, runs: Collection[str]) -> "pd.Series[str]":
    """The run of each event, "" for none; a ReplicaSet called ``RUN-…`` is the run's.

    Only the name shows it for a pod that was never created, such as a Dask worker's that a quota refuses.

    Args:
        events: as recorded.
        runs: this test's.
    """
    found = events["run"].fillna("")
    unnamed = (found == "") & (events["kind"] == "ReplicaSet")
    if not unnamed.any():
        return found
    known = set(runs) - {"", None}
    return found.mask(unnamed, events["object"].map(lambda name: _prefix(str(name), known) if name else ""))


def _prefix(name: str, known: Collection[str]) -> str:
    """The longest of the known names that the name continues after a hyphen; "" for none."""
    ends = (at for at in range(len(name) - 1, 0, -1) if name[at] == "-")
    return next((name[:at] for at in ends if name[:at] in known), "")


def namespace_of(plan: Plan, events: pd.DataFrame, runs: Collection[str]) -> str:
    """The runs' namespace: as given, else where most events of their pods happened, else KFP's default.

    Args:
        plan: of the test.
        events: as recorded.
        runs: this test's.
    """
    given = str(plan.target_options.get("namespace") or "")
    if given or "namespace" not in events:
        return given or _DEFAULT
    of_pods = events.loc[events["kind"] == "Pod", ["run", "namespace"]]
    places = of_pods["namespace"][within(of_pods["run"], runs)].fillna("")
    seen = places[places != ""].mode()
    return str(seen.iloc[0]) if len(seen) else _DEFAULT
