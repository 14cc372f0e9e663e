"""Pulls of images, which no series shows: the first pods with an image on a node start later than others by them."""

from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any, NamedTuple

from harness.model.units import timestamp

_PULLED_S = 2.0  # shorter pulls can't be told from stamps in whole seconds

Manifest = dict[str, Any]


class Start(NamedTuple):
    """When a pod with an image was placed on its node, and when its step started, UTC s."""

    scheduled: float
    started: float
    node: str
    image: str
    uid: str

    @property
    def length_s(self) -> float:
        """From one to the other."""
        return self.started - self.scheduled

    def pull(self, ended: float) -> tuple[Manifest, Manifest]:
        """The kubelet's events about it."""
        about = {"involvedObject": {"uid": self.uid}, "metadata": {}}
        first, last = timestamp(self.scheduled), timestamp(ended)
        return (
            {**about, "reason": "Pulling", "message": f'Pulling image "{self.image}"', "firstTimestamp": first},
            {**about, "reason": "Pulled", "message": f'Successfully pulled image "{self.image}"',
             "firstTimestamp": last, "lastTimestamp": last},
        )  # fmt: skip


def inferred_pulls(found: Iterable[Start]) -> Mapping[str, tuple[Manifest, Manifest]]:
    """The kubelet's events of pulls, by the uids of pods: by how much a pod's start took longer than usual.

    Only of pods that were placed on a node before the first one with that image had started there, and until then: what
    they wait for afterwards is something else.
    """
    starts = sorted(found)
    there: dict[tuple[str, str], float] = {}
    for start in starts:
        key = start.node, start.image
        there[key] = min(there.get(key, start.started), start.started)
    warm = [each.length_s for each in starts if each.scheduled > there[each.node, each.image]]
    usual_s = median(warm) if warm else min((each.length_s for each in starts), default=0.0)
    ends = {each: there[each.node, each.image] - usual_s for each in starts}
    return {each.uid: each.pull(ended) for each, ended in ends.items() if ended - each.scheduled > _PULLED_S}
