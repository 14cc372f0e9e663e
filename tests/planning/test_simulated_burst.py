import pytest

from harness.model import ConfigError
from harness.planning import simulated_burst
from harness.simulator.profile.file import load_profile

HETIDA = load_profile("hetida-pattern-1")


def burst(profile, runs, replicas):
    made = simulated_burst.package(None, profile)
    return simulated_burst.burst(simulated_burst.with_nodes(profile, replicas), made, runs, seed=3)


def test_a_profile_of_hetida_designer_simulates_executions_of_its_replicas():
    one, four = (burst(HETIDA, 120, replicas) for replicas in (1, 4))
    assert (one.runs, one.succeeded, len(one.run_s)) == (120, 120, 120)
    assert one.duration_s > 2.0 * four.duration_s
    assert max(one.run_s) < 600, "no pipeline of pods has been run"


def test_the_nodes_of_hetida_designer_keep_their_replicas_each():
    was = HETIDA.hetida.runtime
    runtime = simulated_burst.with_nodes(HETIDA, 2 * was.replicas).hetida.runtime
    assert (runtime.replicas, runtime.nodes, runtime.workers) == (2 * was.replicas, 2 * was.nodes, was.workers)


def test_a_pipeline_is_no_transformation(tmp_path):
    path = tmp_path / "pipeline.yaml"
    path.write_bytes(simulated_burst.package(None))
    with pytest.raises(ConfigError, match="pipeline"):
        simulated_burst.package(path, HETIDA)
