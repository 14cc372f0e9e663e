"""Pipelines written with the SDK, and which pods their runs have."""

from collections import Counter
from dataclasses import replace
from typing import Any

from kfp import compiler, dsl

from harness.simulator.cluster import Change
from harness.simulator.engine.distributions import fixed
from harness.simulator.platform import Platform
from harness.simulator.profile import Profile, Step
from tests.support.platforms import Journal, profile, submit, upload


@dsl.container_component
def step(number: int = 1):  # the SDK reads the signature
    return dsl.ContainerSpec(image="busybox", command=["true"], args=[number])


@dsl.container_component
def flip(face: dsl.OutputPath(str)):  # type: ignore[valid-type]
    return dsl.ContainerSpec(image="busybox", command=["true"], args=[face])


def compiled(tmp_path: Any, pipeline: Any) -> bytes:
    target = tmp_path / "pipeline.yaml"
    compiler.Compiler().compile(pipeline, str(target))
    return bytes(target.read_bytes())


def ran(tmp_path: Any, pipeline: Any, count: int = 1, *, under: Profile | None = None, **parameters: object) -> Any:
    """The runs, and the pods of each by (role, task)."""
    package = pipeline if isinstance(pipeline, bytes) else compiled(tmp_path, pipeline)
    journal = Journal()
    platform = Platform(replace(under or profile(), caching=False), 5, journal)
    runs = submit(platform, upload(platform, package), count, **parameters)
    platform.loop.run(3000)
    made: dict[str, Counter[tuple[str, str]]] = {run.id: Counter() for run in runs}
    for pod in journal.saw(Change.CREATED):
        made[pod.owner.run_id][pod.role, pod.task] += 1  # type: ignore[attr-defined]  # a workflow
    assert all(run.finished is not None for run in runs)
    return runs, [made[run.id] for run in runs]


def branches(pods: Counter[tuple[str, str]]) -> list[str]:
    return [task for (role, task), _ in pods.items() if role == "executor" and task != "flip"]


def failing(match: str) -> Profile:
    still = Step(duration=fixed(1.0), output=fixed(0.0), cpu=fixed(0.01), memory=fixed(1.0))
    return profile(steps=(replace(still, match=match, failing=1.0), still))
