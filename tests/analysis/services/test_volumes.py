"""Whose a volume is."""

import pytest

from harness.analysis.services.volumes import volumes
from harness.detectors import diagnose
from harness.model.phases import STORE_AVAILABLE_BYTES, STORE_CAPACITY_BYTES
from tests.support.injected.loads import steady
from tests.support.timelines import GIB


def with_full(claim, **labels):
    story = steady(40)
    for second in range(0, 80, 10):
        story.sample(second, STORE_CAPACITY_BYTES, 20.0 * GIB, volume=claim, namespace="kubeflow", **labels)
        story.sample(second, STORE_AVAILABLE_BYTES, 0.0, volume=claim, namespace="kubeflow", **labels)
    return story


@pytest.mark.parametrize(
    ("claim", "labels", "of_store"),
    [
        ("seaweedfs-pvc", {}, True),
        ("data-0", {}, True),  # nothing says that it is not
        ("data-0", {"mounted_by": "minio"}, True),
        ("data-0", {"mounted_by": "notebook"}, False),
        ("data-0", {"mounted_by": "mysql"}, False),
        ("katib-mysql", {}, False),
        ("mysql-pv-claim", {}, False),
        ("artifacts", {"mounted_by": "postgres"}, False),  # what mounts it counts before its name
    ],
)
def test_a_volume_is_the_store_s_by_what_mounts_it_else_by_its_name(claim, labels, of_store, tmp_path):
    (volume,) = volumes(with_full(claim, **labels).timeline(tmp_path))
    assert volume.of_store is of_store


def test_a_full_volume_of_another_owner_is_not_a_full_store(tmp_path):
    (finding,) = diagnose(with_full("katib-mysql", mounted_by="katib-mysql").timeline(tmp_path)).findings
    assert finding.name == "db-full"
    assert finding.title.startswith("The volume katib-mysql of katib-mysql is full")
