"""The live states of a test under way: what its load and its observer last wrote."""

NOW = 1_790_000_000 * 10**9
LOAD = {
    "stage": "draining", "load": "burst (open model)", "intended": 200, "sent": 200, "done": 120, "failed": 30, "rejected": 10,
    "missed": 0, "in_flight": 40, "succeeded_per_hour": 2004.0, "lag_s": 0.0012, "lag_p99_s": 0.0021, "eta_s": 75.0,
}  # fmt: skip
OBSERVED = {
    "at": NOW, "stage": "observing", "runs": {"SUCCEEDED": 120, "RUNNING": 40}, "pods": {"Running": 44}, "nodes": 13,
    "ready_nodes": 12, "store_free_bytes": {"seaweedfs-pvc": 3.0 * 2**30}, "requests": {"a": 3, "b": 4}, "last_error": "",
}  # fmt: skip
