"""Each sample of metrics-server is recorded once, and of pods that it shows no longer nothing is kept."""

import threading
from pathlib import Path
from typing import Any

from harness.collectors.collector import ObserverSettings
from harness.collectors.journal import Journal
from harness.collectors.kubernetes.metrics_server import MetricsServer
from harness.model import Sample
from harness.model.phases import POD_CPU_CORES
from harness.plan.plans import plan_observation
from harness.store import RunFolder
from harness.targets.kfp import KfpTarget
from tests.support.observations import observation
from tests.support.servers import Served, kubeconfig


def usage(name: str, second: int) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "kubeflow"}, "timestamp": f"2026-11-28T00:00:{second:02}Z",
        "containers": [{"usage": {"cpu": "100m", "memory": "10Mi"}}],
    }  # fmt: skip


def test_a_sample_is_recorded_once_and_pods_that_are_gone_are_forgotten(tmp_path: Path) -> None:
    """What is forgotten would be recorded again if it came back."""
    looks = [[("a", 1), ("b", 1)], [("a", 1), ("b", 2)], [("b", 2), ("c", 3)], [("a", 1), ("b", 2)]]
    stop = threading.Event()

    def answer(path: str, _: dict[str, str]) -> tuple[int, Any]:
        items = [usage(*each) for each in looks.pop(0)] if path.endswith("/pods") else []
        if len(looks) == 1:  # it looks once more when it is stopped
            stop.set()
        return 200, {"items": items}

    folder = RunFolder.create(tmp_path, "r")
    with Served(answer) as cluster, folder.recorder() as recorder:
        plan = plan_observation("kfp", "", {}, 0)
        settings = ObserverSettings(
            host="", kubeconfig=kubeconfig(tmp_path / "config", cluster.url), resources_every_s=0.0
        )
        MetricsServer(
            observation(folder, Journal(recorder), plan=plan, target=KfpTarget(plan.target_options), settings=settings)
        ).collect(stop)  # fmt: skip
    recorded = [each.labels["pod"] for each in folder.records(Sample) if each.metric == POD_CPU_CORES]
    assert recorded == ["a", "b", "b", "c", "a"]
