"""The artifact store's volume is full: steps can't save their outputs, every run fails from then on."""

import re
from os.path import commonprefix

import numpy as np
import pandas as pd

from harness.analysis.services.volumes import Volume, volumes
from harness.analysis.timeline import Timeline, floats
from harness.analysis.waits.failures import Failure, failures
from harness.detectors.detector import RUNS, broke, moment
from harness.model.findings import Evidence, Finding
from harness.model.phases import STORE_AVAILABLE_BYTES, STORE_FULL, SUCCEEDED
from harness.model.units import format_bytes, format_duration

NAME = "store-full"
NEEDS = (RUNS,)

# A store that says itself that it is full: MinIO, SeaweedFS, Ceph, any file system, the HTTP status for it.
FULL = re.compile(
    r"minimum free d(?:isk|rive) threshold|XMinioStorageFull|no space left on device|disk quota exceeded|QuotaExceeded"
    r"|no (?:free|writable) volumes|not enough (?:free )?space|insufficient storage|volume .{0,40}is full",
    re.IGNORECASE,
)
# What KFP reports when it could not write, whatever the cause.
UNWRITTEN = re.compile(
    r"(?:unable|failed) to (?:write|save|upload) (?:the )?(?:outputs?|artifacts?)|waiting for the condition",
    re.IGNORECASE,
)
# What Go's dialer says, as steps and drivers pass it on: nobody answered, so nobody said that there is no room.
UNREACHED = re.compile(r"dial tcp|connection refused|no route to host|no such host", re.IGNORECASE)
# kubectl evicts five pods a second: without the selector it would spend minutes on those that are over.
DRAINING = "--ignore-daemonsets --delete-emptydir-data --pod-selector='workflows.argoproj.io/completed!=true'"
_GIB = 2**30
_UNKNOWN = 0.5  # full or out of reach
_PROBED = 0.9  # the store itself refused an object
_FEW = 4
_SIZES_GIB = (10, 20, 50, 100, 200, 400, 800, 1600, 3200, 6400, 12800)


def detect(timeline: Timeline) -> list[Finding]:
    """Failure messages, the volume's free space, and which came first."""
    full = [volume for volume in volumes(timeline) if volume.full]
    # A store that can't be reached is not full, unless its volume is: then that is why.
    said = [
        f for f in failures(timeline)
        if f.says(FULL) or (f.says(UNWRITTEN) and (full or not f.says(UNREACHED)))
    ]  # fmt: skip
    refused = _refused(timeline)
    if not said and not full and not len(refused):
        return []
    # A claim's volume can be given room; what the store says of its disks is the same space by another name.
    volume = min(full, key=lambda v: (not v.namespace, v.nearly_full_s or 0.0)) if full else _likely(volumes(timeline))
    plain = sum(f.says(FULL) for f in said)
    confidence = max(_confidence(plain, len(said), volume), _PROBED if len(refused) else 0.0)
    if confidence < 0.3:
        return []
    share = len(said) / max(len(timeline.runs), 1)
    evidence = (*_of_messages(timeline, said, share), *_of_probe(refused), *_of_volume(volume, said))
    return [
        Finding(
            NAME,
            _title(said, volume, share, known=confidence > _UNKNOWN, refused=bool(said) or len(refused) > 0),
            confidence,
            evidence,
            "Give the store's volume more room (its StorageClass must allow expansion), or keep fewer artifacts: "
            "a shorter retention, smaller outputs, or an object store outside the cluster. After the store has been "
            "restarted, renew the nodes the steps ran on: connections from old nodes are known to stay broken.",
            commands(timeline, volume),
            broke(share),
        )
    ]


def commands(timeline: Timeline, volume: Volume | None) -> tuple[str, ...]:
    """How to give the store room, as text for a shell, with the names of this cluster where they were observed."""
    namespace = (volume and volume.namespace) or timeline.namespace
    known = volume is not None and bool(volume.namespace)
    claim = volume.name if known and volume else "minio-pvc" if volume and volume.name == "minio" else "seaweedfs-pvc"
    store = claim.removesuffix("-pvc").removesuffix("-pv-claim")
    patch = f'{{"spec":{{"resources":{{"requests":{{"storage":"{_wanted_gib(timeline, volume)}Gi"}}}}}}}}'
    look = () if known else (f"kubectl get pvc,deployments -n {namespace}  # the store: seaweedfs or minio",)
    return (
        *look,
        f"kubectl scale deployment {store} -n {namespace} --replicas=0",
        f"kubectl patch pvc {claim} -n {namespace} -p '{patch}'",
        f"kubectl scale deployment {store} -n {namespace} --replicas=1",
        f"kubectl rollout status deployment {store} -n {namespace}",
        *_renewal(timeline),
    )


def _renewal(timeline: Timeline) -> tuple[str, ...]:
    """Drain the nodes that the steps ran on; the autoscaler brings new ones."""
    worked = set(timeline.pods["node"][timeline.pods["row"] >= 0])
    up = timeline.nodes["gone_s"].isna().to_numpy(dtype=bool)
    names = sorted(worked & set(timeline.nodes["name"][up]))
    if not names:
        return ()
    prefix = commonprefix(names)  # noqa: RUF071  # names, not paths: character by character is meant
    alike = {name for name in timeline.nodes["name"] if str(name).startswith(prefix)}
    if len(names) <= _FEW or alike != set(names):
        return (f"kubectl drain {' '.join(names)} {DRAINING}",)
    return (f"kubectl get nodes -o name | grep '^node/{prefix}' | xargs kubectl drain {DRAINING}",)


def _wanted_gib(timeline: Timeline, volume: Volume | None) -> int:
    """Twice what the planned runs need at the observed bytes a run, and at least twice what there is."""
    if volume is None:
        return 100
    good = int((timeline.runs["state"] == SUCCEEDED).sum())
    a_run = volume.written / good if good else 0.0
    used_before = volume.capacity - float(volume.free[0])
    need = max(2 * volume.capacity, used_before + 2 * a_run * max(timeline.plan.intended, 1)) / _GIB
    return next((size for size in _SIZES_GIB if size >= need), int(np.ceil(need)))


def _likely(watched: list[Volume]) -> Volume | None:
    named = [v for v in watched if re.search(r"seaweed|minio|artifact|store", v.name)]
    return named[0] if named else None


def _confidence(plain: int, said: int, volume: Volume | None) -> float:
    if volume is not None and volume.full:
        return 0.98 if said else 0.6
    if plain:
        return 0.9 if volume is None else 0.7
    # KFP's own words alone fit a store that can't be reached as well; a volume with room speaks for that.
    return _UNKNOWN if volume is None else 0.1


def _title(said: list[Failure], volume: Volume | None, share: float, *, known: bool, refused: bool) -> str:
    if not known:
        return f"Outputs can't be written: the artifact store is full, or out of reach; {share:.0%} of the runs failed"
    what = "The artifact store ran out of space" if refused else "The artifact store is nearly full"
    what += f" ({volume.name})" if volume else ""
    return f"{what}: {share:.0%} of the runs failed because of it" if said else what


def _of_messages(timeline: Timeline, said: list[Failure], share: float) -> tuple[Evidence, ...]:
    if not said:
        return ()
    bad = max(len(failures(timeline)), 1)
    example = next((t for f in said for t in f.texts if FULL.search(t)), said[0].texts[0])
    return (
        Evidence(
            f"{len(said):,} of {bad:,} failed runs say that outputs could not be written: “{_short(example)}”",
            float(len(said)), "runs", "events", "kind = Run and reason = FAILED",
        ),
        Evidence(f"{share:.1%} of all runs failed this way", share, "share", "events", "kind = Run"),
    )  # fmt: skip


def _refused(timeline: Timeline) -> pd.DataFrame:
    """What the store answered when a write of our own found no room."""
    events = timeline.events
    return events[((events["kind"] == "ObjectStore") & (events["reason"] == STORE_FULL)).to_numpy(dtype=bool)]


def _of_probe(refused: pd.DataFrame) -> tuple[Evidence, ...]:
    if not len(refused):
        return ()
    first_s, answer = float(floats(refused, "at_s")[0]), str(refused["message"].iat[0])
    return (
        Evidence(
            f"an object of 4 KiB was refused {moment(first_s)}: “{_short(answer)}”",
            first_s, "s", "events", f"kind = ObjectStore and reason = {STORE_FULL}",
        ),
    )  # fmt: skip


def _of_volume(volume: Volume | None, said: list[Failure]) -> tuple[Evidence, ...]:
    if volume is None:
        return (Evidence("the volume's free space was not observed; the messages alone speak for it"),)
    where = f"metric = {STORE_AVAILABLE_BYTES} and volume = {volume.name}"
    room = f"{format_bytes(volume.least)} of {format_bytes(volume.capacity)}"
    facts = [Evidence(f"free space on {volume.name} fell to {room}", volume.least, "B", "samples", where)]
    if volume.nearly_full_s is not None and said:
        before = said[0].at_s - volume.nearly_full_s
        order = "before" if before >= 0 else "after"
        facts.append(
            Evidence(
                f"it was full {moment(volume.nearly_full_s)}, "
                f"{format_duration(abs(before))} {order} the first such failure",
                volume.nearly_full_s, "s", "samples", where,
            )
        )  # fmt: skip
    return tuple(facts)


def _short(text: str, most: int = 220) -> str:
    one_line = " ".join(text.split())
    return one_line if len(one_line) <= most else one_line[: most - 1] + "…"
