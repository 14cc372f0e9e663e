"""Performs a scene: the main job as a user starts it, then the checks of what it left."""

import os
import signal
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.support.e2e import Finished, Locust
from tests.support.object_store import ENVIRONMENT
from tests.support.prometheus_server import real_prometheus
from tests.support.real_kubernetes import RealCluster
from tests.support.real_parts.checks import (
    Check,
    Folder,
    check_findings,
    check_metrics,
    check_nodes,
    check_pods,
    check_rights,
    check_runs,
    check_store,
    check_uploads,
)
from tests.support.real_parts.platform import TOKEN, PlatformRuns, check_platform_pods
from tests.support.real_parts.scenes import Scene
from tests.support.real_parts.stage import Stage, on_stage

PIPELINE = Path(__file__).with_name("pipeline.yaml")
_BUCKET = "mlpipeline"
_AT_MOST_S, _LONG_S = 400.0, 900.0
_RUNS = 3  # sent to a real platform
_WELL = 0


@dataclass(frozen=True)
class Extras:
    """Further real parts that a scene uses.

    Attributes:
        prometheus: scrape the stand-ins with a real Prometheus.
        store: address of an S3 server and the folder where it keeps objects; None without one.
    """

    prometheus: bool = False
    store: tuple[str, Path] | None = None


def perform(scene: Scene, cluster: RealCluster, folder: Path, extras: Extras) -> list[Check]:
    """The checks of one scene; its files are in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    with on_stage(scene, cluster, folder) as stage, ExitStack() as stack:
        arguments = ["--host", stage.url, "--schedule", "burst", "--runs", str(scene.runs), "--drain", "5m"]
        arguments += ["--pipeline", str(PIPELINE)]
        environment = {"KUBECONFIG": str(stage.kubeconfig)}
        if extras.prometheus:
            place = folder / "prometheus"
            place.mkdir()
            arguments += ["--prometheus", stack.enter_context(real_prometheus(place, stage.url))]
        if extras.store:
            endpoint, objects = extras.store
            (objects / _BUCKET).mkdir(exist_ok=True)
            arguments += ["--store-probe", f"s3://{_BUCKET}/probes"]
            environment |= {**ENVIRONMENT, "AWS_ENDPOINT_URL": endpoint}
        finished = load(folder, arguments, environment)
        return list(_checks(stage, finished, extras))


def perform_on_platform(url: str, folder: Path) -> list[Check]:
    """A few runs of a real platform, with the kubeconfig at hand, in an experiment of their own.

    The runs, the pipeline and the experiment are deleted again.
    """
    folder.mkdir(parents=True)
    name = f"rehearsal-{uuid.uuid4().hex[:8]}"
    arguments = ["--host", url, "--schedule", "burst", "--runs", str(_RUNS), "--drain", "10m"]
    arguments += ["--pipeline", str(PIPELINE), "--experiment", name]
    given = {variable: os.environ[variable] for variable in ("KUBECONFIG", TOKEN) if variable in os.environ}
    finished = load(folder, arguments, given, _LONG_S)
    found = [ended(finished)]
    if finished.folder is None:
        return found
    left = Folder(finished.folder)
    with PlatformRuns(url, left.plan.target_options) as platform:
        runs = platform.runs
        found += check_runs(left, left.lengths(), runs, _RUNS)
        if "KUBECONFIG" in given:
            found += check_platform_pods(left, runs)
    return found


def load(
    folder: Path, arguments: Sequence[str], environment: Mapping[str, str], at_most_s: float = _AT_MOST_S
) -> Finished:
    """Run Locust without its web UI to the end, whatever that is."""
    locust = Locust(folder)
    process = locust.start("--headless", *arguments, **environment)
    try:
        return locust.finish(process, at_most_s)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _checks(stage: Stage, finished: Finished, extras: Extras) -> Iterator[Check]:
    yield Check("errors of the stand-ins", [], stage.errors)
    yield ended(finished)
    if finished.folder is None:
        return
    folder, scene = Folder(finished.folder), stage.scene
    yield from check_runs(folder, folder.lengths(), stage.kfp.runs, scene.runs)
    yield from check_pods(folder, stage)
    yield from check_findings(folder, stage)
    if scene.rights is None:
        yield from check_nodes(folder, stage)
        yield from check_uploads(folder, stage)
    else:
        yield from check_rights(folder)
    if extras.prometheus:
        yield from check_metrics(folder, stage)
    if extras.store:
        yield from check_store(folder, extras.store[1])


def ended(finished: Finished) -> Check:
    """The exit code. That a busy machine sent arrivals late is not what is rehearsed."""
    code = _WELL if finished.was_late() else finished.code
    return Check("exit code", _WELL, code if code == _WELL else f"{code}: {finished.err.strip()[-600:]}")
