"""The main job against a real control plane: what it tells is what happened there."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import urllib3

from tests.support.e2e import Served, platform
from tests.support.real_kubernetes import RealCluster
from tests.support.real_parts.parts import Parts
from tests.support.real_parts.perform import Extras, perform, perform_on_platform
from tests.support.real_parts.scenes import FULL_NODES, QUOTA, RESTRICTED, Scene
from tests.support.real_parts.stage import workflow_type

__all__ = ["platform"]

pytestmark = pytest.mark.timeout(600)  # on a busy machine; else half a minute each


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


@pytest.mark.soak
def test_a_platform_is_left_as_it_was(platform: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulated platform in the place of the real one."""
    monkeypatch.setenv("KUBECONFIG", platform.kubeconfig)
    assert [check for check in perform_on_platform(platform.url, tmp_path / "scene") if not check.met] == []
    for kind in ("runs", "pipelines"):
        assert urllib3.request("GET", f"{platform.url}/apis/v2beta1/{kind}").json() == {}
    left = urllib3.request("GET", f"{platform.url}/apis/v2beta1/experiments").json()["experiments"]
    assert [each["display_name"] for each in left] == ["Default"]
