"""How one run is started in simulated time: of a compiled pipeline, or of a workflow of Argo's own."""

import re
from collections.abc import Collection, Mapping
from functools import partial
from itertools import count
from typing import Any

from harness.model import Scenario
from harness.model.argo.manifest import GROUP_VERSION, RUN_NAME, readable, spec_of, with_parameters
from harness.model.errors import ConfigError
from harness.reading import parse_yaml, structured
from harness.simulator.argo.operator import ObjectsInMemory
from harness.simulator.argo.support import UnsupportedError, demand_supported
from harness.simulator.argo.templates import CLUSTER, NAMESPACED, whole
from harness.simulator.fast.runs import Answered, Submit
from harness.simulator.kfp.errors import RpcError
from harness.simulator.kfp.records import Run
from harness.simulator.platform import Platform

Spec = Mapping[str, Any]
_WHERE = "the workflow"
_TEMPLATES = {"WorkflowTemplate": NAMESPACED, "ClusterWorkflowTemplate": CLUSTER}


def is_argo(package: bytes) -> bool:
    """Whether a document is a manifest of Argo rather than a compiled pipeline."""
    if GROUP_VERSION.encode() not in package:
        return False
    return any(
        isinstance(each, dict) and each.get("apiVersion") == GROUP_VERSION for each in parse_yaml(package, _WHERE)
    )


def pipelines(platform: Platform, package: bytes) -> Submit:
    """Runs of the compiled pipeline in `package` (IR YAML), which is uploaded.

    Raises:
        ConfigError: the package is not a pipeline.
    """
    server, catalogue = platform.server, platform.server.catalogue
    try:
        pipeline_id = catalogue.create_pipeline(package).id
    except RpcError as error:
        hint = "compile the pipeline with kfp 2"
        raise ConfigError(f"the simulated KFP refuses the pipeline: {error.message}", hint) from error
    experiments = {  # by tenant
        tenant.namespace: catalogue.create_experiment("pipeswarm", namespace=tenant.namespace).id
        for tenant in platform.profile.tenants
    }

    def submit(scenario: Scenario, answered: Answered) -> None:
        def started(answer: Run | RpcError) -> None:
            answered(answer.id if isinstance(answer, Run) else answer)

        try:
            version = catalogue.version(pipeline_id, "")
            experiment = experiments.get(scenario.tenant, "")
            run = server.prepare_run(scenario.run_name, experiment, version, scenario.values, by_reference=True)
        except RpcError as error:
            answered(error)
        else:
            server.start_run(run, started)

    return submit


def workflows(platform: Platform, package: bytes) -> Submit:
    """Workflows from the first manifest in `package`; what follows are the objects that it needs.

    Raises:
        ConfigError: the simulated platform can't run it, or one of the objects.
    """
    objects, ignore = platform.argo.objects, platform.profile.ignore
    assert isinstance(objects, ObjectsInMemory)
    with structured(_WHERE):
        manifest, *others = _documents(package)
        for each in [*others, *([manifest] if manifest["kind"] in _TEMPLATES else [])]:
            _keep(each, objects, ignore)
        spec = _whole(spec_of(manifest), objects)
        _demand(spec, ignore)
        own = manifest.get("metadata") or {}
        labels, annotations = dict(own.get("labels") or {}), dict(own.get("annotations") or {})
        trial = platform.argo.made({"metadata": {"name": "trial", "namespace": ""}}, with_parameters(spec, {}))
    if problem := platform.argo.problem_of(trial):
        raise ConfigError(f"{_WHERE}: invalid spec: {problem}", "correct it, or give what it needs: --with FILE")
    numbers = count(1)

    def submit(scenario: Scenario, answered: Answered) -> None:
        name = f"{readable(scenario.run_name)}-{next(numbers):05d}"
        about = {
            "name": name, "namespace": scenario.tenant or platform.profile.namespace, "labels": labels,
            "annotations": {**annotations, RUN_NAME: scenario.run_name},
        }  # fmt: skip

        def create() -> None:
            answered(name)
            platform.argo.add({"metadata": about}, with_parameters(spec, scenario.values))

        platform.loop.after(platform.server.latency_s(), create)

    return submit


def ignored(package: bytes, ignore: Collection[str]) -> list[str]:
    """The fields in a package of Argo's manifests that have no bearing on times here.

    Raises:
        ConfigError: as `workflows` does.
    """
    with structured(_WHERE):
        documents = [document for document in _documents(package) if document["kind"] != "ConfigMap"]
        fields = [field for document in documents for field in _demand(spec_of(document), ignore)]
    return list(dict.fromkeys(re.sub(r"\[\d+\]", "", field) for field in fields))


def _documents(package: bytes) -> list[Any]:
    return [each for each in parse_yaml(package, _WHERE) if each is not None]


def _keep(document: Spec, objects: ObjectsInMemory, ignore: Collection[str]) -> None:
    """Take an object that workflows need.

    Raises:
        ConfigError: they need none of its kind.
    """
    kind, name = str(document.get("kind")), str((document.get("metadata") or {}).get("name"))
    if kind == "ConfigMap":
        objects.maps[name] = dict(document["metadata"].get("labels") or {}), dict(document.get("data") or {})
    elif kind in _TEMPLATES:
        objects.templates[_TEMPLATES[kind], name] = spec_of(document)
        _demand(spec_of(document), ignore)
    else:
        raise ConfigError(f"{_WHERE} needs no {kind} ({name})", f"give {', '.join(_TEMPLATES)} or ConfigMaps")


def _whole(spec: Spec, objects: ObjectsInMemory) -> Spec:
    try:
        return whole(spec, partial(objects.template, ""))
    except LookupError as error:
        message = f"{_WHERE} refers to the template {error.args[0]}, which is not here"
        raise ConfigError(message, "give its file: --with FILE") from error


def _demand(spec: Spec, ignore: Collection[str]) -> list[str]:
    """The ignored fields of a specification that the simulated platform can run."""
    with structured(_WHERE):
        try:
            return demand_supported(spec, ignore=ignore)
        except UnsupportedError as error:
            raise ConfigError(f"{_WHERE}: {error}") from error
