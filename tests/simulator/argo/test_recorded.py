"""Workflows that a real Argo 4.0.8 carried out, carried out by the simulated one: the same nodes with the same ends."""

import re

import pytest

from harness.simulator.engine.distributions import fixed
from harness.simulator.kube_objects.workflows import COMBINED
from harness.simulator.profile import Step
from tests.support.argo_platform import WORK, ArgoPlatform, nodes_of, recorded

# The controller of these had none of KFP's defaults.
PLAIN = [
    "bad-template", "dag-mixed-depends", "plain-dag", "plain-deadline", "plain-deadline-template", "plain-mutex-1",
    "plain-on-exit", "plain-one-fails", "plain-one-pod", "plain-parallelism", "plain-retry", "plain-semaphore-template",
    "plain-semaphore-wf-1", "plain-steps", "plain-with-items",
]  # fmt: skip
WITH_DEFAULTS = [
    "on-exit-fail", "one-pod", "pod-gc", "quota", "retry", "steps", "suspend-step", "template-parallelism", "ttl",
    "with-param",
]  # fmt: skip


def steps_of(workflow):
    """What the containers were told to do: the profile's steps by the names of the tasks."""
    templates = workflow["spec"]["templates"]
    for template in templates:
        text = " ".join((template.get("container") or {}).get("args") or ())
        tasks = [template["name"]]
        for other in templates:
            calls = [*((other.get("dag") or {}).get("tasks") or ()), *(s for g in other.get("steps") or () for s in g)]
            tasks += [each["name"] for each in calls if each["template"] == template["name"]]
        sleeps = re.search(r"SLEEP_(\d+)", text)
        takes = float(sleeps[1]) if sleeps else 5.0
        failing = 1.0 if "FAIL_ME" in text else 0.0
        yield from (Step(match=task, duration=fixed(takes), failing=failing, **WORK) for task in tasks)


def relations(workflow):
    """What follows each node, the last nodes of each group, and how far each got, by the node's name."""
    nodes = workflow["status"].get("nodes") or {}
    return {
        node["name"]: (
            *(sorted(nodes[each]["name"] for each in node.get(key, ())) for key in ("children", "outboundNodes")),
            node.get("progress"), node.get("outputs", {}).get("exitCode"),
        )
        for node in nodes.values()
    }  # fmt: skip


def told(event):
    """An event without the step's own words. Whether the controller saw the step run before its end, is by chance."""
    text = event.replace(": the step says FAIL_ME", "").replace(COMBINED, "")
    return text.removesuffix(": main: Error (exit code 1)") if "WorkflowNodeRunning" in text else text


def carried_out(name, **controller):
    workflow = recorded(name)
    platform = ArgoPlatform(*steps_of(workflow), controller=controller)
    platform.create("ConfigMap", "my-semaphore", data={"one": "1", "tmpl": "1"})
    platform.create("Workflow", name, spec=workflow["spec"])
    platform.run(19.0 if name == "ttl" else 300.0)
    return workflow, platform.get(name), platform.events(name)


@pytest.mark.parametrize(("name", "retries"), [*((name, 0) for name in PLAIN), *((name, 2) for name in WITH_DEFAULTS)])
def test_a_recorded_workflow_ends_with_the_same_nodes(name, retries):
    real, ours, events = carried_out(name, error_retries=retries)
    assert nodes_of(ours) == nodes_of(real)
    assert relations(ours) == relations(real)
    said = real["status"].get("message", "").replace(": the step says FAIL_ME", "")
    assert (ours["status"]["phase"], ours["status"].get("message", "")) == (real["status"]["phase"], said)
    labels = {key: value for key, value in real["metadata"]["labels"].items() if key != "facts"}
    assert ours["metadata"]["labels"] == labels
    assert name == "ttl" or events == sorted(map(told, real["events"]))  # the events of that one are to come


@pytest.mark.parametrize("how", ["Terminate", "Stop"])
def test_a_workflow_that_is_shut_down_ends_as_recorded(how):
    real = recorded(f"plain-{how.lower()}")
    platform = ArgoPlatform(*steps_of(real))
    platform.create("Workflow", real["metadata"]["name"], spec=real["spec"])
    platform.run(20.0)
    platform.shut_down(real["metadata"]["name"], how)
    platform.run(100.0)
    ours = platform.get(real["metadata"]["name"])
    assert nodes_of(ours) == nodes_of(real)
    assert ours["status"]["message"] == real["status"]["message"]


@pytest.mark.parametrize("kind", ["semaphore-wf", "mutex"])
def test_a_workflow_that_waits_for_a_lock_says_so_as_recorded(kind):
    platform = ArgoPlatform(Step(duration=fixed(25.0), **WORK))
    platform.create("ConfigMap", "my-semaphore", data={"one": "1"})
    for number in (1, 2):
        platform.create("Workflow", f"plain-{kind}-{number}", spec=recorded(f"plain-{kind}-{number}")["spec"])
    platform.run(10.0)
    lock = "kubeflow/Mutex/shared" if kind == "mutex" else "kubeflow/ConfigMap/my-semaphore/one"
    waiting = platform.get(f"plain-{kind}-2")["status"]
    assert (waiting["phase"], waiting["message"]) == ("Pending", f"Waiting for {lock} lock. Lock status: 0/1")
    platform.run(40.0)
    assert platform.get(f"plain-{kind}-1")["status"]["phase"] == "Succeeded"
    assert platform.get(f"plain-{kind}-2")["status"]["phase"] == "Running"
    platform.run(80.0)
    assert platform.get(f"plain-{kind}-2")["status"]["phase"] == "Succeeded"


@pytest.mark.parametrize("limit", ["parallelism", "namespace_parallelism"])
def test_workflows_beyond_the_controllers_limits_are_postponed_as_recorded(limit):
    platform, real = ArgoPlatform(controller={limit: 1}), recorded("plain-controller-parallelism-2")
    for number in (1, 2):
        platform.create("Workflow", f"w{number}", spec=real["spec"])
    platform.run(3.0)
    held = platform.get("w2")
    assert held["status"] == real["held"]["status"]
    own = {key: value for key, value in real["held"]["metadata"]["labels"].items() if key != "facts"}
    assert held["metadata"]["labels"] == own
    assert "annotations" not in real["held"]["metadata"].keys() | held["metadata"].keys()
    platform.run(8.0)
    going = platform.get("w2")
    assert going["status"]["phase"] == "Running"
    assert "annotations" not in real["running"]["metadata"].keys() | going["metadata"].keys()
    platform.run(30.0)
    assert platform.get("w2")["status"]["phase"] == "Succeeded"


def test_each_namespace_has_places_of_its_own():
    platform, spec = ArgoPlatform(controller={"namespace_parallelism": 1}), recorded("plain-one-pod")["spec"]
    for namespace in ("kubeflow", "default"):
        for number in (1, 2):
            platform.create("Workflow", f"w{number}", namespace=namespace, spec=spec)
    platform.run(3.0)
    running = {
        (namespace, name)
        for namespace in ("kubeflow", "default")
        for name in ("w1", "w2")
        if platform.get(name, namespace=namespace)["status"]["phase"] == "Running"
    }
    assert running == {("kubeflow", "w1"), ("default", "w1")}


def test_a_finished_workflow_is_removed_after_its_time_to_live():
    platform = ArgoPlatform()
    platform.create("Workflow", "ttl", spec=recorded("ttl")["spec"])
    platform.run(20.0)
    assert platform.get("ttl")["status"]["phase"] == "Succeeded"
    platform.run(40.0)
    assert platform.names() == []


@pytest.mark.parametrize(
    ("name", "retries", "pods", "updates", "events"),
    [("one-pod", 2, 1, 2, 6), ("plain-one-pod", 0, 1, 2, 4), ("plain-steps", 0, 3, 3, 14), ("plain-dag", 0, 4, 4, 12)],
)
def test_a_workflow_costs_the_controller_the_recorded_requests(name, retries, pods, updates, events):
    workflow = recorded(name)
    platform = ArgoPlatform(
        *steps_of(workflow), controller={"error_retries": retries, "requeue_s": 10.0, "settle_s": 1.0, "argo": "4.0"}
    )
    platform.create("Workflow", name, spec=workflow["spec"])
    platform.run(200.0)
    client = platform.platform.controller.client
    assert client.counts == {
        "configmaps get": 1, "pods create": pods, "workflows update": updates,
        "workflowtaskresults deletecollection": 1,
    }  # fmt: skip
    assert client.events.sent == events
