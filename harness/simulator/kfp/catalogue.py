"""Pipelines, their versions, and experiments."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

import orjson

from harness.model.errors import ConfigError
from harness.simulator.engine.events import EventLoop
from harness.simulator.kfp.errors import aborted, exists, invalid, not_found
from harness.simulator.kfp.packages import config_of, parse_package, reading
from harness.simulator.kfp.records import AVAILABLE, Experiment, Pipeline, Spec, Version
from harness.simulator.workflows.graph import Graph, Limits, flatten
from harness.simulator.workflows.parameters import has_parameters
from harness.simulator.workflows.workflow import too_large

# A name of a Kubernetes object, and what Kubernetes says about another one.
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST, _TOO_LONG = 253, "must be no more than 253 characters"
_NO_NAME = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)
_DEFAULT = "All runs created without specifying an experiment will be grouped here."


class Catalogue:
    """The catalogue of one installation.

    Args:
        loop: the clock.
        new_id: makes UUIDs.
        loop_iterations: iterations of a loop over the output of a step.
        multi_user: whether each user has a namespace; then there is no default experiment.
        objects: pipelines and their versions are Kubernetes objects.
    """

    def __init__(
        self, loop: EventLoop, new_id: Callable[[], str], loop_iterations: int, *,
        multi_user: bool = False, objects: bool = False,
    ) -> None:  # fmt: skip
        self._objects = objects
        self._loop = loop
        self._new_id = new_id
        self._loop_iterations = loop_iterations
        self.experiments: dict[str, Experiment] = {}
        self.pipelines: dict[str, Pipeline] = {}
        self.versions: dict[str, Version] = {}
        self._names: dict[tuple[str, str], str] = {}  # experiment's namespace and name → its id
        self._pipeline_names: dict[tuple[str, str], str] = {}
        self._inline: dict[bytes, Version] = {}
        self.default = None if multi_user else self.create_experiment("Default", _DEFAULT)

    # --- experiments --------------------------------------------------------------------------------------------

    def create_experiment(self, name: str, description: str = "", namespace: str = "") -> Experiment:
        """Create an experiment; names are unique in a namespace."""
        if (namespace, name) in self._names:
            message = f"Failed to create a new experiment. The name {name} already exists. Please specify a new name"
            raise exists(message)
        experiment = Experiment(self._new_id(), name, self._loop.now, description, namespace)
        self.experiments[experiment.id] = experiment
        self._names[namespace, name] = experiment.id
        return experiment

    def experiment(self, experiment_id: str) -> Experiment:
        """The experiment with that id."""
        try:
            return self.experiments[experiment_id]
        except KeyError:
            raise not_found("Experiment", experiment_id) from None

    def set_experiment_state(self, experiment_id: str, state: str) -> None:
        """Archive or unarchive an experiment."""
        self.experiment(experiment_id).storage_state = state

    def archived(self, experiment_id: str) -> bool:
        """Whether the experiment exists and is archived."""
        found = self.experiments.get(experiment_id)
        return found is not None and found.storage_state != AVAILABLE

    def delete_experiment(self, experiment_id: str) -> None:
        """Delete an experiment; its runs stay."""
        if self.default is not None and experiment_id == self.default.id:
            message = f"Failed to delete experiment {experiment_id}. The default experiment cannot be deleted"
            why = f"Invalid input error: Experiment id cannot be equal to the default id {experiment_id}"
            raise aborted(message, why)
        gone = self.experiment(experiment_id)
        del self.experiments[gone.id], self._names[gone.namespace, gone.name]

    # --- pipelines ----------------------------------------------------------------------------------------------

    def create_pipeline(self, package: bytes, name: str = "", description: str = "", namespace: str = "") -> Pipeline:
        """Create a pipeline with its first version; without a name it has that in the package."""
        spec, platform = parse_package(package)
        name = name or str(spec["pipelineInfo"]["name"])
        pipeline = Pipeline(self._new_id(), name, self._loop.now, description, namespace)
        self._key(pipeline, name)
        if (namespace, name) in self._pipeline_names:
            raise exists(f"Failed to create a new pipeline. The name {name} already exists. Please specify a new name")
        # Refuses what can't be run: then there is no pipeline either.
        self._add_version(pipeline.id, name, spec, platform, description, config_of(package))
        self.pipelines[pipeline.id] = pipeline
        self._pipeline_names[namespace, name] = pipeline.id
        return pipeline

    def pipeline(self, pipeline_id: str) -> Pipeline:
        """The pipeline with that id."""
        try:
            return self.pipelines[pipeline_id]
        except KeyError:
            raise not_found("Pipeline", pipeline_id).within(f"Failed to get a pipeline with id {pipeline_id}") from None

    def pipeline_named(self, name: str, namespace: str = "") -> Pipeline:
        """The pipeline of that name in a namespace."""
        found = self._pipeline_names.get((namespace, name))
        if found is None:
            raise not_found("Pipeline", name)
        return self.pipelines[found]

    def delete_pipeline(self, pipeline_id: str, *, cascade: bool) -> None:
        """Delete a pipeline; without `cascade`, only one without versions."""
        gone, versions = self.pipeline(pipeline_id), self.versions_of(pipeline_id)
        if versions and not cascade:
            raise invalid(
                f"Failed to delete pipeline with id {pipeline_id} as it has existing pipeline versions "
                f"(e.g. {versions[-1].id}). Set cascade=true to delete all versions"
            )
        for version in versions:
            del self.versions[version.id]
        del self.pipelines[gone.id], self._pipeline_names[gone.namespace, gone.name]

    # --- versions -----------------------------------------------------------------------------------------------

    def create_version(self, pipeline_id: str, package: bytes, name: str, description: str = "") -> Version:
        """Create a version of a pipeline."""
        spec, platform = parse_package(package)
        pipeline = self.pipeline(pipeline_id)
        taken = {self._key(self.pipelines[each.pipeline_id], each.name) for each in self.versions.values()}
        if self._key(pipeline, name) in taken:
            raise exists(f"Failed to create a new pipeline version. The name {name} already exist. Specify a new name")
        return self._add_version(pipeline_id, name, spec, platform, description, config_of(package))

    def _key(self, pipeline: Pipeline, version: str) -> tuple[str, str]:
        """What no other version has: the name in its pipeline, or the namespace and name of its object.

        Raises:
            RpcError: 400: Kubernetes allows no object of that name; 409: it has no namespace.
        """
        if not self._objects:
            return pipeline.id, version
        if why := _TOO_LONG if len(version) > _LONGEST else "" if _NAME.fullmatch(version) else _NO_NAME:
            what = f'Invalid pipeline version name "{version}": {why}'
            raise invalid(f"{what}. Use 'display_name' for human-readable labels")
        name = version if version == pipeline.name else f"{pipeline.name}-{version}"
        if len(name) > _LONGEST:
            what = f'The combined pipeline and version name "{name}" exceeds the Kubernetes 253-character naming limit'
            raise invalid(f"{what}: {_TOO_LONG}")
        if self.default is None and not pipeline.namespace:
            raise aborted("", "A namespace is required")
        return pipeline.namespace, name

    def _add_version(self, pipeline: str, name: str, spec: Spec, platform: Spec, about: str, config: Spec) -> Version:
        version = Version(self._new_id(), pipeline, name, self._loop.now, spec, platform, about, config)
        self._settle(version)
        self.versions[version.id] = version
        return version

    def _settle(self, version: Version) -> None:
        """Build the graph now, unless it depends on the run's parameters."""
        if why := too_large(version.spec):
            raise invalid(f"the pipeline can't become a workflow: {why}")
        with reading():
            parts = (version.spec["root"], *version.spec.get("components", {}).values())
            dags = [part.get("dag", {}) for part in parts]
            loops = any("parameterIterator" in task for dag in dags for task in dag.get("tasks", {}).values())
            pools = any(map(has_parameters, version.platform.values()))
        if not (loops or pools):
            version.graph = self.flatten(version, {})

    def flatten(self, version: Version, parameters: Mapping[str, object]) -> Graph:
        """The graph of a run with these parameters.

        Raises:
            RpcError: 400: invalid pipeline.
        """
        try:
            with reading():
                graph = flatten(version.spec, version.platform, parameters, self._loop_iterations)
                return replace(graph, limits=Limits.of(version.config)) if version.config else graph
        except ConfigError as error:
            raise invalid(error.message) from error

    def versions_of(self, pipeline_id: str) -> list[Version]:
        """The versions of a pipeline, oldest first."""
        return [each for each in self.versions.values() if each.pipeline_id == pipeline_id]

    def version(self, pipeline_id: str, version_id: str) -> Version:
        """A version by its id; without an id, the newest of the pipeline."""
        if not version_id and pipeline_id:
            self.pipeline(pipeline_id)
            versions = self.versions_of(pipeline_id)
            if not versions:
                raise not_found("PipelineVersion", pipeline_id)
            return versions[-1]
        version = self.versions.get(version_id)
        if version is None or (pipeline_id and version.pipeline_id != pipeline_id):
            missing = not_found("PipelineVersion", version_id)
            raise missing.within(f"Failed to get a pipeline version with id {version_id}")
        return version

    def inline_version(self, spec: Spec, platform: Spec) -> Version:
        """The version for a pipeline that is part of a run request; equal ones share a graph."""
        key = orjson.dumps([spec, platform], option=orjson.OPT_SORT_KEYS)
        version = self._inline.get(key)
        if version is None:
            version = self._inline[key] = Version("", "", "", self._loop.now, spec, platform)
            self._settle(version)
        return version

    def delete_version(self, pipeline_id: str, version_id: str) -> None:
        """Delete a version of a pipeline."""
        del self.versions[self.version(pipeline_id, version_id).id]
