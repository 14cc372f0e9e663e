"""Virtual nodes are no machines: their pods are charged by pod, and count nowhere as work of nodes."""

import pytest

from harness.analysis.capacity.bounds import bounds
from harness.analysis.capacity.progress import work
from harness.analysis.capacity.recorded import recorded
from harness.analysis.cost.cost import cost
from harness.analysis.cost.requested import requested
from harness.analysis.cost.resources import Resources, fits
from harness.analysis.cost.virtual import virtual_pods
from harness.analysis.result import analyse
from harness.detectors import diagnose
from harness.model.phases import REQUESTED_CPU_CORES, REQUESTED_MEMORY_BYTES, RUNNING, UNSCHEDULABLE
from reports.costs import cost_table
from reports.tables import hosts_text
from tests.support.timelines import GIB, Story

RUNS, STEP_S = 12, 100.0


def told(*, machines: int = 2, virtual: bool = True) -> Story:
    """Runs of `prepare` and `train`, each of 100 s: the first on a machine, the second on a virtual node."""
    story = Story(intended=RUNS)
    for k in range(machines):
        story.node(f"m{k}", -900, -890, price=0.2)
    if virtual:
        story.node("aci", -900, -890, pool="virtual-node", cpu=10_000.0, memory=4e16, pods=5000, virtual=True)
    for task, cores in (("prepare", 1.0), ("train", 2.0)):
        story.sample(0.0, REQUESTED_CPU_CORES, cores, task=task)
        story.sample(0.0, REQUESTED_MEMORY_BYTES, 4.0 * GIB, task=task)
    for seq in range(RUNS):
        run, start = story.submit(seq), STEP_S * (seq // 2)
        on_machine, elsewhere = f"m{seq % max(machines, 1)}" if machines else "aci", "aci" if virtual else "m0"
        story.pod(run, "prepare", on_machine, (UNSCHEDULABLE, 0.0, start), (RUNNING, start, start + STEP_S))
        story.pod(run, "train", elsewhere, (RUNNING, start + STEP_S, start + 2 * STEP_S))
        story.run(run, 0.0, start + 2 * STEP_S)
    return story


@pytest.fixture
def timeline(tmp_path):
    return told().timeline(tmp_path)


def test_pods_there_are_charged_by_pod_with_what_they_requested(timeline):
    found = virtual_pods(timeline)
    assert found is not None
    assert (found.nodes, found.pods, found.share) == (1, RUNS, pytest.approx(0.5))
    hours = RUNS * STEP_S / 3600
    assert (found.pod_hours, found.cpu_hours, found.memory_gib_hours) == pytest.approx((hours, 2 * hours, 4 * hours))


def test_node_hours_cost_and_requests_are_those_of_machines(timeline):
    paid, end_h = cost(timeline), timeline.end_s / 3600
    assert paid is not None
    assert (paid.node_hours, paid.cpu_hours, paid.cost) == pytest.approx((2 * end_h, 8 * end_h, 0.4 * end_h))
    assert paid.busy_hours == pytest.approx(RUNS * STEP_S / 3600)
    assert requested(timeline)[0].held_hours == pytest.approx(RUNS * STEP_S / 3600)


def test_only_the_work_of_machines_counts_as_work_of_nodes(timeline):
    done = work(timeline)
    assert done is not None
    assert done.start.size == RUNS
    # The step on the virtual node takes as long as the other one, and twice the share of a machine: 2/3 of the work.
    assert (float((done.rate * (done.end - done.start)).sum()), done.of_machines) == pytest.approx((RUNS / 3, 1 / 3))
    (nodes,) = (each for each in bounds(timeline) if each.part == "nodes")
    assert (nodes.servers, nodes.demand_s) == (2.0, pytest.approx(STEP_S))


def test_a_capacity_answer_is_for_machines_alone_and_says_so(timeline):
    found = recorded(timeline)
    assert [(o.runs, o.nodes) for o in found.observations] == [(pytest.approx(RUNS / 3), pytest.approx(2.0))]
    assert any("50% of the pods' time was on virtual nodes" in each for each in found.warnings)


def test_where_all_pods_were_on_virtual_nodes_nothing_is_known_of_machines(tmp_path):
    timeline = told(machines=0).timeline(tmp_path)
    assert cost(timeline) is None
    found = recorded(timeline)
    assert found.observations == ()
    assert "all pods ran on virtual nodes, which have no size to fit to" in found.warnings[-1]
    assert hosts_text(analyse(timeline, diagnose(timeline))) == "on 1 virtual node"


def test_jobs_fit_on_machines_only(timeline):
    found = fits(timeline, {"prepare": Resources(1.0, 1.0, 4.0 * GIB, 4.0 * GIB)})
    assert [(each.pool, each.jobs) for each in found] == [("train", 4)]


def test_the_report_says_what_ran_there(timeline):
    result = analyse(timeline, diagnose(timeline))
    assert hosts_text(result) == "on up to 2 nodes and 1 virtual node"
    rows = {row[0]: row[1:] for row in cost_table(result).rows}
    assert rows["Pods on virtual nodes"][0] == "12"
    assert "node-hours leave them out" in rows["Pods on virtual nodes"][1]


def test_without_virtual_nodes_nothing_is_said_of_them(tmp_path):
    timeline = told(virtual=False).timeline(tmp_path)
    assert virtual_pods(timeline) is None
    assert recorded(timeline).warnings == ()
