import json

import pytest

from harness.analysis.capacity.answer import Question
from harness.analysis.capacity.recorded import recorded
from harness.cli import main
from harness.planning import simulated_burst, simulated_capacity
from harness.planning.simulated_capacity import calibrate
from harness.planning.sweeps import Untold, Workers
from harness.simulator.profile.file import load_profile
from tests.support.timelines import burst


@pytest.fixture
def timeline(tmp_path):
    return burst(60, pool=2, step=20.0).timeline(tmp_path)


def test_it_reproduces_the_test_it_was_calibrated_on(timeline):
    (whole,) = recorded(timeline).observations
    found = calibrate(timeline, whole, load_profile("aks-20-nodes"), simulated_burst.package(None), Workers(1))
    low, value, high = found.ask(Question(runs=60, nodes=2))
    assert value == pytest.approx(whole.duration_s, rel=0.01)
    assert low < value < high
    step = next(step for step in found.profile.steps if step.match == "train")
    assert step.duration.distribution.mean == pytest.approx(20.0, rel=0.05)


@pytest.mark.soak  # a minute: it searches by simulating
def test_its_answers_are_consistent_and_more_nodes_are_faster(timeline):
    (whole,) = recorded(timeline).observations
    found = calibrate(timeline, whole, load_profile("aks-20-nodes"), simulated_burst.package(None), Workers(1))
    _, four, _ = found.ask(Question(runs=60, nodes=4))
    assert four < whole.duration_s
    _, nodes, _ = found.ask(Question(runs=60, within_s=four * 1.0001))
    assert nodes == 4
    _, runs, _ = found.ask(Question(nodes=4, within_s=four * 1.0001))
    assert runs == pytest.approx(60, abs=8)  # medians of a few simulated tests are not quite monotone


def test_capacity_names_the_simulator(tmp_path, capsys):
    folder = burst(100, pool=2, step=20.0).write(tmp_path)
    arguments = ["--from", str(folder.path), "--simulator", "aks-20-nodes", "--runs", "100", "--nodes", "2", "--json"]
    assert main(["capacity", *arguments]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["model"] == "calibrated simulator (aks-20-nodes)"
    assert found["interval"][0] < found["answer"] < found["interval"][1]
    assert main(["capacity", *arguments[:4], "--runs", "20", "--within", "10h", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["nodes"] == 1


def test_a_table_can_not_calibrate_a_simulator(tmp_path, capsys):
    table = tmp_path / "t.csv"
    table.write_text("runs,nodes,duration\n1,1,1\n")
    assert main(["capacity", "--from", str(table), "--simulator", "demo", "--runs", "1", "--nodes", "1"]) == 2
    assert "one run folder" in capsys.readouterr().err


def test_a_size_is_simulated_once_for_all_answers_and_as_many_are_expected_as_are_made(timeline, monkeypatch):
    class Told(Untold):
        expected = over = 0

        def expect(self, more):
            self.expected += more

        def advance(self):
            self.over += 1

    (whole,) = recorded(timeline).observations
    workers = Workers(1)
    workers.progress = told = Told()
    asked = []

    def duration_s(profile, pipeline, runs, seed):
        nodes = simulated_burst.pool_of_steps(profile, pipeline).initial
        asked.append((runs, nodes, seed))
        return 60.0 * runs / nodes + seed

    monkeypatch.setattr(simulated_capacity, "_duration_s", duration_s)
    found = calibrate(timeline, whole, load_profile("aks-20-nodes"), simulated_burst.package(None), workers)
    asked.clear()
    before = told.over
    first = found.ask(Question(runs=100, within_s=900.0))
    assert found.ask(Question(runs=100, within_s=900.0)) == first
    assert len(asked) == len(set(asked)) == told.over - before
    assert told.expected == told.over
