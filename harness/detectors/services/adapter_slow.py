"""Executions wait longer for data from adapters than they compute."""

from collections.abc import Iterator

import numpy as np

from harness.analysis.services.contention import contention
from harness.analysis.services.executions import Executions, executions
from harness.analysis.services.onset import Onset, onset
from harness.analysis.services.replay import Replay, replay
from harness.analysis.services.saturation import Saturation, saturation
from harness.analysis.timeline import Timeline, floats
from harness.analysis.waits.waits import waits
from harness.detectors.detector import CannotJudgeError, Capability, by_chance, format_duration, quarters, slowed
from harness.detectors.services.replicas import LEAST_EXECUTIONS, uneven, unnamed_tail
from harness.model.findings import Evidence, Finding
from harness.model.phases import LOADING, NODE_CPU_CORES, SERVICE_PROBE_SECONDS

NAME = "adapter-slow"
NEEDS = (Capability.EXECUTIONS,)
USES = {Capability.NODE_CPU: "the difference between slow adapters and the runtime's own parsing"}
OVERSTATED_EARLY = True  # the first executions find idle workers: most of their time is loading

_MIN_SHARE_OF_TIME = 0.3  # of the executions' time, for loads that queues may prolong as well
_MIN_SHARE_AFTER_RISE = 0.2  # of the time is enough where loading became slow while nothing else prolonged it
_MIN_COMPUTING = 0.33  # of the workers' time: with fast adapters, fully loaded workers compute more than that
_MIN_QUEUED = 0.1  # of all time: shorter queues do not prolong loading
_MIN_SHARE_UNDISTURBED = 0.35  # of all time, where no execution waits for a worker: nothing else prolongs loads
_MAX_MOVING = 0.4  # of all time spent moving data: whatever else there is, it takes that long
_MIN_GAIN = 0.5  # of all time would be saved without loads: worth naming in addition to overloaded workers
_CERTAIN_SHARE = 0.8  # of what is saved: how long loads take where others interrupt them is an upper bound
_MAX_WAITING = 0.05  # of all time spent waiting for workers: other executions do not prolong loads
_MIN_GROWTH, _MAX_CHANCE = 2.0, 1e-3  # times as long as before, and how often that is by chance
_MIN_LOADS = 10  # loads of a replica
_MAX_IDLE, _MIN_BUSY = 0.25, 0.75  # share of the data transfer time in which the runtime's CPUs work
_MIN_SHARE_PROBED = 0.3  # of a load's time
_CONFIDENCE, _CONFIDENCE_UNPROBED, _CONFIDENCE_IF_OVERLOADED, _CONFIDENCE_IF_PARSING = 0.85, 0.6, 0.4, 0.3


def detect(timeline: Timeline) -> list[Finding]:
    """Loading takes longer than computing, or much of all time; or it became slow while none waited.

    Loading also takes longer when a worker does other work meanwhile. So the replica with the shortest loads counts,
    and what its workers do while they have work: workers that are merely overloaded compute for much of the time.
    Where replicas are not named and the work was spread unevenly, some workers may simply have been idle. In both cases
    faster loads are only a second remedy, named where they would save half of the time.

    The loading phase includes the runtime's own parsing of what an adapter sent. The nodes' CPU usage separates the
    two, and so does an adapter that is slow to answer even a probe; without either, both remain possible.
    """
    done = executions(timeline)
    if done.row.size < LEAST_EXECUTIONS:
        raise CannotJudgeError(f"fewer than {LEAST_EXECUTIONS} executions reported their phases")
    whole = max(float(done.inside.sum()), 1e-9)
    queued, share = float(done.queued.sum()) / whole, float((done.loading + done.sending).sum()) / whole
    loading, computing = _loading(done), float(np.median(done.computing))
    workers = saturation(timeline)
    computed = float(done.computing.sum()) / max(float(waits(timeline).total.sum()), 1e-9)
    undisturbed = workers.waiting < _MAX_WAITING
    plain = share >= _MIN_SHARE_UNDISTURBED and (undisturbed or not workers.measured)
    grew = _rise(done) if undisturbed and share >= _MIN_SHARE_AFTER_RISE else None
    longer = share >= _MIN_SHARE_OF_TIME and (loading > computing or workers.moving > computed)
    if not (plain or grew or longer):
        return []
    replayed = None if _short_of_cores(timeline, workers) else replay(timeline)
    gain = replayed.without_loads if replayed is not None else _gain(timeline, workers)
    busy = workers.computing > _MIN_COMPUTING
    overloaded = queued >= _MIN_QUEUED and workers.moving < _MAX_MOVING and (busy or _idle_workers(timeline, done))
    if overloaded and gain < _MIN_GAIN:
        return []
    confidence, reason = _attribution(timeline, done, loading)
    confidence = min(confidence, _CONFIDENCE_IF_OVERLOADED) if overloaded else confidence
    return [
        Finding(
            NAME,
            ("Adapters are slow: executions" if confidence == _CONFIDENCE else "Executions")
            + f" spent {share:.0%} of their time loading and sending data",
            confidence,
            (*_evidence(done), *_since(grew), *_saved(replayed), reason),
            "Speed up the adapter (more replicas, an index or a cache in front of its data source), or limit the "
            "executions that call it at once: a load blocks its worker. Request smaller time ranges: loading includes "
            "the runtime's own parsing of the data.",
            (),
            slowed(_CERTAIN_SHARE * gain if overloaded else gain),
        )
    ]


def _short_of_cores(timeline: Timeline, workers: Saturation) -> bool:
    """Whether executions wait for cores: the fewer load, the more compute and wait for each other."""
    cores = contention(timeline)
    return cores.likely and cores.cores < workers.workers


def _gain(timeline: Timeline, workers: Saturation) -> float:
    """The share of the runs' time that quick adapters would save, where the service can't be replayed.

    A wait is as long as the work ahead of it. Without loads, only the computing is ahead: the wait shrinks to that
    share, whatever the number of workers. Executions that wait for cores wait for the computing of others alone.
    """
    ahead = 1.0 if _short_of_cores(timeline, workers) else workers.computing
    return workers.moving + workers.waiting * (1 - ahead)


def _rise(done: Executions) -> Onset | None:
    """Since when loading takes much longer."""
    rise = onset(done.loading)
    return rise if rise.factor >= _MIN_GROWTH and rise.p < _MAX_CHANCE else None


def _since(rise: Onset | None) -> Iterator[Evidence]:
    if rise is not None:
        text = f"after {rise.at:,} executions, loading took {rise.factor:.1f} times as long ({by_chance(rise.p)})"
        yield Evidence(text, rise.factor, "", "spans", f"phase = {LOADING}")


def _evidence(done: Executions) -> tuple[Evidence, ...]:
    early, late = (float(np.median(quarter)) for quarter in quarters(done.loading))
    loading, computing, sending = (float(np.median(each)) for each in (done.loading, done.computing, done.sending))
    where = f"phase = {LOADING}"
    return (
        Evidence(
            f"loading took {format_duration(loading)}, sending {format_duration(sending)}, computing "
            f"{format_duration(computing)} (medians)",
            loading, "s", "spans", where,
        ),
        Evidence(
            f"loading took {format_duration(early)} in the first quarter of the executions and "
            f"{format_duration(late)} in the last (medians)",
            late, "s", "spans", where,
        ),
    )  # fmt: skip


def _saved(replayed: Replay | None) -> Iterator[Evidence]:
    if replayed is not None:
        text = f"in a replay with adapters that answer at once, the runs take {replayed.without_loads:.0%} less time"
        yield Evidence(text, replayed.without_loads, "share", "spans")


def _loading(done: Executions) -> float:
    """The median loading time in the second half of the test, at the replica where it is shortest."""
    late = np.arange(done.row.size) >= done.row.size // 2
    replicas = [late & (done.replica == k) for k in range(len(done.replicas))]
    groups = [replica for replica in replicas if np.count_nonzero(replica) >= _MIN_LOADS] or [late]
    return min(float(np.median(done.loading[group])) for group in groups)


def _idle_workers(timeline: Timeline, done: Executions) -> bool:
    """Whether some workers may have been idle while others had too much: nothing names the replicas."""
    tail = None if done.replicas else unnamed_tail(timeline)
    return tail is not None and uneven(tail)


def _attribution(timeline: Timeline, done: Executions, loading: float) -> tuple[float, Evidence]:
    """The confidence that the adapters are slow, not the runtime's own parsing of their data; and the reason."""
    own = _own_work(timeline, done)
    if own is not None and (own < _MAX_IDLE or own > _MIN_BUSY):
        at = f"the nodes' CPUs were busy for {own:.0%} of the data transfer time"
        text = f"{at}: the runtime waited" if own < _MAX_IDLE else f"{at}: much of it may be the runtime's own parsing"
        sure = _CONFIDENCE if own < _MAX_IDLE else _CONFIDENCE_IF_PARSING
        return sure, Evidence(text, own, "share", "samples", f"metric = {NODE_CPU_CORES}")
    probes = timeline.metric(SERVICE_PROBE_SECONDS)
    probes = probes[probes["labels"].str.contains('"adapter ', regex=False)]
    if not len(probes):
        text = "whether the adapters or the runtime's own parsing took that long was not observed"
        return _CONFIDENCE_UNPROBED, Evidence(text)
    probed = float(np.median(floats(probes, "value")))
    text = f"an adapter answered a trivial request within {format_duration(probed)} (median)"
    fact = Evidence(text, probed, "s", "samples", f"metric = {SERVICE_PROBE_SECONDS}")
    return _CONFIDENCE if probed > _MIN_SHARE_PROBED * loading else _CONFIDENCE_UNPROBED, fact


def _own_work(timeline: Timeline, done: Executions) -> float | None:
    """CPU seconds of the nodes beyond computing, per second of data transfer; none when not observed."""
    samples = timeline.metric(NODE_CPU_CORES)
    at = floats(samples, "at_s")
    if np.unique(at).size < 2:
        return None
    used = float(floats(samples, "value").sum()) / np.unique(at).size * float(at.max() - at.min())
    moved = float((done.loading + done.sending).sum())
    return max(0.0, used - float(done.computing.sum())) / max(moved, 1e-9)
