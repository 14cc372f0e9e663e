"""One simulated platform: the parts of a profile, assembled under one event loop."""

from collections.abc import Callable
from random import Random
from typing import Protocol

from harness.reasons import Row
from harness.simulator import hetida
from harness.simulator.argo.guesses import Guesses
from harness.simulator.argo.operator import Unfolding
from harness.simulator.cluster import Cluster, ClusterListener, NullListener
from harness.simulator.cluster.quota import Quotas
from harness.simulator.engine.calendar import Skew
from harness.simulator.engine.distributions import Draws
from harness.simulator.engine.events import EventLoop
from harness.simulator.kfp.agent import Agent
from harness.simulator.kfp.records import Run
from harness.simulator.kfp.server import Server
from harness.simulator.profile import Profile
from harness.simulator.workflows.artifact_store import ArtifactStore
from harness.simulator.workflows.controller import Controller
from harness.simulator.workflows.drivers import Drivers
from harness.simulator.workflows.steps import Steps
from harness.simulator.workflows.workflow import Workflow


class Statements(Protocol):
    """What faults have the platform's components state."""

    def add(self, row: Row, share: float) -> None:
        """Have a row of the catalogue stated about a share of the runs."""
        ...


class Platform:
    """All parts of one platform.

    Each part has its own random stream, so that a change to one part does not change the draws of the others.
    """

    def __init__(self, profile: Profile, seed: int = 0, listener: ClusterListener | None = None) -> None:
        self.profile = profile
        self.seed = seed
        self.loop = EventLoop()
        self.skew = Skew()
        stream = str(seed)
        self.cluster = Cluster(self.loop, profile, stream, listener or NullListener())
        self.store = ArtifactStore(self.loop, profile.store)
        self.steps = Steps(
            profile.steps, Draws(f"{stream}/steps"), self.store, self.cluster.kubelet, profile.priority_classes
        )
        self.drivers = Drivers(
            profile.controller, self.steps, times=Random(f"{stream}/drivers"),
            choices=Random(f"{stream}/conditions"), caching=profile.caching,
        )  # fmt: skip
        quotas = Quotas(profile.quota, {tenant.namespace: tenant.quota for tenant in profile.tenants})
        self.controller = Controller(
            self.loop, profile.controller, cluster=self.cluster, steps=self.steps, drivers=self.drivers,
            changed=self._workflow_changed, quotas=quotas,
        )  # fmt: skip
        self.server = Server(self.loop, profile, stream, self.controller)
        self.hetida = (
            hetida.Service(self.loop, profile.hetida, f"{stream}/hetida", resampled=profile.resampled)
            if profile.hetida
            else None
        )
        guesses = Guesses(self.steps, Draws(f"{stream}/argo"), profile.controller.loop_iterations)
        self.argo = Unfolding(self.loop, self.controller, profile.priority_classes, guesses)
        self.statements: Statements | None = None
        self.workflow_watchers: list[Callable[[Workflow], None]] = []
        # Called when the API server has recorded a run's end.
        self.run_watchers: list[Callable[[Run], None]] = [self.server.run_over]
        self.agent = Agent(self.loop, profile.agent, self.server, profile.api.tokens_per_report, self._run_over)

    def _workflow_changed(self, workflow: Workflow) -> None:
        if workflow.run_id:
            self.agent.changed(workflow)
        for watcher in self.workflow_watchers:
            watcher(workflow)

    def _run_over(self, run: Run) -> None:
        assert run.workflow is not None
        for watcher in self.workflow_watchers:
            watcher(run.workflow)
        for watch in self.run_watchers:
            watch(run)
