"""How a cloud gives spot machines and takes them back."""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

from harness.prepare.settings import SPOT
from harness.simulator.profile.bounds import ABOVE_0, DurationAmount, OneOf, Seconds
from harness.simulator.profile.prices import PriceSeries


class Cloud(NamedTuple):
    """What a cloud does with its spot machines in Kubernetes.

    Attributes:
        label: of the nodes.
        tainted: whether the label is a taint, too.
        notice_s: from the announcement until the machine is off.
        on_notice: what becomes of the pods then, see `Eviction`.
    """

    label: tuple[str, str]
    tainted: bool
    notice_s: float
    on_notice: str


# AKS taints such nodes and leaves their pods alone; on GKE the kubelet shuts the pods down; on EKS Karpenter, managed
# node groups and the termination handler drain the node.
CLOUDS = {
    "aks": Cloud(SPOT["aks"], True, 30.0, "nothing"),
    "gke": Cloud(SPOT["gke"], False, 30.0, "shutdown"),
    "eks": Cloud(SPOT["eks"], False, 120.0, "drain"),
    "karpenter": Cloud(SPOT["karpenter"], False, 120.0, "drain"),
}


@dataclass(frozen=True, slots=True)
class Eviction:
    """When and how the machines of a spot pool are taken back.

    On notice, ``nothing`` happens to pods (they stop with the machine, and their objects are deleted later), a
    ``drain`` deletes them, or a ``shutdown`` of the node lets the kubelet end them, which leaves them Failed.
    """

    cloud: Annotated[str, OneOf(tuple(CLOUDS))] = "aks"  # determines label, taint, and what is not given below
    notice: Seconds | None = None
    on_notice: Annotated[str, OneOf(("nothing", "drain", "shutdown"))] | None = None
    # delete: the machine and its node are gone. deallocate: the node stays, counts for the pool, and holds its pods.
    policy: Annotated[str, OneOf(("delete", "deallocate"))] = "delete"
    at: tuple[Seconds, ...] = ()  # a script: at each instant, the oldest machine is taken back
    returns: DurationAmount | None = None  # after an eviction, the cloud has no machine of the pool for so long
    max_price: Annotated[float, ABOVE_0] | None = None  # above it, machines are taken back and none are given
    prices: PriceSeries = PriceSeries()  # a CSV file with the columns at and price, in the profile's folder

    @property
    def of_cloud(self) -> Cloud:
        """The cloud's terms, with the notice and its consequence in effect."""
        found = CLOUDS[self.cloud]
        return found._replace(
            notice_s=found.notice_s if self.notice is None else self.notice, on_notice=self.on_notice or found.on_notice
        )
