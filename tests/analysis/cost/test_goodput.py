import json
from importlib.resources import files

import pytest
import yaml

from harness.analysis.cost.cost import goodput
from harness.cli import main
from harness.model.phases import RUNNING
from tests.support.timelines import Story


def test_runs_are_split_between_spot_and_on_demand_by_work(tmp_path):
    """By hand: an hour each. Run 0 works 10 s on spot, 30 s on the other; run 1 loses 20 s of spot and 60 s count."""
    story = Story(intended=3)
    story.node("cheap", 0.0, 0.0, spot=True, price=0.1)
    story.node("steady", 0.0, 0.0, price=0.4)
    first, second, third = (story.submit(seq) for seq in range(3))
    story.pod(first, "a", "cheap", (RUNNING, 0.0, 10.0))
    story.pod(first, "b", "steady", (RUNNING, 10.0, 40.0))
    story.pod(second, "a", "cheap", (RUNNING, 0.0, 20.0))
    story.pod(second, "again", "steady", (RUNNING, 20.0, 80.0))
    story.pod(third, "a", "steady", (RUNNING, 0.0, 3600.0))
    story.event(20.0, "Pod", f"{second}-a", "Evicted", "preempted", run=second)
    story.run(first, 0.0, 41.0)
    story.run(second, 0.0, 81.0)
    story.run(third, 0.0, 3600.0, "FAILED")
    spot, steady = goodput(story.timeline(tmp_path))
    assert (spot.spot, spot.nodes, spot.lost, spot.lost_s, spot.worked_s) == (True, 1, 1, 20.0, 30.0)
    assert spot.runs == pytest.approx(0.25)
    assert (steady.spot, steady.lost, steady.worked_s) == (False, 0, pytest.approx(3690.0))
    assert steady.runs == pytest.approx(0.75 + 1.0)
    assert (spot.per_node_hour, spot.per_money) == pytest.approx((0.25, 2.5))
    assert (steady.per_node_hour, steady.per_money) == pytest.approx((1.75, 1.75 / 0.4))


def test_one_kind_of_node_has_no_comparison(tmp_path):
    story = Story(intended=1)
    run = story.submit(0)
    story.pod(run, "a", "unseen", (RUNNING, 0.0, 10.0))
    story.run(run, 0.0, 11.0)
    assert goodput(story.timeline(tmp_path / "none")) == ()
    story.node("unseen", -5.0, 0.0)
    (only,) = goodput(story.timeline(tmp_path / "one"))
    assert (only.spot, only.runs, only.cost) == (False, pytest.approx(1.0), None)


POOLS = """
pools:
  - {{name: steady, cpu: 8, memory: 32Gi, initial: {steady}, min: {steady}, max: {steady}, price: 0.40}}
  - {{name: cheap, cpu: 8, memory: 32Gi, initial: {cheap}, max: {cheap}, price: 0.08, spot: true,
     evictions_per_hour: {evictions}}}
steps: [{{duration: 60s, cpu: 200m, memory: 100Mi}}]
api: {{qps: 100, burst: 200}}
controller: {{qps: 100, burst: 200}}
autoscaler: {{provisioning: 30s, scan_s: 5s}}
"""


def simulated(place, name, **pools):
    """200 runs within half an hour; steps put up with spot nodes and are tried again."""
    (spec,) = yaml.safe_load_all((files("harness") / "targets" / "training.yaml").read_text())
    for task in spec["root"]["dag"]["tasks"].values():
        task["cachingOptions"] = {}
        task["retryPolicy"] = {"maxRetryCount": 5}
    spot = {
        "key": "kubernetes.azure.com/scalesetpriority",
        "operator": "Equal",
        "value": "spot",
        "effect": "NoSchedule",
    }
    executors = {label: {"tolerations": [spot]} for label in spec["deploymentSpec"]["executors"]}
    platform = {"platforms": {"kubernetes": {"deploymentSpec": {"executors": executors}}}}
    (place / "pipeline.yaml").write_text(yaml.safe_dump_all([spec, platform]))
    (place / f"{name}-pools.yaml").write_text(POOLS.format(**pools))
    given = {"profile": place / f"{name}-pools.yaml", "pipeline": place / "pipeline.yaml", "runs": 200, "over": "30m",
             "runs-dir": place, "run-name": name}  # fmt: skip
    assert main(["simulate", "run", "--quiet", *(f"--{key}={value}" for key, value in given.items())]) == 0
    return place / name


def test_the_report_compares_spot_and_on_demand_nodes(tmp_path):
    folder = simulated(tmp_path, "both", steady=1, cheap=3, evictions=4)
    report = json.loads((folder / "report.json").read_bytes())
    spot, steady = report["goodput"]
    assert (spot["spot"], steady["spot"]) == (True, False)
    assert spot["lost"] > 5
    assert steady["lost"] == 0
    # Nothing is counted twice or forgotten: the kinds add up to the whole.
    assert spot["runs"] + steady["runs"] == pytest.approx(report["ledger"]["succeeded"], rel=1e-4)
    for whole, part in (("node_hours", "node_hours"), ("cost", "cost")):
        assert spot[part] + steady[part] == pytest.approx(report["cost"][whole], rel=1e-4)
    assert spot["lost"] + steady["lost"] == report["wasted_work"]["pods"]
    # The steps take a minute each wherever they run, and the cluster takes up to 105 s to notice that a machine is gone.
    assert spot["lost_s"] < (60.5 + 105) * spot["lost"]
    page = (folder / "report.html").read_text()
    assert "Spot and on-demand nodes" in page


def test_the_same_load_on_spot_and_on_demand_is_compared_by_node_hour_and_money(tmp_path, capsys):
    steady = simulated(tmp_path, "steady", steady=4, cheap=0, evictions=0)
    cheap = simulated(tmp_path, "cheap", steady=1, cheap=3, evictions=4)
    assert "Spot beside" not in (steady / "report.html").read_text()
    assert main(["compare", str(steady), str(cheap), "--json"]) == 0
    rows = {row["metric"]: row for row in json.loads(capsys.readouterr().out)["comparisons"]}
    assert rows["work lost (share)"]["before"] == 0 < rows["work lost (share)"]["after"]
    assert rows["goodput (runs/money)"]["change"] > 0.5  # three of four nodes are at a fifth of the price
    for name, folder in (("before", steady), ("after", cheap)):
        told = json.loads((folder / "report.json").read_bytes())
        assert rows["goodput (runs/node-hour)"][name] == pytest.approx(200 / told["cost"]["node_hours"], rel=1e-4)
        assert rows["goodput (runs/money)"][name] == pytest.approx(200 / told["cost"]["cost"], rel=1e-4)
