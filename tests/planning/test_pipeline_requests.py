import json

import pytest
import yaml

from harness.analysis.cost.resources import Resources
from harness.planning.jobs_per_node import RunRequests
from harness.planning.pipeline_requests import most_at_once, requests_by_task, run_requests
from harness.targets import kfp
from tests.support.hostile import HOSTILE

TRAINING = kfp.EXAMPLE
MI = 2**20


def test_requests_of_a_compiled_pipeline_are_read():
    found = requests_by_task(TRAINING.read_bytes())
    assert found["train"] == Resources(1.0, 2.0, 1024 * MI, 1024 * MI)
    assert found["evaluate"].cpu_request == 0.25


def test_a_run_requests_the_maximum_over_its_levels():
    assert run_requests(TRAINING.read_bytes()) == RunRequests(1.0, 1024 * MI, 1)


def test_components_that_refer_to_each_other_are_read_once():
    """Written out, this pipeline has 43 million tasks."""
    package = json.dumps(HOSTILE["kfp-many.yaml"][0]).encode()
    assert run_requests(package, with_drivers=False).pods == 3**16
    assert requests_by_task(package).keys() == {"t0", "t1", "t2"}


def test_steps_in_a_chain_never_overlap():
    names = [f"step-{k:02d}" for k in range(40)]
    tasks = {name: {"dependentTasks": names[:k]} for k, name in enumerate(names)}
    found = run_requests(yaml.dump({"root": {"dag": {"tasks": tasks}}}).encode())
    assert found == RunRequests(0.1, 64 * MI, 1)
    assert run_requests(yaml.dump({"root": {"dag": {"tasks": {name: {} for name in names}}}}).encode()).pods == 40


def test_without_drivers_a_step_without_requests_takes_only_a_place():
    tasks = {"root": {"dag": {"tasks": {"step": {}}}}}
    assert run_requests(yaml.dump(tasks).encode(), with_drivers=False) == RunRequests(0.0, 0.0, 1)


@pytest.mark.parametrize(
    ("waits", "most"),
    [
        ([], 10.0),
        ([(0, 1), (1, 2), (2, 3)], 4.0),
        ([(0, 3)], 9.0),
        # A long branch (0) beside a chain: it overlaps the largest task of the chain, however late that comes.
        ([(1, 2), (2, 3)], 5.0),
    ],
)
def test_tasks_of_which_none_waits_for_another_overlap(waits, most):
    assert most_at_once([1.0, 2.0, 3.0, 4.0], waits) == pytest.approx(most)


def loop(limit: int, items: dict, *, inside: bool = False) -> bytes:
    """A loop whose iterations run `train` (2 cores, 1 GiB); with `inside`, the same in a nested pipeline."""
    each = {"componentRef": {"name": "comp-train"}}
    looped = {
        "componentRef": {"name": "comp-each"},
        "parameterIterator": {"itemInput": "item", "items": items},
        "iteratorPolicy": {"parallelismLimit": limit},
        "inputs": {"parameters": {"numbers": {"componentInputParameter": "numbers"}}},
    }
    tasks = {"for-loop-1": looped}
    numbers = {"numbers": {"componentInputParameter": "numbers"}}
    nested = {"nested": {"componentRef": {"name": "comp-nested"}, "inputs": {"parameters": numbers}}}
    inputs = {"parameters": {"numbers": {"parameterType": "LIST", "defaultValue": [1, 2, 3, 4]}}}
    spec = {
        "root": {"dag": {"tasks": nested if inside else tasks}, "inputDefinitions": inputs},
        "components": {
            "comp-each": {"dag": {"tasks": {"train": each}}},
            "comp-nested": {"dag": {"tasks": tasks}},
            "comp-train": {"executorLabel": "exec-train"},
        },
        "deploymentSpec": {
            "executors": {
                "exec-train": {"container": {"resources": {"resourceCpuRequest": "2", "resourceMemoryRequest": "1Gi"}}}
            }
        },
    }
    return yaml.dump(spec).encode()


RAW, PARAMETER, OUTPUT = {"raw": "[1, 2, 3, 4, 5]"}, {"inputParameter": "numbers"}, {"inputParameter": "unknown"}


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize(
    ("limit", "items", "at_once"),
    [(0, RAW, 5), (2, RAW, 2), (9, RAW, 5), (0, PARAMETER, 4), (3, PARAMETER, 3), (0, OUTPUT, 1), (3, OUTPUT, 3)],
)
def test_iterations_of_a_loop_overlap_as_far_as_its_parallelism_allows(limit, items, at_once, inside):
    found = run_requests(loop(limit, items, inside=inside))
    assert found == RunRequests(2.0 * at_once, 1024 * MI * at_once, at_once)
