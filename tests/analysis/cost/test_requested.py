import pytest

from harness.analysis.cost.cost import cost, pending
from harness.analysis.cost.requested import requested
from harness.analysis.timeline import Timeline
from harness.model import Event, Node, Plan, Scenario, Span
from harness.model.phases import (
    PULLING,
    REQUESTED_CPU_CORES,
    REQUESTED_GPUS,
    RUNNING,
    SCHEDULING,
    STARTING,
    UNSCHEDULABLE,
)
from harness.simulator.fast import Arrival, simulation
from harness.simulator.platform import Platform
from harness.simulator.profile.file import load_profile
from harness.store import RunFolder
from harness.store.tables import load
from tests.support.injection.case import ORIGIN_AT
from tests.support.injection.packages import on_gpus
from tests.support.simulated import simulate
from tests.support.timelines import Story

RUNS = 60


@pytest.fixture(scope="module")
def platform() -> Platform:
    """The simulated platform itself, after a test; what is recorded of it is compared with what it did."""
    made = []

    class Remembered(Platform):
        def __init__(self, *given, **more):
            super().__init__(*given, **more)
            made.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulation, "Platform", Remembered)
        arrivals = [Arrival(5.0 + k, Scenario(str(k), "planted", {}, {})) for k in range(RUNS)]
        records = list(simulate(load_profile("gpu-pool"), on_gpus(), arrivals, seed=3, origin_at=ORIGIN_AT))
    (platform,) = made
    platform.records = records
    return platform


def whole_seconds(record):
    """As the Kubernetes API stamps."""
    second = 10**9
    match record:
        case Span(ended_at=int(end), started_at=start) if record.step:
            changes = {"started_at": start // second * second, "ended_at": end // second * second}
        case Node(created_at=created, gone_at=gone):
            changes = {"created_at": created // second * second, "gone_at": gone and gone // second * second}
        case _:
            return record
    return type(record)(**{name: getattr(record, name) for name in record.__slots__} | changes)


def read_back(records, tmp_path) -> Timeline:
    folder = RunFolder.create(tmp_path, "run")
    folder.write_plan(Plan("kfp", "simulated", {"name": "spread"}, RUNS, 3, simulated=True, started_at=ORIGIN_AT))
    with folder.recorder() as recorder:
        recorder.write(Event(ORIGIN_AT, "Test", "run", "Started"))
        for record in records:
            recorder.write(record)
    return Timeline.from_frames(folder.read_plan(), load(folder))


@pytest.mark.parametrize("stamped", [lambda record: record, whole_seconds], ids=["exactly", "in whole seconds"])
def test_hours_are_those_of_the_platform_itself_within_half_a_percent(platform, stamped, tmp_path):
    timeline = read_back(map(stamped, platform.records), tmp_path)
    found = cost(timeline)
    pods = [pod for run in platform.server.runs.values() for step in run.workflow.steps if step for pod in step.pods]
    held = {
        name: sum(getattr(pod.shape, name) * (pod.finished - pod.scheduled) for pod in pods) / 3600
        for name in ("cpu", "gpu")
    }
    pools = set(timeline.run_nodes["pool"])
    lived = [
        (node, min(node.gone or timeline.end_s, timeline.end_s) - max(node.created, 0.0))
        for node in {pod.node.name: pod.node for pod in pods}.values() if node.pool.name in pools
    ]  # fmt: skip
    assert held["gpu"] > 0
    assert found.held_cpu_hours == pytest.approx(held["cpu"] / 1000, rel=0.005)
    assert found.held_gpu_hours == pytest.approx(held["gpu"], rel=0.005)
    assert len(lived) == len(timeline.run_nodes)
    assert found.gpu_hours == pytest.approx(sum(node.gpu * s for node, s in lived) / 3600, rel=0.005)
    assert found.cpu_hours == pytest.approx(sum(node.cpu * s for node, s in lived) / 3.6e6, rel=0.005)
    assert found.overhead == pytest.approx(1 - found.held_gpu_hours / found.gpu_hours)
    assert found.surplus == pytest.approx(found.gpu_hours / found.held_gpu_hours - 1)


def small(**requests: float) -> Story:
    story = Story(intended=2)
    story.node("n", -10.0, 0.0, cpu=4.0, gpu=1.0)
    for seq in range(2):
        run = story.submit(seq)
        story.pod(run, "train", "n", (UNSCHEDULABLE, 0.0, 100.0 * seq), (RUNNING, 100.0 * seq, 100.0 * (seq + 1)))
        story.run(run, 0.0, 200.0)
    for name, value in requests.items():
        kind, _, which = name.partition("_")
        story.sample(0.0, REQUESTED_CPU_CORES, value, **{kind: {"a": "run-0000-train"}.get(which, which)})
        story.sample(0.0, REQUESTED_GPUS, 0.0, **{kind: {"a": "run-0000-train"}.get(which, which)})
    return story


def test_a_pod_that_differs_from_its_task_counts_with_its_own_request(tmp_path):
    (cpu, gpu) = requested(small(task_train=2.0, pod_a=0.5).timeline(tmp_path))
    assert cpu.held_hours == pytest.approx((2.0 + 0.5) * 100 / 3600)
    assert gpu.held_hours == 0.0
    assert cpu.wanted[0] == pytest.approx(2.5)  # the second waits for room
    assert cpu.held[0] == pytest.approx(0.5)
    assert cpu.room[0] == pytest.approx(4.0)


def test_unknown_requests_give_no_result(tmp_path):
    timeline = small().timeline(tmp_path)
    assert requested(timeline) == ()
    assert cost(timeline).overhead is None


def test_pending_is_the_whole_phase_from_creation_until_a_container_runs(tmp_path):
    story = Story(intended=3)
    stretches = (
        ((UNSCHEDULABLE, 0.0, 4.0), (SCHEDULING, 4.0, 4.5), (PULLING, 4.5, 6.0), (STARTING, 6.0, 7.0), (RUNNING, 7.0, 9.0)),
        ((SCHEDULING, 0.0, 0.5), (STARTING, 0.5, 1.5), (RUNNING, 1.5, 9.0)),
        ((UNSCHEDULABLE, 0.0, None),),
    )  # fmt: skip
    for seq, those in enumerate(stretches):
        run = story.submit(seq)
        story.pod(run, "train", "n" if those[-1][2] else None, *those)
        story.run(run, 0.0, 9.0 if those[-1][2] else None)
    found = pending(story.timeline(tmp_path))
    assert (found.phase.count, found.phase.censored, found.phase.least) == (3, 1, 1.5)
    assert found.phase.at(0.5).value == 7.0
    assert found.waited.least == 0.0
    # Of the pod that still waits, 9 s are known, as a lower bound.
    assert (found.waited.count, found.waited.censored) == (3, 1)
    assert (found.waited.at(0.99).value, found.waited.at(0.99).at_least) == (None, 9.0)
    assert (found.phase.at(0.99).value, found.phase.at(0.99).at_least) == (None, 9.0)
    assert found.within == {2.0: pytest.approx(1 / 3), 5.0: pytest.approx(1 / 3), 60.0: pytest.approx(2 / 3)}
