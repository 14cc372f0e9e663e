"""The KFP API server: experiments, pipelines and runs, and the wait for its Kubernetes client."""

from collections.abc import Callable, Mapping
from random import Random
from typing import Any
from uuid import UUID

import orjson

from harness.model.errors import ConfigError
from harness.simulator.events import EventLoop
from harness.simulator.kfp.controller import Controller
from harness.simulator.kfp.database import LIST, Database
from harness.simulator.kfp.errors import Code, RpcError, invalid, not_found
from harness.simulator.kfp.graph import flatten
from harness.simulator.kfp.packages import complete_parameters, parse_package
from harness.simulator.kfp.records import (
    ARCHIVED,
    AVAILABLE,
    CANCELING,
    OVER,
    PENDING,
    Experiment,
    Pipeline,
    Run,
    Spec,
    Version,
)  # fmt: skip
from harness.simulator.kfp.workflow import Workflow
from harness.simulator.profile import Profile
from harness.simulator.stations import TokenBucket

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # of Kubernetes' generated names
Answered = Callable[["Run | RpcError"], None]


class Server:
    """The API server of one installation.

    `create_run` answers when the server's Kubernetes client got a token: throttling delays, it does not refuse.
    """

    def __init__(self, loop: EventLoop, profile: Profile, seed: str, controller: Controller) -> None:
        self._loop = loop
        self._profile = profile
        self._random = Random(f"{seed}/server")
        self._controller = controller
        self.bucket = TokenBucket(profile.api.qps, profile.api.burst)
        self.database = Database(profile.database, Random(f"{seed}/database"))
        self.error_rate = profile.api.error_rate
        self.latency_factor = 1.0
        self.in_flight = 0
        self.experiments: dict[str, Experiment] = {}
        self.pipelines: dict[str, Pipeline] = {}
        self.versions: dict[str, Version] = {}
        self.runs: dict[str, Run] = {}
        self.deleted = 0  # counts removals from `runs`
        self._names: dict[tuple[str, str], str] = {}  # (namespace, experiment's name) → its id
        self._pipeline_names: dict[tuple[str, str], str] = {}
        self._inline: dict[bytes, Version] = {}
        self._numbers = 0
        self.create_experiment("Default", "", "All runs created without specifying an experiment will be grouped here.")

    def latency_s(self) -> float:
        """How long the server works on one write."""
        return self._profile.api.latency.sample(self._random, {}) * self.latency_factor

    def listing_s(self) -> float:
        """How long the database takes to find a page of runs, besides the time for rendering it."""
        return self.database.row_s * len(self.runs)

    def after_listing(self, done: Callable[[], None]) -> None:
        """Go on when the database has found a page of runs; a connection is held until then.

        Raises:
            RpcError: 500: there is no connection.
        """
        self.database.connect(LIST)
        self._loop.after(self.listing_s() * self.database.slowdown, self._listed, done)

    def _listed(self, done: Callable[[], None]) -> None:
        self.database.disconnect()
        done()

    def new_id(self) -> str:
        """A UUID from the simulation's seed."""
        return str(UUID(int=self._random.getrandbits(128), version=4))

    # --- experiments --------------------------------------------------------------------------------------------

    def create_experiment(self, name: str, namespace: str = "", description: str = "") -> Experiment:
        """A new experiment; its name is unique in its namespace."""
        if not name:
            raise invalid("Invalid input error: Experiment must have a non-empty name")
        if (namespace, name) in self._names:
            message = f"Already exist error: Failed to create a new experiment. The name {name} already exist. "
            raise RpcError(Code.ALREADY_EXISTS, message + "Please specify a new name")
        experiment = Experiment(self.new_id(), name, namespace, self._loop.now, description)
        self.experiments[experiment.id] = experiment
        self._names[namespace, name] = experiment.id
        return experiment

    def experiment(self, experiment_id: str) -> Experiment:
        """The experiment with that id."""
        try:
            return self.experiments[experiment_id]
        except KeyError:
            raise not_found("Experiment", experiment_id) from None

    def archive_experiment(self, experiment_id: str, *, archived: bool) -> None:
        """Put an experiment and its runs away, or back (only itself)."""
        self.experiment(experiment_id).storage_state = ARCHIVED if archived else AVAILABLE
        for run in self.runs.values() if archived else ():
            if run.experiment_id == experiment_id:
                self.archive(run.id, archived=True)

    def delete_experiment(self, experiment_id: str) -> None:
        """Remove an experiment; its runs stay."""
        gone = self.experiment(experiment_id)
        del self.experiments[gone.id], self._names[gone.namespace, gone.name]

    # --- pipelines ----------------------------------------------------------------------------------------------

    def create_pipeline(self, name: str, namespace: str, description: str, package: bytes) -> Pipeline:
        """A new pipeline with its first version."""
        spec, platform = parse_package(package)
        name = name or str(spec["pipelineInfo"]["name"])
        if (namespace, name) in self._pipeline_names:
            message = f"Already exist error: Failed to create a new pipeline. The name {name} already exist. "
            raise RpcError(Code.ALREADY_EXISTS, message + "Please specify a new name")
        pipeline = Pipeline(self.new_id(), name, namespace, self._loop.now, description)
        self.pipelines[pipeline.id] = pipeline
        self._pipeline_names[namespace, name] = pipeline.id
        self._add_version(Version(self.new_id(), pipeline.id, name, self._loop.now, spec, platform, description))
        return pipeline

    def create_version(self, pipeline_id: str, name: str, description: str, package: bytes) -> Version:
        """A new version of a pipeline."""
        pipeline = self.pipeline(pipeline_id)
        spec, platform = parse_package(package)
        name = name or pipeline.name
        if any(each.name == name for each in self.versions_of(pipeline_id)):
            message = f"Already exist error: Failed to create a new pipeline version. The name {name} already exist. "
            raise RpcError(Code.ALREADY_EXISTS, message + "Please specify a new name")
        version = Version(self.new_id(), pipeline_id, name, self._loop.now, spec, platform, description)
        self._add_version(version)
        return version

    def _add_version(self, version: Version) -> None:
        self._settle(version)
        self.versions[version.id] = version

    def _settle(self, version: Version) -> None:
        """Make the graph now unless it depends on the run."""
        components = version.spec.get("components", {}).values()
        tasks = (task for each in components for task in each.get("dag", {}).get("tasks", {}).values())
        root = version.spec["root"].get("dag", {}).get("tasks", {}).values()
        if not any("parameterIterator" in task for task in (*tasks, *root)):
            version.graph = self._flatten(version, {})

    def _flatten(self, version: Version, parameters: Mapping[str, object]) -> Any:
        try:
            return flatten(version.spec, version.platform, parameters, self._profile.controller.loop_iterations)
        except ConfigError as error:
            raise invalid(f"Invalid input error: {error.message}") from error

    def pipeline(self, pipeline_id: str) -> Pipeline:
        """The pipeline with that id."""
        try:
            return self.pipelines[pipeline_id]
        except KeyError:
            raise not_found("Pipeline", pipeline_id) from None

    def versions_of(self, pipeline_id: str) -> list[Version]:
        """The versions of a pipeline, oldest first."""
        return [each for each in self.versions.values() if each.pipeline_id == pipeline_id]

    def inline_version(self, spec: Spec, platform: Spec) -> Version:
        """The pipeline that a run brings along; equal ones share their graph."""
        key = orjson.dumps([spec, platform], option=orjson.OPT_SORT_KEYS)
        version = self._inline.get(key)
        if version is None:
            version = self._inline[key] = Version("", "", "", self._loop.now, spec, platform)
            self._settle(version)
        return version

    def version(self, pipeline_id: str, version_id: str) -> Version:
        """One version; without an id, the newest."""
        if not version_id and pipeline_id:
            self.pipeline(pipeline_id)
            versions = self.versions_of(pipeline_id)
            if not versions:
                raise not_found("PipelineVersion", f"of pipeline {pipeline_id}")
            return versions[-1]
        version = self.versions.get(version_id)
        if version is None or (pipeline_id and version.pipeline_id != pipeline_id):
            raise not_found("PipelineVersion", version_id)
        return version

    def delete_pipeline(self, pipeline_id: str) -> None:
        """Remove a pipeline with its versions."""
        gone = self.pipeline(pipeline_id)
        for version in self.versions_of(pipeline_id):
            del self.versions[version.id]
        del self.pipelines[gone.id], self._pipeline_names[gone.namespace, gone.name]

    def delete_version(self, pipeline_id: str, version_id: str) -> None:
        """Remove one version."""
        del self.versions[self.version(pipeline_id, version_id).id]

    # --- runs ---------------------------------------------------------------------------------------------------

    def prepare_run(
        self, name: str, experiment_id: str, version: Version, parameters: Mapping[str, object], **more: Any
    ) -> Run:
        """Check a new run; it does not exist before `start_run`.

        Raises:
            RpcError: 400 or 404, as the real server refuses.
        """
        if not name:
            raise invalid("Invalid input error: The run name is empty. Please specify a valid name")
        experiment = self.experiment(experiment_id) if experiment_id else next(iter(self.experiments.values()))
        complete = complete_parameters(version.spec, parameters)
        self._numbers += 1
        return Run(
            self.new_id(), self._numbers, name, experiment.id, experiment.namespace, version,
            parameters=complete, created=self._loop.now, **more,
        )  # fmt: skip

    def start_run(self, run: Run, answered: Answered) -> None:
        """Create the run's workflow when the client's bucket allows, then answer."""
        if self._random.random() < self.error_rate:
            error = RpcError(Code.INTERNAL, "InternalServerError: Failed to create a run: rpc error: Internal error")
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
            self.database.insert()
        except RpcError as error:
            answered(error)
            return
        graph = run.version.graph or self._flatten(run.version, run.parameters)
        namespace = run.namespace or self._profile.namespace
        workflow = Workflow(
            run.id,
            self._workflow_name(run),
            namespace,
            graph=graph,
            parameters=run.parameters,
            created=self._loop.now,
        )
        run.workflow = workflow
        run.enter(PENDING, run.created)
        self.runs[run.id] = run
        experiment = self.experiments.get(run.experiment_id)
        if experiment is not None:
            experiment.last_run = run.created
        self._controller.add(workflow)
        answered(run)

    def _workflow_name(self, run: Run) -> str:
        """A generated name; one that is taken is drawn again, as kube-apiserver does."""
        prefix = run.version.spec["pipelineInfo"]["name"]
        while True:
            name = f"{prefix}-{''.join(self._random.choices(_ALPHABET, k=5))}"
            if name not in self._controller.workflows:
                return name

    def run(self, run_id: str) -> Run:
        """The run with that id."""
        try:
            return self.runs[run_id]
        except KeyError:
            raise not_found("Run", run_id) from None

    def terminate(self, run_id: str) -> None:
        """Stop a run."""
        run = self.run(run_id)
        if run.state in OVER:
            raise RpcError(Code.FAILED_PRECONDITION, f"Failed to terminate run {run_id}: the run has finished")
        run.enter(CANCELING, self._loop.now)
        if run.workflow is not None:
            self._controller.terminate(run.workflow)

    def retry(self, run_id: str) -> None:
        """Run the failed steps of a run again."""
        run = self.run(run_id)
        if run.state not in OVER or run.state == "SUCCEEDED":
            raise invalid(f"Invalid input error: Failed to retry run {run_id}: the run is {run.state}")
        assert run.workflow is not None
        self._controller.retry(run.workflow)
        run.finished, run.error = None, ""
        run.enter(PENDING, self._loop.now)

    def archive(self, run_id: str, *, archived: bool) -> None:
        """Put a run away, or back."""
        run = self.run(run_id)
        run.storage_state = ARCHIVED if archived else AVAILABLE
        run.changes += 1

    def delete_run(self, run_id: str) -> None:
        """Remove a run and its workflow."""
        run = self.run(run_id)
        if run.workflow is not None and run.workflow.name in self._controller.workflows:
            self._controller.remove(run.workflow)
        if run.workflow is not None:
            run.workflow.forget()
        del self.runs[run_id]
        self.database.delete()
        self.deleted += 1
