import json

import pytest

from harness.analysis.capacity.answer import Question
from harness.cli import main
from harness.planning import simulated_burst, simulated_capacity
from harness.planning.identify import identify, recorded_test
from harness.planning.simulated_capacity import CalibratedSimulator
from harness.planning.sweeps import Untold, Workers
from harness.planning.timelines import timeline_of
from harness.store import RunFolder


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A burst of 60 on the three nodes of ``aks-20-nodes`` that are there from the start."""
    place = tmp_path_factory.mktemp("recorded")
    options = ["--profile", "aks-20-nodes", "--fault", "nodes-exhausted", "--schedule", "burst", "--runs", "60"]
    places = ["--runs-dir", str(place), "--run-name", "run", "--no-report", "--quiet"]
    assert main(["simulate", "run", *options, *places]) == 0
    return place / "run"


@pytest.fixture(scope="module")
def found(recorded):
    timeline = timeline_of(recorded)
    test = recorded_test(RunFolder.open(recorded), timeline)
    return identify(timeline, test), test


def simulator(found, workers):
    identified, test = found
    return CalibratedSimulator(identified.profile, test.package, identified.reproduction.within, workers)


def test_it_reproduces_the_test_it_was_calibrated_on(found):
    low, value, high = simulator(found, Workers(1)).ask(Question(runs=60, nodes=3))
    assert value == pytest.approx(found[0].recorded.makespan_s, rel=0.15)
    assert low < value < high


@pytest.mark.soak  # a minute: it searches by simulating
def test_its_answers_are_consistent_and_more_nodes_are_faster(found):
    model = simulator(found, Workers(1))
    _, six, _ = model.ask(Question(runs=60, nodes=6))
    assert six < found[0].recorded.makespan_s
    _, nodes, _ = model.ask(Question(runs=60, within_s=six * 1.0001))
    assert nodes == 6
    _, runs, _ = model.ask(Question(nodes=6, within_s=six * 1.0001))
    assert runs == pytest.approx(60, abs=8)  # medians of a few simulated tests are not quite monotone


def test_capacity_names_the_simulator(recorded, capsys):
    arguments = ["--from", str(recorded), "--simulator", "aks-20-nodes", "--runs", "60", "--nodes", "3", "--json"]
    assert main(["capacity", *arguments]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["model"] == "calibrated simulator (aks-20-nodes)"
    assert found["interval"][0] < found["answer"] < found["interval"][1]
    assert main(["capacity", *arguments[:4], "--runs", "5", "--within", "10h", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["nodes"] == 1


def test_a_table_can_not_calibrate_a_simulator(tmp_path, capsys):
    table = tmp_path / "t.csv"
    table.write_text("runs,nodes,duration\n1,1,1\n")
    assert main(["capacity", "--from", str(table), "--simulator", "demo", "--runs", "1", "--nodes", "1"]) == 2
    assert "one run folder" in capsys.readouterr().err


def test_a_size_is_simulated_once_for_all_answers_and_as_many_are_expected_as_are_made(found, monkeypatch):
    class Told(Untold):
        expected = over = 0

        def expect(self, more):
            self.expected += more

        def advance(self):
            self.over += 1

    workers = Workers(1)
    workers.progress = told = Told()
    asked = []

    def duration_s(profile, pipeline, runs, seed):
        nodes = simulated_burst.main_pool(profile, simulated_burst.steps_of(pipeline)).initial
        asked.append((runs, nodes, seed))
        return 60.0 * runs / nodes + seed

    monkeypatch.setattr(simulated_capacity, "_duration_s", duration_s)
    model = simulator(found, workers)
    first = model.ask(Question(runs=100, within_s=900.0))
    assert model.ask(Question(runs=100, within_s=900.0)) == first
    assert len(asked) == len(set(asked)) == told.over
    assert told.expected == told.over
