"""Small platforms for tests: nothing takes time unless a test says so."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.simulator.cluster import Change, Node, Pod
from harness.simulator.engine.distributions import fixed
from harness.simulator.kfp.records import Run, Version
from harness.simulator.platform import Platform
from harness.simulator.profile import (
    Agent,
    Api,
    ArtifactStore,
    Autoscaler,
    Controller,
    Kubelet,
    Pool,
    Profile,
    Scheduler,
    Step,
)  # fmt: skip

TRAINING = (Path(__file__).parents[2] / "harness" / "targets" / "training.yaml").read_bytes()
UNCACHED = TRAINING.replace(b"enableCache: true", b"enableCache: false")
GI = 2**30
ONE_SECOND = Step(duration=fixed(1.0), output=fixed(0.0), cpu=fixed(0.01), memory=fixed(1.0))


def pool(name: str = "pool", cpu: float = 4.0, **more: Any) -> Pool:
    """Machines that keep nothing for themselves."""
    return Pool(name, cpu=cpu, memory=16.0 * GI, reserved_cpu=0.0, reserved_memory=0.0, **({"initial": 1} | more))


def profile(*pools: Pool, step: Step | None = None, **more: Any) -> Profile:
    """A platform on which only steps take time: one second each."""
    quick: dict[str, Any] = {
        "scheduler": Scheduler(pod_s=0.0, backoff_s=0.0),
        "kubelet": Kubelet(start=fixed(0.0), pull_overhead_s=0.0, pull_bytes_per_s=1e15, termination_s=0.0),
        "api": Api(qps=1e6, burst=10**6, latency=fixed(0.0), tokens_per_report=0),
        "controller": Controller(qps=1e6, burst=10**6, operation_s=0.0, settle_s=0.0, requeue_s=0.0, driver=fixed(0.0)),
        "agent": Agent(workers=100, report_s=0.0, lag_s=0.0),
        "store": ArtifactStore(request_s=0.0, bytes_per_s=1e15, stream_bytes_per_s=1e15),
        "steps": (step or ONE_SECOND,),
    }
    return Profile("test", pools=pools or (pool(cpu=64.0),), **(quick | more))


class Journal:
    """A listener that keeps every change."""

    def __init__(self) -> None:
        self.pods: list[tuple[Pod, Change, str]] = []
        self.nodes: list[tuple[Node, str]] = []

    def pod_changed(self, pod: Pod, change: Change, detail: str = "") -> None:
        self.pods.append((pod, change, detail))

    def node_changed(self, node: Node, reason: str = "", message: str = "") -> None:
        del message
        self.nodes.append((node, reason))

    def saw(self, change: Change) -> list[Pod]:
        return [pod for pod, each, _ in self.pods if each is change]


def upload(platform: Platform, package: bytes = UNCACHED) -> Version:
    """A pipeline on the platform."""
    pipeline = platform.server.catalogue.create_pipeline(package)
    return platform.server.catalogue.versions_of(pipeline.id)[0]


def submit(platform: Platform, version: Version, count: int = 1, **parameters: object) -> list[Run]:
    """Runs, started now."""
    runs = []
    for number in range(count):
        run = platform.server.prepare_run(f"run-{number}", "", version, parameters, by_reference=True)
        platform.server.start_run(run, lambda _: None)
        runs.append(run)
    return runs


def slower_autoscaler(**more: Any) -> Autoscaler:
    """Looks every 10 s, machines take 60 s, nothing is left to chance."""
    return replace(Autoscaler(provisioning=fixed(60.0)), **more)


def reasons(run: Run) -> list[str]:
    """The messages of its workflow's nodes."""
    assert run.workflow is not None
    return [step.message for _, step in run.workflow.made() if step.message]
