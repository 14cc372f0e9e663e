from pathlib import Path

import yaml

from harness.analysis.cost.resources import Resources
from harness.planning.jobs_per_node import RunRequests
from harness.planning.pipeline_requests import requests_by_task, run_requests
from harness.targets import kfp_pipeline

TRAINING = Path(kfp_pipeline.__file__).with_name("training.yaml")
MI = 2**20


def test_requests_of_a_compiled_pipeline_are_read():
    found = requests_by_task(TRAINING.read_bytes())
    assert found["train"] == Resources(1.0, 2.0, 1024 * MI, 1024 * MI)
    assert found["evaluate"].cpu_request == 0.25


def test_a_run_requests_the_maximum_over_its_levels():
    assert run_requests(TRAINING.read_bytes()) == RunRequests(1.0, 1024 * MI, 1)


def test_steps_in_a_chain_never_overlap():
    names = [f"step-{k:02d}" for k in range(40)]
    tasks = {name: {"dependentTasks": names[:k]} for k, name in enumerate(names)}
    found = run_requests(yaml.dump({"root": {"dag": {"tasks": tasks}}}).encode())
    assert found == RunRequests(0.1, 64 * MI, 1)
    assert run_requests(yaml.dump({"root": {"dag": {"tasks": {name: {} for name in names}}}}).encode()).pods == 40
