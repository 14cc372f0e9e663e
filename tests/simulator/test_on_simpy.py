"""The whole model against the same platform written on simpy: every instant of every pod and run."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest

from harness.simulator.engine.distributions import Amount, Uniform, fixed
from harness.simulator.kfp.records import OVER, Run
from harness.simulator.platform import Platform
from harness.simulator.profile import ArtifactStore, Controller, Pool, Profile, Quota, Scheduler, Step
from harness.simulator.profile.file import load_profile
from tests.support.on_simpy import simulated
from tests.support.platforms import GI, UNCACHED, upload

DEMO = load_profile("demo")
STEP = Step(duration=Amount(Uniform(2.0, 40.0)))


def platform(**more: object) -> Profile:
    """Few machines, so that pods wait for them and slow each other down."""
    few = Pool("steps", cpu=2.0, memory=8.0 * GI, initial=3, min=3, max=3)
    plain = {"pools": (few,), "autoscaler": None, "faults": (), "steps": (STEP,)}
    return replace(DEMO, **(plain | more))


CASES = {
    "spreading": platform(),
    "packing": platform(scheduler=Scheduler(packing=True)),
    "machines are oversubscribed": platform(steps=(replace(STEP, cpu=Amount(Uniform(0.5, 2.0))),)),
    "the controller is slow": platform(controller=Controller(workers=2, qps=2.0, burst=3, requeue_s=1.0)),
    "the controller's grid is coarse": platform(controller=Controller()),
    "the store is slow": platform(store=ArtifactStore(bytes_per_s=20.0 * 2**20)),
    "the store fills up": platform(store=ArtifactStore(capacity=2.0 * GI), steps=(replace(STEP, output=fixed(5e7)),)),
    "steps fail": platform(steps=(replace(STEP, failing=0.2),)),
    "steps are killed": platform(steps=(replace(STEP, memory=Amount(Uniform(0.1 * GI, 2.5 * GI))),)),
    "a quota": platform(quota=Quota(pods=4)),
}


def ours(its_profile: Profile, due: Sequence[float], seed: int) -> list[Run]:
    here, runs = Platform(its_profile, seed), []
    version = upload(here)

    def submit(number: int) -> None:
        runs.append(here.server.prepare_run(f"r{number}", "", version, {}, by_reference=True))
        here.server.start_run(runs[-1], lambda _: None)

    for number, at in enumerate(due):
        here.loop.at(at, submit, number)
    while len(runs) < len(due) or any(run.state not in OVER for run in runs):
        here.loop.run(here.loop.now + 60)
    return runs


def lives(runs: Sequence[Run]) -> dict[tuple[object, ...], list[float | None]]:
    """Who did what where, and when."""
    found: dict[tuple[object, ...], list[float | None]] = {}
    for run in runs:
        assert run.workflow is not None
        found[run.id, run.state] = [run.created, run.finished, *(at for at, _ in run.history)]
        for _, step in run.workflow.made():
            for pod in step.pods:
                assert pod.node is not None
                found[pod.name, pod.reason, pod.exit_code, pod.node.index] = [
                    pod.created, pod.unschedulable, pod.scheduled, pod.pulled, pod.started, pod.main_ended, pod.finished,
                ]  # fmt: skip
    return found


@pytest.mark.parametrize("name", CASES)
def test_every_pod_and_run_lives_as_on_simpy(name: str) -> None:
    random, at, due = Random(name), 0.0, []
    for _ in range(25):
        at += random.expovariate(0.5)
        due.append(at)
    mine, theirs = lives(ours(CASES[name], due, 3)), lives(simulated(CASES[name], UNCACHED, due, 3))
    assert mine.keys() == theirs.keys()
    for key, instants in mine.items():
        assert instants == pytest.approx(theirs[key], abs=1e-6), key


def test_the_cases_match_their_names() -> None:
    """Otherwise equal lives would say little."""
    due = [float(number) for number in range(25)]
    pods = {name: lives(simulated(each, UNCACHED, due, 3)) for name, each in CASES.items()}
    reasons = {name: {key[1] for key in found} for name, found in pods.items()}
    assert {"FAILED", "Error"} <= reasons["steps fail"]
    assert "Error" in reasons["the store fills up"]
    assert "OOMKilled" in reasons["steps are killed"]
    assert any(instants[1] for key, instants in pods["spreading"].items() if len(key) == 4)  # a pod fitted nowhere
    assert all(found != pods["spreading"] for name, found in pods.items() if name != "spreading")
