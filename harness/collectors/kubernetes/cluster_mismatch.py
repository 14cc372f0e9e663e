"""Whether the cluster that is watched is the one that the platform runs on."""

from harness.collectors.collector import Observation
from harness.model.phases import SUCCEEDED, WRONG_CLUSTER
from harness.targets.target import ListedRun


class ClusterMismatch:
    """Says once that the cluster is another one: when runs of this test have ended well, and no pod worked for any."""

    def __init__(self, observation: Observation) -> None:
        self._observation = observation
        self._succeeded: set[str] = set()
        self._told = False

    def see(self, run: ListedRun) -> None:
        """A run is over."""
        if run.state == SUCCEEDED and run.created_at >= self._observation.plan.started_at:
            self._succeeded.add(run.id)

    def tell(self, enough: int) -> None:
        """Say it if there are so many of them."""
        worked, host = self._observation.activity.worked, self._observation.plan.host
        if self._told or worked is None or len(self._succeeded) < enough or not self._succeeded.isdisjoint(worked):
            return
        self._told = True
        text = (
            f"{len(self._succeeded):,} of the runs at {host} ended well, and none of the pods that are watched worked "
            "for any of them: the kubeconfig is that of another cluster, or the runs' namespace is not watched"
        )
        self._observation.journal.note(WRONG_CLUSTER, "kubernetes pods", text)
