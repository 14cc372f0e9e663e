"""The platforms that are measured, and the pipelines that run on them."""

from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
PIPELINE = (ROOT / "harness/targets/training.yaml").read_bytes().replace(b"enableCache: true", b"enableCache: false")
PODS_A_RUN = 7
_THOUSAND_NODES = """
pools: [{name: steps, cpu: %(cpu)s, memory: %(memory)s, initial: 1000, min: 1000, max: 1000}]
api: {qps: 1000, burst: 1000, latency: 1ms}
agent: {workers: 8}
store: {capacity: 900Ti, bytes_per_s: 1Ti}
"""
# CloudProvider as most have; the controller's client is as fast as the API server's.
COMMAND = _THOUSAND_NODES % {"cpu": 4, "memory": "16Gi"} + "controller: {qps: 500, burst: 1000, requeue_s: 2s}\n"
# The controller makes 50 pods a second, as large installations let it; the others wait.
SUBMITTED = _THOUSAND_NODES % {"cpu": 64, "memory": "256Gi"} + "controller: {qps: 50, burst: 100, requeue_s: 2s}\n"
# Pods that go on for long, and are made as fast as 1,000 requests a second to the API server let them, 600 a second.
LIVE = (
    _THOUSAND_NODES % {"cpu": 64, "memory": "256Gi"} + "controller: {qps: 2000, workers: 64, operation_s: 1ms}\n"
    "scheduler: {pod_s: 0.1ms}\nsteps: [{duration: 1h}]\n"
)


def wide(steps: int) -> bytes:
    """So many steps that do not wait for each other."""
    spec = next(yaml.safe_load_all(PIPELINE))
    tasks = spec["root"]["dag"]["tasks"]
    first = tasks["prepare"]
    spec["root"]["dag"] = {"tasks": {f"step-{k}": first | {"taskInfo": {"name": f"step-{k}"}} for k in range(steps)}}
    return yaml.safe_dump(spec).encode()
