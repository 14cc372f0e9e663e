"""Whether the observed cluster is another one than the platform's."""

from collections.abc import Set as AbstractSet

from harness.model.phases import SUCCEEDED
from harness.model.plan import Plan
from harness.targets.target import ListedRun


class ClusterMismatch:
    """Notices that runs of the test succeed although no observed pod worked for any of them; reports it once."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._succeeded: set[str] = set()
        self._reported = False

    def see(self, run: ListedRun) -> None:
        """Take in a run that has ended."""
        if run.state == SUCCEEDED and run.created_at >= self._plan.started_at:
            self._succeeded.add(run.id)

    def message(self, worked: AbstractSet[str] | None, *, enough: int) -> str:
        """What to report; "" before `enough` runs prove it, and after the first report.

        Args:
            worked: runs that observed pods have worked for; none while pods are not observed.
            enough: how many runs must have succeeded.
        """
        if self._reported or worked is None or len(self._succeeded) < enough or not self._succeeded.isdisjoint(worked):
            return ""
        self._reported = True
        return (
            f"{len(self._succeeded):,} of the runs at {self._plan.host} succeeded, but no observed pod worked "
            "for any of them: the kubeconfig names another cluster, or the runs' namespace is not observed"
        )
