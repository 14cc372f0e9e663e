"""Each injected fault has its symptom, which is absent without it."""

from collections.abc import Callable

import pytest

from harness.simulator.cluster import Change
from harness.simulator.faults import FAULTS, inject, parse_fault
from harness.simulator.kfp.errors import RpcError
from harness.simulator.kfp.records import Run
from harness.simulator.platform import Platform
from harness.simulator.profile.file import load_profile
from tests.support.platforms import Journal, submit, upload

RUNS = 60
Answers = list[tuple[float, Run | RpcError]]


def measured(fault: str) -> tuple[Platform, Journal, list[Run], Answers]:
    """A burst on the demo platform; when each submission was answered, and with what."""
    journal, answered = Journal(), []
    platform = Platform(load_profile("demo"), 1, journal)
    plan = parse_fault(fault)
    if plan is not None:
        inject(platform, plan)
    version = upload(platform)
    runs = []
    for number in range(RUNS):
        run = platform.server.prepare_run(f"run-{number}", "", version, {}, by_reference=True)
        platform.server.start_run(run, lambda said: answered.append((platform.loop.now, said)))
        runs.append(run)
    platform.loop.run(1500)
    return platform, journal, runs, answered


@pytest.fixture(scope="module")
def healthy() -> tuple[Platform, Journal, list[Run], Answers]:
    return measured("none")


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def pods(journal: Journal, role: str = "") -> list:
    return [pod for pod in journal.saw(Change.OVER) if role in {"", pod.role}]


def refusals(answers: Answers) -> list[str]:
    return [said.message for _, said in answers if isinstance(said, RpcError)]


def told(runs: list[Run], text: str) -> int:
    """The runs of which a step ended with this text."""
    return sum(any(text in step.message for _, step in run.workflow.made()) for run in runs if run.workflow)


def duration(runs: list[Run]) -> float:
    return max((run.finished or 0.0) - run.created for run in runs)


SYMPTOMS: dict[str, Callable[[Platform, Journal, list[Run], Answers], float]] = {
    "store-full": lambda p, j, r, a: sum("InternalError" in pod.launch.error for pod in pods(j, "executor")),
    "store-slow": lambda p, j, r, a: mean([pod.launch.uploaded - pod.launch.uploading for pod in pods(j, "executor")]),
    "store-unreachable-from-old-nodes": lambda p, j, r, a: sum("i/o timeout" in pod.wait_error for pod in pods(j)),
    "api-throttled": lambda p, j, r, a: max(at for at, _ in a),
    "api-errors": lambda p, j, r, a: RUNS - len(p.server.runs),
    "controller-backlog": lambda p, j, r, a: duration(r),
    "parallelism-cap": lambda p, j, r, a: duration(r),
    "agent-lag": lambda p, j, r, a: mean([run.history[-1][0] - (run.finished or 0.0) for run in r]),
    "nodes-exhausted": lambda p, j, r, a: 20 - len({pod.node.name for pod in pods(j) if pod.node}),
    "autoscaler-slow": lambda p, j, r, a: max(n.ready - n.created for n, _ in j.nodes if n.ready is not None),
    "autoscaler-at-max": lambda p, j, r, a: len(j.saw(Change.NO_SCALE_UP)),
    "image-pull": lambda p, j, r, a: max(pod.pulled - pod.scheduled for pod in pods(j)),
    "image-missing": lambda p, j, r, a: len(j.saw(Change.STATED)),
    "node-pressure": lambda p, j, r, a: told(r, "The node was low on resource: memory."),
    "oom": lambda p, j, r, a: sum(pod.reason == "OOMKilled" for pod in pods(j)),
    "cpu-starved": lambda p, j, r, a: mean([pod.main_ended - pod.started for pod in pods(j, "executor")]),
    "spot-evictions": lambda p, j, r, a: sum(reason == "PreemptScheduled" for _, reason in j.nodes),
    "db-connections": lambda p, j, r, a: sum("Error 1040: Too many connections" in each for each in refusals(a)),
    "db-full": lambda p, j, r, a: sum("The table 'run_details' is full" in each for each in refusals(a)),
    "db-slow-listing": lambda p, j, r, a: p.server.listing_s(),
    "quota": lambda p, j, r, a: sum("exceeded quota: workflows, requested: requests.cpu" in d for _, _, d in j.pods),
    "clock-skew": lambda p, j, r, a: p.skew.by_s * (p.loop.now >= p.skew.since),
    "driver-overhead": lambda p, j, r, a: mean([pod.finished - pod.started for pod in pods(j, "container-driver")]),
}


def test_every_fault_has_its_symptom_tested() -> None:
    assert SYMPTOMS.keys() == FAULTS.keys()


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_a_fault_shows(fault: str, healthy: tuple[Platform, Journal, list[Run], Answers]) -> None:
    # Few runs are few bytes: a store that others have nearly filled.
    text = {"store-full": "store-full:1.4"}.get(fault, fault)
    without, with_it = SYMPTOMS[fault](*healthy), SYMPTOMS[fault](*measured(text))
    assert with_it > without * 1.5 + 1e-9


# Where 1 is as strong as it gets, or where half of it is all that so short a burst can show.
STRENGTHS = {
    "autoscaler-at-max": (":0.3", ":1"), "nodes-exhausted": (":0.3", ":1"), "oom": (":0.1", ":1"),
    "spot-evictions": ("@20s:0.2", "@20s:1"), "store-full": (":1", ":1.45"),
}  # fmt: skip


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_a_stronger_fault_shows_more(fault: str) -> None:
    weak, strong = (SYMPTOMS[fault](*measured(fault + how)) for how in STRENGTHS.get(fault, (":0.5", ":2")))
    assert strong > weak


def test_no_fault_shows_before_its_time(healthy: tuple[Platform, Journal, list[Run], Answers]) -> None:
    runs = [(run.state, run.finished) for run in healthy[2]]
    for fault in FAULTS:
        platform, _, same, _ = measured(f"{fault}@1400s")
        assert [(run.state, run.finished) for run in same] == runs, fault
        assert platform.loop.now == 1500


def test_a_fault_begins_at_its_time() -> None:
    plan = parse_fault("store-full@30s:0.5")
    assert plan is not None
    platform = Platform(load_profile("demo"))
    inject(platform, plan)
    platform.loop.run(29.9)
    assert platform.store.used == 0
    platform.loop.run(30.1)
    assert platform.store.used == pytest.approx(0.5 * 0.68 * platform.store.capacity)


def test_the_demo_burst_is_over_within_a_minute_and_a_full_store_fails_about_half_of_it() -> None:
    def burst(fault: str) -> list[Run]:
        platform = Platform(load_profile("demo"), 3)
        plan = parse_fault(fault)
        if plan is not None:
            inject(platform, plan)
        runs = submit(platform, upload(platform), 200)
        platform.loop.run(120)
        return runs

    good = burst("none")
    assert {run.state for run in good} == {"SUCCEEDED"}
    assert duration(good) < 55
    failed = sum(run.state == "FAILED" for run in burst("store-full"))
    assert 60 <= failed <= 140
