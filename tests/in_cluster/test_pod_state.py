import pytest

from harness.in_cluster.pod_state import PodState, Step, state_of


def pod(phase="Pending", conditions=(), **load):
    statuses = [{"name": "run-folder", "state": {"running": {}}}, {"name": "load", "state": load}] if load else []
    return {"status": {"phase": phase, "conditions": list(conditions), "containerStatuses": statuses}}


UNSCHEDULED = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}


@pytest.mark.parametrize(
    ("given", "state"),
    [
        (None, PodState(Step.WAITING, "no pod yet")),
        ({}, PodState(Step.WAITING, "the pod is not started yet")),
        (pod(conditions=[UNSCHEDULED]), PodState(Step.WAITING, "Unschedulable: 0/3 nodes")),
        (pod(waiting={"reason": "ContainerCreating"}), PodState(Step.WAITING, "ContainerCreating")),
        (pod(waiting={"reason": "ErrImagePull", "message": "EOF"}), PodState(Step.WAITING, "ErrImagePull: EOF")),
        (
            pod(waiting={"reason": "ImagePullBackOff", "message": "no x"}),
            PodState(Step.STUCK, "ImagePullBackOff: no x"),
        ),
        (
            pod(waiting={"reason": "CreateContainerConfigError", "message": 'secret "s" not found'}),
            PodState(Step.STUCK, 'CreateContainerConfigError: secret "s" not found'),
        ),
        (pod("Running", running={"startedAt": "…"}), PodState(Step.RUNNING)),
        (pod("Running", terminated={"exitCode": 3, "reason": "Error"}), PodState(Step.ENDED, "", 3)),
        (pod("Running", terminated={"exitCode": 0, "reason": "Completed"}), PodState(Step.ENDED, "", 0)),
        (pod("Running", terminated={"exitCode": 137, "reason": "OOMKilled"}), PodState(Step.ENDED, "OOMKilled")),
        (
            {"status": {"phase": "Failed", "reason": "Evicted", "message": "low on memory"}},
            PodState(Step.ENDED, "Evicted: low on memory"),
        ),
        ({"status": {"phase": "Failed"}}, PodState(Step.ENDED, "the pod failed")),
    ],
)
def test_the_state_of_a_test_is_that_of_its_load_container(given, state):
    assert state_of(given) == state
