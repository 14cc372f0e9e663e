"""Who the nodes' cost is for."""

import json

import pytest

from harness.analysis.cost.allocated import IDLE, OTHERS, Part, allocated
from harness.analysis.cost.cost import cost
from harness.cli import main
from harness.model.phases import POD_COST, POD_CPU_CORES, REQUESTED_CPU_CORES, RUNNING, UNSCHEDULABLE
from tests.support.timelines import Story

HOUR = 3600.0


def night(**prices: float) -> Story:
    """Two nodes for an hour: `n0` holds a quarter of an hour of train on 2 of 4 cores, `n1` an hour of another pipeline."""
    story = Story(intended=0)
    for name in ("n0", "n1"):
        story.node(name, 0.0, 0.0, cpu=4.0, price=prices.get(name, prices.get("every")))
    for run, task, node, begun, ended in (
        ("etl-0", "train", "n0", 0.0, 900.0),
        ("etl-1", "train", "n0", 900.0, 1800.0),
        ("scores-x7k2p", "score", "n1", 0.0, HOUR),
    ):
        story.run(run, begun, ended)
        story.pod(run, task, node, (UNSCHEDULABLE, begun, begun), (RUNNING, begun, ended))
    story.sample(0.0, REQUESTED_CPU_CORES, 2.0, task="train")
    story.sample(0.0, REQUESTED_CPU_CORES, 1.0, task="score")
    return story


def of(parts: tuple[Part, ...]) -> dict[tuple[str, str], float]:
    return {(part.pipeline, part.step): round(part.hours, 3) for part in parts}


def test_pods_hold_what_they_request_and_the_rest_is_idle(tmp_path):
    parts = allocated(night(every=0.5).timeline(tmp_path))
    assert of(parts) == {("etl", "train"): 0.25, ("scores", "score"): 0.25, (IDLE, ""): 1.5}
    assert parts[-1].pipeline == IDLE


@pytest.mark.parametrize("prices", [{"n0": 0.2, "n1": 1.5}, {"every": 0.7}])
def test_the_parts_add_up_to_the_bill(tmp_path, prices):
    timeline = night(**prices).timeline(tmp_path)
    parts, bill = allocated(timeline), cost(timeline)
    assert bill is not None
    assert sum(part.hours for part in parts) == pytest.approx(bill.node_hours)
    assert sum(part.cost or 0.0 for part in parts) == pytest.approx(bill.cost)


def test_a_pod_that_uses_more_than_it_requests_holds_what_it_uses(tmp_path):
    story = night(every=1.0)
    story.sample(600.0, POD_CPU_CORES, 3.0, pod="scores-x7k2p-score")
    assert of(allocated(story.timeline(tmp_path)))["scores", "score"] == 0.75


def test_pods_that_request_more_than_their_node_has_share_it(tmp_path):
    story = night(every=1.0)
    story.sample(0.0, REQUESTED_CPU_CORES, 400.0, task="score")
    timeline = story.timeline(tmp_path)
    parts = allocated(timeline)
    assert of(parts)["scores", "score"] == 1.0
    assert sum(part.hours for part in parts) == pytest.approx(2.0)


def test_other_workloads_have_a_row_of_their_own(tmp_path):
    story = night(every=1.0)
    story.pod("team-b/web", "team-b/web", "n0", (RUNNING, 0.0, HOUR))
    story.sample(0.0, REQUESTED_CPU_CORES, 1.0, task="team-b/web")
    assert of(allocated(story.timeline(tmp_path)))[OTHERS, ""] == 0.25


def test_without_prices_there_are_hours_and_no_costs(tmp_path):
    assert {part.cost for part in allocated(night().timeline(tmp_path))} == {None}


def billed(story: Story) -> Story:
    """By OpenCost, in two answers: two pods of runs, a pod of somebody else, a volume without a pod, idle nodes."""
    for at_s in (0.0, HOUR / 2):
        for pod, paid in (("etl-0-train", 0.25), ("scores-x7k2p-score", 1.0), ("web", 0.5), ("__unmounted__", 0.125)):
            story.sample(at_s, POD_COST, paid, namespace="team", pod=pod)
        story.sample(at_s, POD_COST, 2.0, idle="true")
    return story


def test_costs_of_opencost_take_the_place_of_hours_and_prices(tmp_path):
    parts = allocated(billed(night(every=0.5)).timeline(tmp_path))
    assert [(part.pipeline, part.step, part.hours, part.cost) for part in parts] == [
        ("scores", "score", None, 2.0),
        ("etl", "train", None, 0.5),
        (OTHERS, "", None, 1.25),
        (IDLE, "", None, 4.0),
    ]


def test_the_table_says_whose_costs_they_are_and_adds_up_to_the_bill(tmp_path):
    folder = billed(night()).write(tmp_path)
    (tmp_path / "prices.yaml").write_text("currency: USD\n")  # which OpenCost does not tell
    prices = str(tmp_path / "prices.yaml")
    assert main(["report", str(folder.path), "--quiet", "--no-what-if", "--prices", prices]) == 0
    report, page = (folder.path / name for name in ("report.json", "report.html"))
    assert sum(part["cost"] for part in json.loads(report.read_bytes())["allocated"]) == 7.75
    assert "of the whole cluster, by OpenCost" in page.read_text(encoding="utf-8")
    assert "Cost (USD)" in page.read_text(encoding="utf-8")
    assert "What OpenCost allocated to each pod" in page.read_text(encoding="utf-8")


def test_prices_that_are_given_count_instead(tmp_path):
    folder = billed(night()).write(tmp_path)
    assert main(["report", str(folder.path), "--quiet", "--no-what-if", "--price", "0.5"]) == 0
    report = json.loads((folder.path / "report.json").read_bytes())
    assert sum(part["cost"] for part in report["allocated"]) == pytest.approx(report["cost"]["cost"]) == 1.0


def test_without_nodes_there_is_nothing_to_allocate(tmp_path):
    story = Story(intended=0)
    story.run("r", 0.0, 9.0)
    assert allocated(story.timeline(tmp_path)) == ()
