"""The volumes of the platform, the artifact store's among them: free space over time."""

import re
from dataclasses import dataclass

import numpy as np
import orjson

from harness.analysis.timeline import Bools, Floats, Timeline, floats
from harness.model.phases import STORE_AVAILABLE_BYTES, STORE_CAPACITY_BYTES

# A volume with less than this share free counts as full: file systems and stores keep a reserve.
_MAX_SHARE_FREE = 0.02
# In the names of claims, and of the pods that mount them.
_OF_STORES = re.compile(r"seaweed|minio|artifact|ceph|ozone|rustfs|garage|s3|object", re.IGNORECASE)
_OF_OTHERS = re.compile(
    r"sql|maria|postgres|(?:^|[-_.])p?(?:db|gdata)(?:$|[-_.])|katib|prometheus|grafana|loki|etcd|redis|elastic|mongo",
    re.IGNORECASE,
)
# Of the platform itself; Katib's holds experiments, not runs.
_OF_DATABASES = re.compile(r"^(?!.*katib).*(?:sql|maria|postgres|(?:^|[-_.])db(?:$|[-_.]))", re.IGNORECASE)


@dataclass(frozen=True, slots=True, eq=False)
class Volume:
    """Free space of one volume.

    Attributes:
        name: of the persistent volume claim.
        namespace: of the claim; "" when it is not known.
        mounted_by: what mounts it: the pod's application label or name; "" when it is not known.
        capacity: bytes.
        at_s: when its free space was read.
        free: bytes free at those instants.
    """

    name: str
    namespace: str
    mounted_by: str
    capacity: float
    at_s: Floats
    free: Floats

    @property
    def of_store(self) -> bool:
        """Whether it may be the artifact store's: what mounts it says so, or else its name does not deny it."""
        for name in (self.mounted_by, self.name):
            if _OF_STORES.search(name) or _OF_OTHERS.search(name):
                return bool(_OF_STORES.search(name))
        return not self.mounted_by

    @property
    def of_database(self) -> bool:
        """Whether it may be that of the platform's database."""
        return bool(_OF_DATABASES.search(self.mounted_by or self.name))

    @property
    def room(self) -> float:
        """Bytes that could still be written when it was last read, before it counted as full."""
        return max(0.0, float(self.free[-1]) - _MAX_SHARE_FREE * self.capacity)

    @property
    def least(self) -> float:
        """The minimum of the free bytes."""
        return float(self.free.min())

    @property
    def written(self) -> float:
        """Bytes by which its use grew."""
        return float(self.free[0] - self.free.min())

    @property
    def _low(self) -> Bools:
        return np.asarray(self.free <= _MAX_SHARE_FREE * self.capacity)

    @property
    def nearly_full_s(self) -> float | None:
        """When it was first full, seconds after t0; none when it never was."""
        low = np.flatnonzero(self._low)
        return float(self.at_s[low[0]]) if low.size else None

    @property
    def roomy_until_s(self) -> float:
        """When it was last known not to be full before it first was; -inf if it was from the beginning."""
        before = self.at_s[: np.flatnonzero(self._low)[0]] if self._low.any() else self.at_s
        return float(before[-1]) if before.size else -np.inf

    @property
    def full(self) -> bool:
        """It ran out of space during the observation."""
        return self.nearly_full_s is not None


def volumes(timeline: Timeline) -> list[Volume]:
    """The volumes with recorded free space, by labels."""
    free = timeline.metric(STORE_AVAILABLE_BYTES)
    whole = timeline.metric(STORE_CAPACITY_BYTES)
    capacities = dict(zip(whole["labels"], whole["value"], strict=True))  # the last one counts
    found = []
    for text, samples in free.groupby("labels", sort=True):
        labels = orjson.loads(str(text))
        at, value = floats(samples, "at_s"), floats(samples, "value")
        capacity = float(capacities.get(text, value.max()))
        if capacity <= 0:
            continue
        name, namespace, mounted_by = (str(labels.get(key, "")) for key in ("volume", "namespace", "mounted_by"))
        found.append(Volume(name, namespace, mounted_by, capacity, at, value))
    return found
