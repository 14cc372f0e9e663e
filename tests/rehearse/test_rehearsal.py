"""The main job against a real control plane: what it tells is what happened there."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.rehearse.parts import Parts
from tests.rehearse.perform import Extras, perform
from tests.rehearse.scenes import FULL_NODES, QUOTA, RESTRICTED, Scene
from tests.rehearse.stage import workflow_type
from tests.support.real_kubernetes import RealCluster


@pytest.fixture(scope="module")
def stage(real_cluster: RealCluster) -> Iterator[RealCluster]:
    """The control plane, which knows Argo's workflows as long as these tests last."""
    if not (real_cluster.schedules and real_cluster.controls):
        pytest.skip("the folder named by KUBEBUILDER_ASSETS holds no kube-scheduler or no kube-controller-manager")
    with workflow_type(real_cluster):
        yield real_cluster


def test_full_nodes_and_killed_pods_are_told_as_they_happened(stage: RealCluster, tmp_path: Path) -> None:
    with ExitStack() as stack:
        parts = Parts(stack, tmp_path)
        extras = Extras(parts.prometheus(), parts.store())
        checks = perform(FULL_NODES, stage, tmp_path / "scene", extras)
    assert [check for check in checks if not check.met] == []


@pytest.mark.soak
@pytest.mark.parametrize("scene", [QUOTA, RESTRICTED], ids=lambda scene: scene.name)
def test_quotas_and_missing_rights_are_told(scene: Scene, stage: RealCluster, tmp_path: Path) -> None:
    assert [check for check in perform(scene, stage, tmp_path / "scene", Extras()) if not check.met] == []
