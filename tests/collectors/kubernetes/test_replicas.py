"""Pods of the service that executes the runs: which they are, and how many workers each has."""

from pathlib import Path
from typing import Any

import pytest

from harness.collectors.journal import Journal
from harness.collectors.kubernetes.replicas import Replicas, is_replica, workers_of
from harness.model import Node, Sample
from harness.model.phases import REPLICA_WORKERS
from harness.store import RunFolder
from harness.targets.hetida import HetidaTarget
from harness.targets.kfp import KfpTarget
from harness.targets.target import RunsInService
from tests.support.manifests import at

HETIDA = HetidaTarget({}, "http://x")

NODES = {"a": Node("a", "pool", 0, 0, None, 3.86, 8e9)}


def spec(**environment: str) -> dict[str, Any]:
    return {"containers": [{"env": [{"name": name, "value": value} for name, value in environment.items()]}]}


@pytest.mark.parametrize(
    ("environment", "cores", "workers"),
    [
        ({"WEB_CONCURRENCY": "5", "MAX_WORKERS": "2"}, 8.0, 5),
        ({}, 8.0, 8),
        ({}, 1.0, 2),  # at least two
        ({}, 3.86, 4),  # allocatable of a machine with four
        ({"MAX_WORKERS": "3"}, 8.0, 3),
        ({"MAX_WORKERS": "6"}, 4.0, 4),
        ({"WORKERS_PER_CORE": "0.5"}, 8.0, 4),
        ({"WORKERS_PER_CORE": "2", "MAX_WORKERS": "10"}, 8.0, 10),
        ({"MAX_WORKERS": "1"}, None, 1),
        ({"MAX_WORKERS": "4"}, None, None),
        ({"WEB_CONCURRENCY": "many"}, None, None),
        ({"WEB_CONCURRENCY": "-3", "MAX_WORKERS": "nan"}, 4.0, 4),
    ],
)
def test_workers_follow_from_the_settings_of_the_image_and_the_machine_s_cores(environment, cores, workers):
    assert workers_of(spec(**environment), cores) == workers


@pytest.mark.parametrize("odd", [{}, {"containers": None}, {"containers": [{}]}, {"containers": [{"env": None}]}])
def test_a_pod_without_settings_has_as_many_workers_as_its_machine_cores(odd):
    assert workers_of(odd, 4.0) == 4
    assert workers_of(odd, None) is None


def test_replicas_are_known_by_name_and_only_of_a_service_that_executes():
    assert is_replica(HETIDA, "hetida-designer-runtime-7d9c-x2x4q")
    assert not is_replica(HETIDA, "hetida-designer-backend-7d9c-x2x4q")
    assert not is_replica(KfpTarget({}), "hetida-designer-runtime-7d9c-x2x4q")
    assert isinstance(HETIDA, RunsInService)


def test_workers_are_recorded_once_a_replica_runs_and_0_once_it_has_gone(tmp_path: Path):
    folder = RunFolder(tmp_path)
    replicas = Replicas(Journal(folder.recorder(), now=lambda: at(7)), HETIDA, NODES)

    def see(change: str, phase: str, name: str = "runtime-1", node: str = "a") -> None:
        status = {"status": {"phase": phase}}
        replicas.see(
            change, {"metadata": {"name": name}, "spec": {**spec(MAX_WORKERS="6"), "nodeName": node}, **status}
        )

    def recorded() -> list[tuple[str, float]]:
        samples = list(folder.records(Sample))
        assert {each.metric for each in samples} <= {REPLICA_WORKERS}
        return [(each.labels["pod"], each.value) for each in samples]

    see("ADDED", "Pending")
    see("ADDED", "Running", "backend-1")
    see("ADDED", "Running", "runtime-2", "unknown")
    assert recorded() == []
    see("MODIFIED", "Running")
    see("MODIFIED", "Running")
    assert recorded() == [("runtime-1", 4.0)]
    see("DELETED", "Running")
    see("DELETED", "Pending", "runtime-3")
    assert recorded() == [("runtime-1", 4.0), ("runtime-1", 0.0)]
