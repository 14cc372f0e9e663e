"""The series of kube-state-metrics that explain the past: how each is asked for, and what lacking it costs.

Source of names: https://github.com/kubernetes/kube-state-metrics/tree/main/docs/metrics and recordings of a real one.
"""

from dataclasses import dataclass
from enum import StrEnum


class Form(StrEnum):
    """How a series is asked for; `$s` is its selector, `$window` and `$step` are lengths."""

    LAST = "last_over_time($s[$window])"
    HELD = "max_over_time($s[$window]) == 1"
    EDGES = (  # when it was 1 first and last
        'label_replace(min_over_time(timestamp($s == 1)[$window:$step]), "edge", "first", "", "") or '
        'label_replace(max_over_time(timestamp($s == 1)[$window:$step]), "edge", "last", "", "")'
    )


@dataclass(frozen=True, slots=True)
class Series:
    """One of kube-state-metrics' series, what else it is called, and what it costs to lack it ("": little)."""

    name: str
    form: Form = Form.LAST
    where: str = ""
    others: tuple[str, ...] = ()  # names that recording rules give it
    cost: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The first that exists is used."""
        return (self.name, *self.others)

    @property
    def dated(self) -> bool:
        """Its values are instants, UTC s."""
        return self.form is Form.EDGES or self.name.endswith(("_created", "_started", "_time"))

    def promql(self, found: str, matchers: str, step_s: int) -> str:
        """For the name that was `found`."""
        selector = f"{found}{{{','.join(filter(None, (self.where, matchers)))}}}"
        return self.form.replace("$step", f"{step_s}s").replace("$s", selector)


_IN_VAIN = 'reason!~"ContainerCreating|PodInitializing"'
OF_PODS = (
    Series("kube_pod_created", cost="pods that are gone are not found: nothing is explained without it"),
    Series("kube_pod_info", Form.EDGES, others=("node_namespace_pod:kube_pod_info:",),
           cost="nodes of pods and their ends when they were deleted are unknown"),
    Series("kube_pod_owner", others=("namespace_workload_pod:kube_pod_owner:relabel",),
           cost="pods are not joined to runs, but by their labels"),
    Series("kube_pod_labels", cost="runs have the names of their workflows instead of the platform's ids"),
    Series("kube_pod_annotations", cost="steps have the names of Argo's templates"),
    Series("kube_pod_status_scheduled_time", cost="waits for a node can't be told from slow starts"),
    Series("kube_pod_status_unschedulable", Form.EDGES,
           cost="pods that no node has room for look like a slow scheduler"),
    Series("kube_pod_container_state_started", cost="when steps began to run is unknown"),
    Series("kube_pod_completion_time", cost="ends are known to one scrape only"),
    Series("kube_pod_status_phase", Form.EDGES, 'phase=~"Succeeded|Failed"',
           cost="failed pods can't be told from others"),
    Series("kube_pod_status_reason", Form.HELD, cost="evictions can't be told from other failures"),
    Series("kube_pod_container_status_terminated_reason", Form.HELD, 'reason!="Completed"',
           cost="steps that ran out of memory can't be told from others that failed"),
    Series("kube_pod_container_status_waiting_reason", Form.EDGES, _IN_VAIN,
           cost="images that can't be pulled and settings that are missing are not seen"),
    Series("kube_pod_init_container_status_waiting_reason", Form.EDGES, _IN_VAIN),
    Series("kube_pod_container_resource_requests",
           others=("cluster:namespace:pod_cpu:active:kube_pod_container_resource_requests",),
           cost="requests are unknown: neither full nodes nor costs can be judged"),
    Series("kube_pod_container_resource_limits"),
    Series("kube_pod_spec_volumes_persistentvolumeclaims_info"),
    Series("kube_pod_container_info", cost="pulls of images are part of slow starts"),
)  # fmt: skip
OF_NODES = (
    Series("kube_node_info", Form.EDGES, cost="when nodes came and went is unknown"),
    Series("kube_node_created"),
    Series("kube_node_labels", cost="pools, machine types and spot nodes are unknown"),
    Series("kube_node_status_allocatable", cost="the size of nodes is unknown: whether they were full can't be judged"),
    Series("kube_node_status_condition", Form.EDGES, 'condition="Ready",status="true"'),
)
OF_CLAIMS = (
    Series("kube_persistentvolumeclaim_status_phase", Form.HELD),
    Series("kube_persistentvolumeclaim_resource_requests_storage_bytes"),
)
ALL = (*OF_PODS, *OF_NODES, *OF_CLAIMS)
