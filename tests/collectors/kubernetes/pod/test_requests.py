import pytest

from harness.collectors.kubernetes.pod.requests import RecordedRequests, Requests, requests_of


def container(**asked: str) -> dict:
    return {"name": "c", "resources": {"requests": asked}}


def limited(name: str, cpu: str) -> dict:
    return {"name": name, "resources": {"limits": {"cpu": cpu}}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": [container(cpu="500m", memory="1Gi"), container(cpu="1")]}, Requests(1.5, 2.0**30)),
        # Init containers run one after the other, before the others.
        ({"initContainers": [container(cpu="3"), container(cpu="2")], "containers": [container(cpu="1")]}, Requests(3)),
        # A sidecar goes on beside the containers, and beside the init containers after it.
        (
            {
                "initContainers": [container(cpu="1") | {"restartPolicy": "Always"}, container(cpu="4")],
                "containers": [container(cpu="2")],
            },
            Requests(5),
        ),
        ({"containers": [container(cpu="1")], "priority": 1000}, Requests(1, priority=1000)),
        ({"containers": [container(cpu="1")], "overhead": {"cpu": "250m", "memory": "64Mi"}}, Requests(1.25, 2.0**26)),
        (
            {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "2", "cpu": "1"}}}]},
            Requests(1, 0, 2, cpu_limit=1),
        ),
        ({"containers": [{"name": "main"}]}, Requests()),
        # The limit is that of the step's container, not of those that Argo adds.
        ({"containers": [limited("wait", "100m"), limited("main", "2")]}, Requests(2.1, cpu_limit=2)),
        ({"containers": [limited("wait", "100m"), {"name": "main"}]}, Requests(0.1)),
        (
            {
                "initContainers": [container(**{"ephemeral-storage": "3Gi", "memory": "1Gi"})],
                "containers": [container(**{"ephemeral-storage": "1Gi"}), container(**{"ephemeral-storage": "500M"})],
            },
            Requests(memory=2.0**30, ephemeral=3 * 2.0**30),
        ),
    ],
)
def test_a_pod_occupies_what_the_scheduler_counts(spec, expected):
    assert requests_of(spec) == expected


def test_a_task_s_requests_are_recorded_once_and_then_only_pods_that_differ():
    recorded = RecordedRequests()
    usual, other = Requests(cpu=1.0), Requests(cpu=2.0)
    told = [
        sample.labels | {"value": sample.value}
        for pod, requests in (("a", usual), ("b", usual), ("c", other), ("c", other))
        for sample in recorded.samples("train", pod, requests, 1)
        if sample.metric == "requested_cpu_cores"
    ]
    assert told == [{"task": "train", "value": 1.0}, {"pod": "c", "value": 2.0}]
