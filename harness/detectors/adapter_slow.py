"""Executions wait for the data of their adapters longer than they compute."""

import numpy as np

from harness.analysis.services.executions import Executions, executions
from harness.analysis.timeline import Timeline, floats
from harness.analysis.timeline.curves import active, peak
from harness.detectors import lb_imbalance
from harness.detectors.detector import SERVICE, CannotJudgeError, quarters, slowed
from harness.model.findings import Evidence, Finding
from harness.model.phases import COMPUTING, LOADING, NODE_CPU_CORES, SERVICE_PROBE_SECONDS
from harness.model.units import format_duration

NAME = "adapter-slow"
NEEDS = (SERVICE,)

_SHARE = 0.3
_COMPUTING = 0.33  # of their time: with good adapters, workers that have enough to do compute more
_QUEUES = 0.1  # of all time: less does not make loading longer
_FEW = 10  # loads of a replica
_IDLE, _BUSY = 0.25, 0.75  # of the time that data moves, with the runtime's CPUs at work
_PROBED = 0.3  # of a load's time
_SURE, _UNSURE, _HARDLY = 0.85, 0.5, 0.3


def detect(timeline: Timeline) -> list[Finding]:
    """Loading takes longer than computing, and the workers seldom compute.

    Loading lasts longer where a worker does something else meanwhile. So it is looked at where it is quickest, at the
    replica whose loads take least, and at what its workers do while they have work: those that are merely overloaded
    compute for a good part of the time. Without names, some of them may just have nothing to do.

    A runtime counts as loading what it does itself to read what an adapter sent. Its CPUs tell that apart, and an
    adapter that is slow to answer even a probe; without either it may be the one or the other.
    """
    done = executions(timeline)
    whole = float(done.inside.sum())
    queued, moved = float(done.queued.sum()) / max(whole, 1e-9), float((done.loading + done.sending).sum())
    share, loading, computing = moved / max(whole, 1e-9), _loading(done), float(np.median(done.computing))
    if share < _SHARE or loading <= computing:
        return []
    busy = _computing(timeline, done) > _COMPUTING
    if queued >= _QUEUES and (busy or (not done.replicas and _unbalanced(timeline))):
        return []
    confidence, why = _guilt(timeline, done, loading)
    return [
        Finding(
            NAME,
            ("The adapters are slow: executions" if confidence == _SURE else "Executions")
            + f" spent {share:.0%} of their time loading and sending data",
            confidence,
            (*_evidence(done), why),
            "Make the adapter faster (more replicas, an index or a cache in front of its source), or bound how many "
            "executions ask it at once: a load blocks its worker while it lasts. Ask for smaller time ranges: the "
            "runtime's own reading of what it is sent counts as loading, too.",
            (),
            slowed(share + queued),
        )
    ]


def _evidence(done: Executions) -> tuple[Evidence, ...]:
    early, late = (float(np.median(each)) for each in quarters(done.loading))
    loading, computing, sending = (float(np.median(each)) for each in (done.loading, done.computing, done.sending))
    where = f"phase = {LOADING}"
    return (
        Evidence(
            f"loading took {format_duration(loading)}, sending {format_duration(sending)}, computing "
            f"{format_duration(computing)} (medians)",
            loading, "s", "spans", where,
        ),
        Evidence(
            f"loading went from {format_duration(early)} (first quarter of the executions) to "
            f"{format_duration(late)} (last)",
            late, "s", "spans", where,
        ),
    )  # fmt: skip


def _loading(done: Executions) -> float:
    """The median loading time in the later half of the test, of the replica where it is least."""
    late = np.arange(done.row.size) >= done.row.size // 2
    replicas = [late & (done.replica == k) for k in range(len(done.replicas))]
    groups = [each for each in replicas if np.count_nonzero(each) >= _FEW] or [late]
    return min(float(np.median(done.loading[each])) for each in groups)


def _computing(timeline: Timeline, done: Executions) -> float:
    """What workers computed while their replica had work for each of them, as a share of what they could have.

    A replica's workers are as many as ever computed at once; where nobody is named, the service is one replica.
    """
    home = np.full(len(timeline.runs), -1)
    home[done.row] = done.replica
    stretches = timeline.pods[timeline.of_runs(COMPUTING)]
    place = home[stretches["row"].to_numpy()]
    start, end = floats(stretches, "start_s"), floats(stretches, "end_s")
    sent, over = floats(timeline.runs, "sent_s"), floats(timeline.runs, "over_s")
    spent, offered = 0.0, 0.0
    for k in np.unique(place):
        begun, ended, came, left = start[place == k], end[place == k], sent[home == k], over[home == k]
        at = np.unique(np.concatenate((begun, ended, came, left)))
        at = at[np.isfinite(at)]
        workers = max(peak(begun, ended), 1)
        enough = active(came, left, at[:-1]) >= workers
        length = np.diff(at)[enough]
        spent += float(active(begun, ended, at[:-1])[enough] @ length)
        offered += workers * float(length.sum())
    return spent / max(offered, 1e-9)


def _unbalanced(timeline: Timeline) -> bool:
    try:
        return bool(lb_imbalance.detect(timeline))
    except CannotJudgeError:
        return False


def _guilt(timeline: Timeline, done: Executions, loading: float) -> tuple[float, Evidence]:
    """How sure it is that the adapters are slow, and not the runtime's own reading of their data; and why."""
    own = _own_work(timeline, done)
    if own is not None and (own < _IDLE or own > _BUSY):
        at = f"the nodes' CPUs were at work for {own:.0%} of the time that data moved"
        text = f"{at}: the runtime waited" if own < _IDLE else f"{at}: much of it may be the runtime's own reading"
        return _SURE if own < _IDLE else _HARDLY, Evidence(text, own, "share", "samples", f"metric = {NODE_CPU_CORES}")
    probes = timeline.metric(SERVICE_PROBE_SECONDS)
    probes = probes[probes["labels"].str.contains('"adapter ', regex=False)]
    if not len(probes):
        text = "whether the adapters or the runtime's own reading took that long was not observed"
        return _UNSURE, Evidence(text)
    probed = float(np.median(floats(probes, "value")))
    text = f"an adapter answered a request that costs it nothing within {format_duration(probed)} (median)"
    fact = Evidence(text, probed, "s", "samples", f"metric = {SERVICE_PROBE_SECONDS}")
    return _SURE if probed > _PROBED * loading else _UNSURE, fact


def _own_work(timeline: Timeline, done: Executions) -> float | None:
    """CPU-seconds of the nodes beyond those of computing, a second in which data moved; none when not observed."""
    samples = timeline.metric(NODE_CPU_CORES)
    at = floats(samples, "at_s")
    if np.unique(at).size < 2:
        return None
    used = float(floats(samples, "value").sum()) / np.unique(at).size * float(at.max() - at.min())
    moved = float((done.loading + done.sending).sum())
    return max(0.0, used - float(done.computing.sum())) / max(moved, 1e-9)
