"""The object stores that KFP installs: their manifests, and their errors when the volume is full."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

_MI = 2**20


class StoreProduct(StrEnum):
    """The product that stores the artifacts."""

    SEAWEEDFS = "seaweedfs"
    MINIO = "minio"


@dataclass(frozen=True, slots=True)
class Installed:
    """A product as KFP's manifests install it.

    Attributes:
        deployment: name of the deployment and value of its pods' label ``app``.
        service: name of the service that clients connect to.
        claim: name of the volume claim.
        image: container image.
        cpu: requested thousandths of a core.
        memory: requested bytes.
        full_status: HTTP status of a write to a full volume.
        full: error text of that write.
        args: container arguments.
        secrets: environment variables of the container, with the key of the secret that each comes from.
        bounds: bounds of the request duration histogram, in seconds.
        first_byte: whether that histogram measures the time to the first byte of the response.
    """

    deployment: str
    service: str
    claim: str
    image: str
    cpu: int
    memory: int
    full_status: str
    full: str
    args: tuple[str, ...]
    secrets: Mapping[str, str]
    bounds: tuple[float, ...]
    first_byte: bool


INSTALLED: Mapping[StoreProduct, Installed] = {
    # SeaweedFS reports nothing about volumes to its clients: "no free volumes left" appears only in the filer's log
    # (github.com/seaweedfs/seaweedfs, issues 1865 and 1705).
    StoreProduct.SEAWEEDFS: Installed(
        "seaweedfs", "seaweedfs", "seaweedfs-pvc", "chrislusf/seaweedfs:4.00", 64, 256 * _MI,
        "500", "InternalError: We encountered an internal error, please try again.",
        ("server", "-dir=/data", "-s3", "-iam", "-filer", "-master.volumePreallocate=false"),
        {"accesskey": "accesskey", "secretkey": "secretkey"}, tuple(0.0001 * 2**power for power in range(24)), False,
    ),
    StoreProduct.MINIO: Installed(
        "minio", "minio-service", "minio-pvc", "gcr.io/ml-pipeline/minio:RELEASE.2019-08-14T20-37-41Z", 20, 100 * _MI,
        "507", "XMinioStorageFull: Storage backend has reached its minimum free disk threshold. "
        "Please delete a few objects to proceed.",
        ("server", "/data"), {"MINIO_ACCESS_KEY": "accesskey", "MINIO_SECRET_KEY": "secretkey"},
        (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0), True,
    ),
}  # fmt: skip
