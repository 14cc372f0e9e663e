"""The object stores that KFP installs: what a cluster shows of each, and what each says when it has no room."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

_MI = 2**20


class StoreProduct(StrEnum):
    """Which object store holds the artifacts."""

    SEAWEEDFS = "seaweedfs"
    MINIO = "minio"


@dataclass(frozen=True, slots=True)
class Installed:
    """A product as KFP's manifests install it.

    Attributes:
        deployment: its name, also that of its pods' label ``app``.
        service: what clients connect to.
        claim: of its volume.
        image: of its container.
        cpu: thousandths of a core that it requests.
        memory: bytes that it requests.
        full_status: the HTTP status of a write that finds no room.
        full: the error of that write.
        args: of its container.
        secrets: environment variables of its container, by the keys of the secret they come from.
        bounds: of the histogram of its requests' durations, in seconds.
        first_byte: that histogram is of the time to the first byte of the answer, not to the last.
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
    # SeaweedFS tells its clients nothing of volumes: "no free volumes left" stands in the filer's log alone
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
