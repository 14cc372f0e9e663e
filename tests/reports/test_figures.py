import re
from itertools import pairwise

import numpy as np
import pytest

from harness.analysis.capacity.scaling import Curve, fit
from harness.analysis.result import analyse
from harness.detectors import diagnose
from harness.model.phases import FAILED, PULLING, RUNNING, SUCCEEDED, UNSCHEDULABLE
from reports.figures import figures
from reports.figures.figure import unit_of
from reports.figures.scaling import statement
from tests.support.timelines import Story, burst


def drawn(story, place):
    timeline = story.timeline(place)
    return figures(analyse(timeline, diagnose(timeline)))


def pods_of(figure):
    return [
        (y, b, b + x)
        for t in figure.spec["data"]
        if t["type"] == "bar" and t["name"] != "node ready"
        for y, b, x in zip(t["y"], t["base"], t["x"], strict=True)
    ]


def trace(figure, name):
    return next((t for t in figure.spec["data"] if t["name"] == name), None)


def test_pods_on_the_lanes_of_a_node_never_overlap(tmp_path):
    pods = drawn(burst(40), tmp_path)["pods"]
    by_lane: dict[float, list[tuple[float, float]]] = {}
    for lane, start, end in pods_of(pods):
        by_lane.setdefault(lane, []).append((start, end))
    assert len(by_lane) == 16  # four nodes of four places, and a run has one pod at a time
    for stretches in by_lane.values():
        assert all(before[1] <= after[0] + 1e-6 for before, after in pairwise(sorted(stretches)))
    assert "All nodes" in pods.caption
    assert "all 160 pods" in pods.caption  # a driver and three steps each


def test_a_node_is_drawn_from_ready_to_gone_and_a_pod_from_its_scheduling(tmp_path):
    story = Story(intended=1)
    story.node("comes", 2.0, 10.0, gone=50.0)
    run = story.submit(0)
    story.pod(run, "train", "comes", (UNSCHEDULABLE, 1.0, 12.0), (PULLING, 12.0, 15.0), (RUNNING, 15.0, 45.0))
    story.run(run, 0.0, 60.0)
    pods = drawn(story, tmp_path)["pods"]
    there = trace(pods, "node ready")
    assert (there["base"], there["x"]) == ([10.0], [40.0])
    assert sorted((start, end) for _, start, end in pods_of(pods)) == [(12.0, 15.0), (15.0, 45.0)]
    assert trace(pods, RUNNING)["text"] == ["train of run 0"]


def test_failed_and_evicted_pods_are_marked_at_their_end(tmp_path):
    story = Story(intended=3)
    story.node("spot", -60.0, 0.0, gone=40.0, spot=True)
    story.node("stays", -60.0, 0.0)
    for seq, (node, over) in enumerate((("spot", 40.0), ("stays", 30.0), ("stays", 70.0))):
        run = story.submit(seq)
        story.pod(run, "train", node, (RUNNING, 10.0, over))
        story.run(run, 0.0, 80.0, FAILED if seq == 0 else SUCCEEDED)
    story.event(30.0, "Pod", "run-0001-train", "Error", "exit code 1", run="run-0001")
    pods = drawn(story, tmp_path)["pods"]
    assert trace(pods, "failed")["x"] == [30.0]
    assert trace(pods, "evicted or lost with its node")["x"] == [40.0]


def test_of_a_thousand_nodes_some_are_drawn_from_busiest_to_idlest(tmp_path):
    story = Story(intended=1000)
    for k in range(1000):
        story.node(f"node-{k:03d}", -60.0, 0.0)
        run = story.submit(k)
        story.pod(run, "train", f"node-{k:03d}", (RUNNING, 0.0, 1.0 + k))
        story.run(run, 0.0, 1001.0)
    made = drawn(story, tmp_path)
    assert made["pods"].caption.startswith("12 of 1,000 nodes, from the busiest to the idlest")
    names = made["pods"].spec["layout"]["yaxis"]["ticktext"]
    assert len(names) == 12
    assert {names[0], names[-1]} == {"…000", "…999"}
    assert made["pods"].height < 1200
    assert "60 of 1,000 nodes" in made["work"].caption


def test_many_pods_are_thinned_by_whole_runs(tmp_path):
    story = burst(1200, pool=8, slots=8)
    pods = drawn(story, tmp_path)["pods"]
    texts = {text for t in pods.spec["data"] if t["type"] == "bar" for text in t.get("text", ())}
    assert 300 < len(texts) <= 650
    assert "of evenly chosen runs" in pods.caption
    runs = {text.rsplit(" ", 1)[1] for text in texts}
    assert all(f"{task} of run {run}" in texts for run in runs for task in ("prepare", "train", "evaluate"))


def test_runs_are_drawn_from_when_they_were_due_and_failed_ones_are_marked(tmp_path):
    made = drawn(burst(60, store_full_from=0.5), tmp_path)["runs"]
    assert len(trace(made, "failed")["x"]) == 30
    whole = burst(4)
    for record in list(whole.records):
        if hasattr(record, "due_at"):
            whole.records.remove(record)
    for seq in range(4):
        whole.submit(seq, due=0.1 * seq)
    ends = [
        max(end for lane, _, end in pods_of(drawn(whole, tmp_path / "late")["runs"]) if lane == k) for k in range(4)
    ]
    assert np.all(np.diff(ends) < 0)  # all are over at once, and the later was due later


@pytest.mark.parametrize(
    ("longest", "name"), [(0.0, "seconds"), (599.0, "seconds"), (600.0, "minutes"), (36_000.0, "hours")]
)
def test_a_time_axis_has_a_unit_that_keeps_numbers_small(longest, name):
    assert unit_of(longest).name == name


def test_the_scaling_statement_names_the_nodes_beyond_which_throughput_falls():
    nodes = np.repeat([1.0, 2.0, 4.0, 8.0, 16.0], 3)
    noise = 1 + 0.01 * np.random.default_rng(1).standard_normal(nodes.size)
    said = {}
    for name, curve in (
        ("falls", Curve("usl", 100.0, 0.02, 0.02)),
        ("flat", Curve("amdahl", 100.0, 1.0)),
        ("nearly", Curve("amdahl", 100.0, 0.001)),
    ):
        found = fit(nodes, curve.at(nodes) * noise, np.random.default_rng(2))
        said[name] = statement(found)
    assert re.search(r"beyond 7 \(\d to \d\) throughput falls", said["falls"])
    assert "Beyond 1 (1 to " in said["flat"]
    assert re.search(
        r"No limit is in sight: on 16 nodes each achieves 9\d% of a single node's throughput", said["nearly"]
    )
    perfect = fit(nodes, 100.0 * nodes, np.random.default_rng(2))
    told = "Every node added 100.0 runs/h."
    assert told in statement(perfect)
