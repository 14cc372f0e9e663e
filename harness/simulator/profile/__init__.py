"""Profiles: the settings of a simulated platform (`settings`), read from YAML (`file`)."""

from harness.simulator.profile.hetida import Backend, DataAdapter, Execution, Hetida, MeasuredExecutions, Runtime
from harness.simulator.profile.kueue import Amounts, ClusterQueue
from harness.simulator.profile.settings import (
    Agent,
    Api,
    ArtifactStore,
    Autoscaler,
    Controller,
    Database,
    FaultPlan,
    Kubelet,
    Listing,
    Measured,
    MeasuredPod,
    Pool,
    Profile,
    Quota,
    Requests,
    Scheduler,
    Step,
    Taint,
    Tenant,
)  # fmt: skip
from harness.simulator.profile.spot import Eviction

__all__ = [
    "Agent", "Amounts", "Api", "ArtifactStore", "Autoscaler", "Backend", "ClusterQueue", "Controller", "DataAdapter",
    "Database", "Eviction", "Execution", "FaultPlan", "Hetida", "Kubelet", "Listing", "Measured", "MeasuredExecutions",
    "MeasuredPod", "Pool", "Profile", "Quota", "Requests", "Runtime", "Scheduler", "Step", "Taint", "Tenant",
]  # fmt: skip
