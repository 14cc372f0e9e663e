"""The KFP API server: runs, the pipeline catalogue, and the rate limit of its Kubernetes client."""

from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Any
from uuid import UUID

from harness.simulator.engine.events import EventLoop
from harness.simulator.engine.queues import TokenBucket
from harness.simulator.kfp.catalogue import Catalogue
from harness.simulator.kfp.database import LIST, Database
from harness.simulator.kfp.errors import RpcError, aborted, internal, invalid, not_found, precondition
from harness.simulator.kfp.packages import complete_parameters
from harness.simulator.kfp.records import (
    ARCHIVED,
    AVAILABLE,
    FAILED,
    PENDING,
    RUNNING,
    UNSTATED,
    Experiment,
    Run,
    Version,
)
from harness.simulator.profile import Profile
from harness.simulator.workflows.controller import Controller
from harness.simulator.workflows.workflow import Workflow

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # of Kubernetes' generated names
Answered = Callable[["Run | RpcError"], None]


class Server:
    """The API server of one installation.

    `start_run` answers once the server's Kubernetes client has a token: throttling delays but never refuses.
    """

    def __init__(self, loop: EventLoop, profile: Profile, seed: str, controller: Controller) -> None:
        self._loop = loop
        self._profile = profile
        self._random = Random(f"{seed}/server")
        self._controller = controller
        self.multi_user = bool(profile.tenants)
        self.namespace = profile.namespace
        self._namespaces = {tenant.namespace for tenant in profile.tenants}
        self.bucket = TokenBucket(profile.api.qps, profile.api.burst)
        self.reviews = TokenBucket(profile.api.qps, profile.api.burst)  # its client that asks for users' rights
        self.database = Database(profile.database, Random(f"{seed}/database"))
        self.error_rate = profile.api.error_rate
        self.refuse: Callable[[Run], RpcError | None] = lambda _: None  # why a run is not accepted
        self.latency_factor = 1.0
        self.in_flight = 0
        self.catalogue = Catalogue(
            loop, self.new_id, profile.controller.loop_iterations,
            multi_user=self.multi_user, objects=profile.api.pipelines == "kubernetes",
        )  # fmt: skip
        self.runs: dict[str, Run] = {}
        self.deleted = 0  # number of deleted runs
        self._numbers = 0

    def latency_s(self) -> float:
        """Draw the duration of one write."""
        return self._profile.api.latency.sample(self._random, {}) * self.latency_factor

    def listing_s(self, page: Iterable[Run] = ()) -> float:
        """Seconds for listing these runs."""
        return self.database.listing_s(len(self.runs), page)

    def after_listing(self, page: Iterable[Run], done: Callable[[], None]) -> None:
        """Call `done` when a page of runs is ready, which holds a connection until then.

        Raises:
            RpcError: 500: no free connection.
        """
        self.database.connect(LIST)
        self._loop.after(self.listing_s(page) * self.database.slowdown, self._listed, done)

    def after_review(self, done: Callable[[], None]) -> None:
        """Call `done` when the client that asks for a user's rights has a token."""
        self._loop.at(self.reviews.take(self._loop.now), done)

    def _listed(self, done: Callable[[], None]) -> None:
        self.database.disconnect()
        done()

    @property
    def buckets(self) -> tuple[TokenBucket, ...]:
        """Of its clients, which have the same limits."""
        return self.bucket, self.reviews

    @property
    def wraps_nodes(self) -> bool:
        """Whether every node of a workflow may be retried."""
        return self._profile.controller.error_retries > 0

    def new_id(self) -> str:
        """A UUID that depends on the simulation's seed."""
        return str(UUID(int=self._random.getrandbits(128), version=4))

    def prepare_run(
        self, name: str, experiment_id: str, version: Version, parameters: Mapping[str, object], **more: Any
    ) -> Run:
        """Check a new run, which does not exist before `start_run`.

        Raises:
            RpcError: as from the real server.
        """
        experiment = self.place(name, experiment_id)
        try:
            complete = complete_parameters(version.spec, parameters)
        except RpcError as error:
            failed = error.within("invalid pipeline job inputs")
            raise failed.within("Failed to generate the ExecutionSpec") from error
        self._numbers += 1
        return Run(
            self.new_id(), self._numbers, name, experiment.id, experiment.namespace, version,
            parameters=complete, given=parameters, created=self._loop.now, **more,
        )  # fmt: skip

    def place(self, name: str, experiment_id: str) -> Experiment:
        """The experiment of a new run with this name; the default one of a single user without an id.

        Raises:
            RpcError: 400: several users, and no id; 404: no such experiment; 500: no name.
        """
        if not name:
            empty = invalid("Run name cannot be empty")
            failed = internal(f"Failed to convert a API run detail to its internal representation: {empty}")
            step = "CreateJob(job.ToV2())Failed to create a run due to conversion error"
            raise failed.within(step, complete=True)
        mismatch = "Failed to create a run due to invalid experimentId and namespace combination"
        if not experiment_id:
            if self.catalogue.default is None:
                raise invalid("Experiment id can not be empty in multi-user mode").within(mismatch)
            return self.catalogue.default
        try:
            return self.catalogue.experiment(experiment_id)
        except RpcError as error:
            missing = error.within(f"Failed to fetch namespace from experiment {experiment_id}")
            raise missing.within(f"Failed to fetch namespace for experiment {experiment_id}").within(
                mismatch
            ) from error

    def start_run(self, run: Run, answered: Answered) -> None:
        """Create the run's workflow when the client's token bucket allows, then answer."""
        if (refused := self.refuse(run)) is not None:
            self._loop.after(self.latency_s(), answered, refused)
            return
        if self._random.random() < self.error_rate:
            error = internal("Failed to create a workflow: rpc error: code = Internal")
            self._loop.after(self.latency_s(), answered, error)
            return
        if run.namespace and run.namespace not in self._namespaces:
            error = internal(f'Failed to create a workflow for ({run.name}): namespaces "{run.namespace}" not found')
            self._loop.after(self.latency_s(), answered, error)
            return
        self.in_flight += 1
        allowed = self.bucket.take(self._loop.now)
        self._loop.at(allowed, self._write, run, self.latency_s(), answered)

    def _write(self, run: Run, takes: float, answered: Answered) -> None:
        try:
            self.database.connect()
        except RpcError as error:
            self.in_flight -= 1
            answered(error)
        else:
            self._loop.after(takes * self.database.slowdown, self._started, run, answered)

    def _started(self, run: Run, answered: Answered) -> None:
        self.in_flight -= 1
        self.database.disconnect()
        try:
            graph = run.version.graph or self.catalogue.flatten(run.version, run.parameters)
            self.database.insert(graph)
        except RpcError as error:
            answered(error)
            return
        workflow = Workflow(
            run.id,
            self._workflow_name(run),
            run.namespace or self.namespace,
            graph=graph,
            parameters=run.parameters,
            created=self._loop.now,
            number=run.number,
        )
        run.workflow = workflow
        run.enter(PENDING, run.created)
        self.runs[run.id] = run
        experiment = self.catalogue.experiments.get(run.experiment_id)
        if experiment is not None:
            experiment.last_run = run.created
        self._controller.add(workflow)
        answered(run)

    def _workflow_name(self, run: Run) -> str:
        """A generated name; drawn again if it is taken, as kube-apiserver does."""
        prefix = run.version.spec["pipelineInfo"]["name"]
        while True:
            name = f"{prefix}-{''.join(self._random.choices(_ALPHABET, k=5))}"
            if (run.namespace or self.namespace, name) not in self._controller.workflows:
                return name

    def run(self, run_id: str, failed: str = "") -> Run:
        """The run with this id; `failed` is what fails without it.

        Raises:
            RpcError: 404.
        """
        try:
            return self.runs[run_id]
        except KeyError:
            missing = not_found("Run", run_id).within(f"Failed to fetch run {run_id}")
            raise (missing.within(failed) if failed else missing) from None

    def terminate(self, run_id: str) -> None:
        """Terminate a run that has not ended."""
        run = self.run(run_id, f"Failed to terminate run {run_id} due to error fetching the run")
        if run.state not in {UNSTATED, PENDING, RUNNING}:
            raise invalid(f"Failed to terminate a run {run_id}. Row not found").within(
                f"Failed to terminate run {run_id}"
            )
        run.cancel()
        if run.workflow is not None:
            self._controller.terminate(run.workflow)

    def retry(self, run_id: str) -> None:
        """Run the failed steps of a run again."""
        run = self.run(run_id, f"Failed to retry run {run_id} due to error fetching the run")
        if run.state != FAILED or run.workflow is None:
            refused = aborted("Workflow must be Failed/Error to retry", "workflow cannot be retried")
            raise refused.within(f"Failed to retry run {run_id}")
        self._controller.retry(run.workflow)
        run.finished = None
        run.enter(RUNNING, self._loop.now)

    def archive(self, run_id: str) -> None:
        """Move a run to the archive."""
        run = self.run(run_id, f"Failed to archive run {run_id} as it failed to be retrieved")
        self._set_storage_state(run, ARCHIVED)

    def unarchive(self, run_id: str) -> None:
        """Restore a run from the archive, unless its experiment is archived."""
        run = self.run(run_id, f"Failed to unarchive run {run_id} as it does not exist")
        if self.catalogue.archived(run.experiment_id):
            detail = f"Failed to unarchive run {run_id} as experiment {run.experiment_id} must be un-archived first"
            raise precondition(detail, "Unarchive the experiment first to allow the run to be restored")
        self._set_storage_state(run, AVAILABLE)

    def archive_experiment(self, experiment_id: str) -> None:
        """Archive an experiment and its runs."""
        self.catalogue.set_experiment_state(experiment_id, ARCHIVED)
        for run in self.runs.values():
            if run.experiment_id == experiment_id:
                self._set_storage_state(run, ARCHIVED)

    @staticmethod
    def _set_storage_state(run: Run, state: str) -> None:
        run.storage_state = state
        run.changes += 1

    def delete_run(self, run_id: str) -> None:
        """Delete a run and its workflow."""
        run = self.run(run_id, f"Failed to delete run {run_id} as it does not exist")
        if run.workflow is not None and run.workflow.key in self._controller.workflows:
            self._controller.remove(run.workflow)
        self._delete_row(run)
        if run.workflow is not None:
            run.workflow.forget()

    def run_over(self, run: Run) -> None:
        """Delete the row of a run that has ended, once its retention time is over."""
        if retention_s := self._profile.api.retention_s:
            self._loop.after(retention_s, self._expire, run)

    def _expire(self, run: Run) -> None:
        if run.finished is not None and run.id in self.runs:
            self._delete_row(run)

    def _delete_row(self, run: Run) -> None:
        if run.workflow is not None:
            self.database.delete(run.workflow.graph)
        del self.runs[run.id]
        self.deleted += 1
