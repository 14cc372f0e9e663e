"""The artifact store's volume is full: steps can't save their outputs, and every run fails from then on."""

import re
from os.path import commonprefix

import numpy as np
import pandas as pd

from harness.analysis.services.volumes import Volume, volumes
from harness.analysis.timeline import Timeline, floats
from harness.analysis.waits.failures import Failure, failures
from harness.analysis.waits.stated import failed_for, failures_for, words_of
from harness.detectors.detector import DRAIN_OPTIONS, CannotJudgeError, Capability, broke, moment, shell_word
from harness.detectors.error_texts import require_reasons
from harness.detectors.stores.store_failures import UNREAD, bare, share_of_runs, short
from harness.model import Evidence, Finding, format_bytes, format_duration
from harness.model.phases import STORE_AVAILABLE_BYTES, SUCCEEDED
from harness.model.phases import STORE_FULL as STORE_FULL_REASON

NAME = "store-full"
NEEDS = (Capability.RUNS,)
USES = {
    Capability.STORE: "the free space: error messages are the only evidence",
    Capability.LOGS: "the error that the store returned",
    Capability.STORE_REQUESTS: "the store's answer to a probe",
}

_GIB = 2**30
_MIN_CONFIDENCE = 0.3  # below it, other detectors' findings of the same errors are likelier
_AMBIGUOUS = 0.5  # full or unreachable, or another error
# Rows of the catalogue: writes that failed, and what a full store may answer as well.
_UNWRITTEN = ("store-write-error", "store-unwritten")
_AS_WELL = ("store-unreachable", "store-error", "store-node-missing")
_PROBED = 0.9  # the store rejected the observer's own object
_FEW_NODES = 4  # nodes that a command names one by one
_SIZES_GIB = (10, 20, 50, 100, 200, 400, 800, 1600, 3200, 6400, 12800)


def detect(timeline: Timeline) -> list[Finding]:
    """Failure messages, the volume's free space, the store's answer to a probe, and which came first."""
    watched = [volume for volume in volumes(timeline) if volume.of_store]
    full = [volume for volume in watched if volume.full]
    # A store that was not reached counts as full only if its volume is.
    said = (NAME, *_UNWRITTEN, *(_AS_WELL if full else ()))
    failed = failures_for(timeline, *said) or _after(full, bare(timeline))
    rejected = timeline.events_of("ObjectStore", STORE_FULL_REASON)  # no space for the observer's own object
    if not failed and not full and not len(rejected):
        if not watched:
            require_reasons(timeline)
            if len(bare(timeline)) == len(failures(timeline)) > 0:
                raise CannotJudgeError(f"{UNREAD}; and the free space of the store's volume was not observed")
        return []
    # A claim's volume can be expanded; the store's own disk metrics describe the same space under another name.
    volume = min(full, key=lambda v: (not v.namespace, v.nearly_full_s or 0.0)) if full else _likely(watched)
    explicit, answered = (bool(failed_for(timeline, name)) for name in (NAME, _UNWRITTEN[0]))
    sure = _confidence(volume, failed=bool(failed), explicit=explicit, answered=answered)
    confidence = max(sure, _PROBED if len(rejected) else 0.0)
    if confidence < _MIN_CONFIDENCE:
        return []
    share = share_of_runs(timeline, failed)
    evidence = (*_of_messages(timeline, failed, share), *_of_probe(rejected), *_of_volume(volume, failed))
    return [
        Finding(
            NAME,
            _title(failed, volume, share, rejected=bool(failed) or len(rejected) > 0)
            if confidence > _AMBIGUOUS
            else f"Outputs can't be written: the artifact store is full or {'fails' if answered else 'unreachable'}; "
            f"{share:.0%} of the runs failed",
            confidence,
            evidence,
            "Expand the store's volume (its StorageClass must allow expansion), or keep fewer artifacts: a shorter "
            "retention, smaller outputs, or an object store outside the cluster. After a restart of the store, replace "
            "the nodes the steps ran on: connections from old nodes are known to stay broken.",
            # On a guess, nothing is scaled, resized or drained.
            commands(timeline, volume) if full or explicit or len(rejected) else _looks(timeline),
            broke(share),
        )
    ]


def _after(full: list[Volume], silent: list[Failure]) -> list[Failure]:
    """The failures without a reason, if all of them came once a volume was nearly full."""
    since = min((v.roomy_until_s for v in full), default=np.inf)
    return silent if silent and all(f.at_s >= since for f in silent) else []


def commands(timeline: Timeline, volume: Volume | None) -> tuple[str, ...]:
    """Shell commands that expand the store's volume, with the names of this cluster where they were observed."""
    namespace = shell_word(volume.namespace) if volume and volume.namespace else timeline.namespace
    known = volume is not None and bool(volume.namespace)
    claim = volume.name if known and volume else "minio-pvc" if volume and volume.name == "minio" else "seaweedfs-pvc"
    store = shell_word(claim.removesuffix("-pvc").removesuffix("-pv-claim"))
    patch = f'{{"spec":{{"resources":{{"requests":{{"storage":"{_wanted_gib(timeline, volume)}Gi"}}}}}}}}'
    look = () if known else (f"kubectl get pvc,deployments -n {namespace}  # find the store: seaweedfs or minio",)
    return (
        *look,
        f"kubectl scale deployment {store} -n {namespace} --replicas=0",
        f"kubectl patch pvc {shell_word(claim)} -n {namespace} -p '{patch}'",
        f"kubectl scale deployment {store} -n {namespace} --replicas=1",
        f"kubectl rollout status deployment {store} -n {namespace}",
        *_replacement(timeline),
    )


def _looks(timeline: Timeline) -> tuple[str, ...]:
    """Commands that show the store, and change nothing."""
    return (
        f"kubectl get pvc,pods -n {timeline.namespace}",
        f"kubectl get events -n {timeline.namespace} --field-selector type=Warning",
    )


def _replacement(timeline: Timeline) -> tuple[str, ...]:
    """Drain the nodes that the steps ran on; the autoscaler adds new ones."""
    worked = set(timeline.pods["node"][timeline.pods["row"] >= 0])
    up = timeline.nodes["gone_s"].isna().to_numpy(dtype=bool)
    names = sorted(worked & set(timeline.nodes["name"][up]))
    if not names:
        return ()
    prefix = commonprefix(names)  # noqa: RUF071  # names, not paths: character by character
    alike = {name for name in timeline.nodes["name"] if str(name).startswith(prefix)}
    if len(names) <= _FEW_NODES or alike != set(names):
        return (f"kubectl drain {' '.join(map(shell_word, names))} {DRAIN_OPTIONS}",)
    return (f"kubectl get nodes -o name | grep {shell_word(f'^node/{prefix}')} | xargs kubectl drain {DRAIN_OPTIONS}",)


def _wanted_gib(timeline: Timeline, volume: Volume | None) -> int:
    """Twice what the planned runs need at the observed bytes per run, and at least twice the present capacity."""
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


def _confidence(volume: Volume | None, *, failed: bool, explicit: bool, answered: bool) -> float:
    if volume is not None and volume.full:
        return 0.98 if failed else 0.6
    if explicit:
        return 0.9 if volume is None else 0.7
    if answered:
        return _AMBIGUOUS  # by an error that says nothing of space; an object may be larger than what is free
    # The client's own message fits an unreachable store as well; a volume with free space makes that likelier.
    return _AMBIGUOUS if volume is None else 0.1


def _title(failed: list[Failure], volume: Volume | None, share: float, *, rejected: bool) -> str:
    problem = "The artifact store ran out of space" if rejected else "The artifact store is nearly full"
    problem += f" ({volume.name})" if volume else ""
    return f"{problem}: {share:.0%} of the runs failed because of it" if failed else problem


def _of_messages(timeline: Timeline, failed: list[Failure], share: float) -> tuple[Evidence, ...]:
    if not failed:
        return ()
    total = max(len(failures(timeline)), 1)
    assumed = round(share * len(timeline.runs)) - len({f.row for f in failed})
    counting = f", counting {assumed:,} whose logs were not read" if assumed else ""
    example = words_of(timeline, NAME, *_UNWRITTEN, *_AS_WELL, "step-failed")
    return (
        Evidence(
            f"{len(failed):,} of {total:,} failed runs could not write their outputs: “{short(example)}”",
            float(len(failed)), "runs", "events", "kind = Run and reason = FAILED",
        ),
        Evidence(f"{share:.1%} of all runs failed this way{counting}", share, "share", "events", "kind = Run"),
    )  # fmt: skip


def _of_probe(rejected: pd.DataFrame) -> tuple[Evidence, ...]:
    if not len(rejected):
        return ()
    first_s, answer = float(floats(rejected, "at_s")[0]), str(rejected["message"].iat[0])
    return (
        Evidence(
            f"the store rejected a 4 KiB object {moment(first_s)}: “{short(answer)}”",
            first_s, "s", "events", f"kind = ObjectStore and reason = {STORE_FULL_REASON}",
        ),
    )  # fmt: skip


def _of_volume(volume: Volume | None, failed: list[Failure]) -> tuple[Evidence, ...]:
    if volume is None:
        return (Evidence("the volume's free space was not observed: error messages are the only evidence"),)
    where = f"metric = {STORE_AVAILABLE_BYTES} and volume = {volume.name}"
    free = f"{format_bytes(volume.least)} of {format_bytes(volume.capacity)}"
    facts = [Evidence(f"free space on {volume.name} fell to {free}", volume.least, "B", "samples", where)]
    if volume.nearly_full_s is not None and failed:
        before = failed[0].at_s - volume.nearly_full_s
        order = "before" if before >= 0 else "after"
        facts.append(
            Evidence(
                f"it was full {moment(volume.nearly_full_s)}, "
                f"{format_duration(abs(before))} {order} the first such failure",
                volume.nearly_full_s, "s", "samples", where,
            )
        )  # fmt: skip
    return tuple(facts)
