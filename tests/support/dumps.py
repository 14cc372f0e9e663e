"""What files to import hold: a node, a listing of runs and a range of Prometheus."""

from tests.support.manifests import RUN, time

NODE = {
    "kind": "Node",
    "metadata": {"name": "n1", "creationTimestamp": time(-60), "labels": {"cloud.google.com/gke-nodepool": "cpu"}},
    "status": {
        "allocatable": {"cpu": "3920m", "memory": "12Gi", "pods": "64", "nvidia.com/gpu": "2"},
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": time(-30)}],
    },
}
LISTING = {
    "runs": [
        {
            "run_id": RUN, "display_name": "7-plant", "state": "SUCCEEDED", "created_at": time(-2), "finished_at": time(33),
            "experiment_id": "e",
        },
        {"run_id": "other", "display_name": "8-plant", "state": "RUNNING", "created_at": time(5), "finished_at": "1970-01-01T00:00:00Z"},
    ],
    "total_size": 2,
}  # fmt: skip
RANGE = {
    "status": "success",
    "data": {
        "resultType": "matrix",
        "result": [
            {
                "metric": {"phase": "Pending"},
                "values": [[1_795_255_200, "3"], [1_795_255_215.5, "NaN"], [1_795_255_230, "4"]],
            }
        ],
    },
}
