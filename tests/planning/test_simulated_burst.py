from dataclasses import replace

import pytest

from harness.cli import main
from harness.model import ConfigError
from harness.planning import simulated_burst
from harness.simulator.profile import Pool, Taint
from harness.simulator.profile.file import load_profile
from harness.targets import kfp

HETIDA = load_profile("hetida-pattern-1")


def burst(profile, runs, replicas):
    made = simulated_burst.package(None, profile)
    return simulated_burst.burst(simulated_burst.with_nodes(profile, replicas, made), made, runs, seed=3)


def test_a_profile_of_hetida_designer_simulates_executions_of_its_replicas():
    one, four = (burst(HETIDA, 120, replicas) for replicas in (1, 4))
    assert (one.runs, one.succeeded, len(one.run_s)) == (120, 120, 120)
    assert one.duration_s > 2.0 * four.duration_s
    assert max(one.run_s) < 600, "no pipeline of pods has been run"


def test_the_nodes_of_hetida_designer_keep_their_replicas_each():
    was = HETIDA.hetida.runtime
    runtime = simulated_burst.with_nodes(HETIDA, 2 * was.replicas, b"").hetida.runtime
    assert (runtime.replicas, runtime.nodes, runtime.workers) == (2 * was.replicas, 2 * was.nodes, was.workers)


def placed(tmp_path, *arguments):
    path = tmp_path / "placed.yaml"
    assert main(["prepare", "--quiet", str(kfp.EXAMPLE), "-o", str(path), *arguments]) == 0
    return path.read_bytes()


def test_the_tainted_pool_of_the_steps_is_resized_and_drivers_keep_theirs(tmp_path):
    """The larger default pool takes drivers only: twice the nodes of the steps' pool nearly halve the time."""
    profile = replace(
        load_profile("aks-20-nodes"),
        pools=(Pool("default", initial=0, max=30), Pool("steps", initial=1, max=2, taints=(Taint("sku", "training"),))),
    )
    on_steps = placed(tmp_path, "--node-selector", "agentpool=steps", "--toleration", "sku=training:NoSchedule")
    two, four = (simulated_burst.with_nodes(profile, nodes, on_steps) for nodes in (2, 4))
    assert [(pool.name, pool.initial) for pool in four.pools] == [("default", 30), ("steps", 4)]
    slow, fast = (simulated_burst.burst(each, on_steps, 100, seed=3).duration_s for each in (two, four))
    assert slow > 1.6 * fast
    anywhere = simulated_burst.with_nodes(profile, 2, simulated_burst.package(None))
    assert [(pool.name, pool.initial) for pool in anywhere.pools] == [("default", 2), ("steps", 1)]


def test_the_pool_of_a_step_that_needs_another_one_stays(tmp_path):
    """Two of three steps go to the tainted pool; `train` to machines with GPUs, of which a test begins with none."""
    sku = {"taints": (Taint("sku", "training"),)}
    profile = replace(
        load_profile("aks-20-nodes"),
        pools=(Pool("default", initial=2), Pool("gpu", gpu=1, initial=0, max=3, **sku), Pool("steps", max=9, **sku)),
    )
    tolerant = placed(tmp_path, "--toleration", "sku=training:NoSchedule")
    path = tmp_path / "tolerant.yaml"
    path.write_bytes(tolerant)
    mixed = tmp_path / "mixed.yaml"
    assert main(["prepare", "--quiet", str(path), "-o", str(mixed), "--task", "train", "--gpu", "1"]) == 0
    resized = simulated_burst.with_nodes(profile, 4, mixed.read_bytes())
    assert [(pool.name, pool.initial) for pool in resized.pools] == [("default", 2), ("gpu", 3), ("steps", 4)]


def test_steps_that_no_pool_takes_are_refused(tmp_path):
    nowhere = placed(tmp_path, "--node-selector", "agentpool=gpu")
    with pytest.raises(ConfigError, match="no pool of the profile 'aks-20-nodes' takes a step"):
        simulated_burst.with_nodes(load_profile("aks-20-nodes"), 2, nowhere)


def test_a_pipeline_is_no_transformation(tmp_path):
    path = tmp_path / "pipeline.yaml"
    path.write_bytes(simulated_burst.package(None))
    with pytest.raises(ConfigError, match="pipeline"):
        simulated_burst.package(path, HETIDA)
