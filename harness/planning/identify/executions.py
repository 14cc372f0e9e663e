"""A service that executes the runs, as a recorded test shows it: hetida's runtime, its workers, balancer, adapters.

What executions need is measured, except where they waited meanwhile: while one loads or sends, its worker does others'
work, which counts as its own loading or sending. So none of them needs longer than it said, and none longer than a
limit, which is fitted: with it, loading and sending take as long in the simulation as they did.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, log, sqrt
from typing import Any

import numpy as np
import orjson

from harness.analysis.services.contention import contention
from harness.analysis.services.executions import Executions, executions
from harness.analysis.services.saturation import saturation
from harness.analysis.services.service_replicas import service_replicas
from harness.analysis.timeline import Floats, Ints, Timeline, floats
from harness.analysis.waits.waits import waits_so_far
from harness.model.errors import ConfigError
from harness.model.phases import BACKEND, COMPUTING, FAILED, LOADING, QUEUED, REPLICA_WORKERS, SENDING
from harness.planning.identify.fitting import Fit, error
from harness.planning.identify.recorded import RecordedTest, accepted_rows
from harness.planning.identify.replay import replay
from harness.planning.identify.reproduction import LOST_OFF, Measures
from harness.planning.identify.setting import Setting, measured_amount
from harness.simulator.hetida.requests import RefusedError, Request, backend_request
from harness.simulator.profile import DataAdapter, FaultPlan, Hetida, MeasuredExecutions, Profile
from harness.simulator.profile.hetida import FAILURES, LOADING_FAILED, RAISED, SENDING_FAILED

_UNLIMITED = 1e6  # cores: what was not seen to limit
_EARLY = 0.1  # quantile: an execution that the backend did not keep waiting
_ROUNDS, _BISECTIONS, _DRAWS = 3, 12, 6
_CLOSE, _SLIGHT = 0.02, 0.005  # of a phase; of a run's time: an error that is not worth another round
_SURE = 4.0  # standard errors: far beyond chance, for any number of replicas
_SLOWER = 1.3  # times the others: a difference that matters
_MISTAKEN = 0.02  # share of choices of which the order of stamps is wrong
_MANY_CORES = 1.3  # per execution that computes: its operators release the GIL
_LIMITED: Mapping[str, str] = {LOADING: "load", SENDING: "send"}  # what is measured of each


def identified_service(
    profile: Profile, timeline: Timeline, test: RecordedTest, recorded: Measures
) -> tuple[Profile, Sequence[Setting], Measures]:
    """The platform on which a recorded test executes as it did, where its settings were read, and its simulation.

    Raises:
        ConfigError: the recorded transformation can't be simulated.
    """
    usual = profile.hetida or Hetida()
    try:
        request = backend_request({}, orjson.loads(test.package))
    except (RefusedError, LookupError, TypeError, ValueError) as error:
        raise ConfigError(
            "the recorded transformation can't be simulated: it is not an exported one with a test wiring",
            "give its test again",
        ) from error
    seen = _Seen(timeline, executions(timeline), accepted_rows(timeline))
    hetida, faults, settings = _with_replicas(usual, seen)
    hetida, measured = _with_work(hetida, seen, request, faults)
    adapters = _adapters(hetida, request)
    prices = floats(timeline.machines, "price")
    pool = replace(profile.pools[0], price=float(prices.mean()) if prices.size and np.isfinite(prices).all() else None)
    model = replace(profile, pools=(pool,), hetida=replace(hetida, adapters=adapters), faults=faults)
    found, simulated = _fitted(model, test, recorded)
    return found, (*settings, *measured, *_of_fit(found, recorded)), _nearest(found, test, recorded, simulated)


@dataclass(frozen=True, slots=True, eq=False)
class _Seen:
    """A recorded test: its executions with known phases, and the rows of all accepted ones as they were sent."""

    timeline: Timeline
    done: Executions
    sent: Ints

    @property
    def place(self) -> Ints:
        """By accepted run: its place among the executions with known phases, or -1."""
        places = np.full(len(self.timeline.runs), -1, dtype=np.int64)
        places[self.done.row] = np.arange(self.done.row.size)
        return places[self.sent]


# --- replicas ---------------------------------------------------------------------------------------------------------


def _with_replicas(usual: Hetida, seen: _Seen) -> tuple[Hetida, tuple[FaultPlan, ...], Sequence[Setting]]:
    """Replicas, their workers and nodes, how the balancer chooses, and whether one replica is slow or favoured."""
    timeline, done = seen.timeline, seen.done
    shown, busy = service_replicas(timeline), saturation(timeline)
    known = max(len(shown.pods), len(done.replicas))
    if shown.workers:
        replicas, workers, source = known, round(shown.total / len(shown.pods)), "the runtime's pods"
    elif known:
        replicas, workers = known, max(1, round(busy.workers / known))
        source = "the replicas that answers name, and executions that computed at once"
    else:
        replicas, workers = max(1, busy.workers), 1
        source = "executions that computed at once: nothing shows which replica has which worker"
    nodes, cores, machines = _machines(timeline, replicas, workers)
    balancing, share, why = _balancing(seen, replicas)
    slow, times = _slow(done) if share < 1 else (-1, 1.0)
    faults = [FaultPlan("slow-worker", strength=(times - 1) / 4)] if slow >= 0 else []
    if share > 0:
        faults.append(FaultPlan("lb-imbalance", strength=share / 0.6))
    runtime = replace(
        usual.runtime, nodes=nodes, cores=cores, replicas=replicas, workers=workers, balancing=balancing, parse_s=0.0
    )
    settings = [
        Setting("runtime.replicas", replicas, source),
        Setting("runtime.workers", workers, source),
        Setting("runtime.balancing", balancing, why),
    ]
    if cores < _UNLIMITED:
        settings += [Setting("runtime.nodes", nodes, machines), Setting("runtime.cores", f"{cores:.3g}", machines)]
    if slow >= 0:
        settings.append(Setting("slow replica", f"{times:.3g} times the others", "computing, by replica"))
    if share > 0:
        settings.append(Setting("favoured replica", f"{share:.0%} of the executions besides its turn", why))
    return replace(usual, runtime=runtime), tuple(faults), settings


def _machines(timeline: Timeline, replicas: int, workers: int) -> tuple[int, float, str]:
    """Nodes and cores of each; cores without limit where nothing shows them."""
    homes = set(timeline.labelled(REPLICA_WORKERS, "node")["node"]) - {""}
    machines = timeline.machines
    cpu = floats(machines[machines["name"].astype(str).isin(homes)], "cpu")
    nodes = max(1, len(homes))
    shared = contention(timeline)
    if shared.likely and shared.cores < replicas * workers:
        return nodes, max(1.0, shared.cores / nodes), "executions that computed at once slowed each other"
    if cpu.size and np.isfinite(cpu).all():
        return nodes, float(cpu.mean()), "the nodes of the runtime's pods"
    return 1, _UNLIMITED, ""


def _slow(done: Executions) -> tuple[int, float]:
    """The replica whose executions compute clearly slower than those of the others, and how many times as long."""
    logs = np.log(np.maximum(done.computing, 1e-9))
    for k in np.unique(done.replica[done.replica >= 0]):
        own, others = logs[done.replica == k], logs[(done.replica != k) & (done.replica >= 0)]
        if min(own.size, others.size) < 5:
            continue
        error = float(np.sqrt(own.var(ddof=1) / own.size + others.var(ddof=1) / others.size))
        times = float(np.exp(own.mean() - others.mean()))
        if times > _SLOWER and log(times) > _SURE * error:
            return int(k), times
    return -1, 1.0


def _balancing(seen: _Seen, replicas: int) -> tuple[str, float, str]:
    """How the balancer chooses, the extra share that it gives to one replica, and what shows it."""
    done, shown = seen.done, service_replicas(seen.timeline)
    if replicas == 1:
        return "random", 0.0, "there is one replica"
    if saturation(seen.timeline).in_one:
        return "random", 1.0, "one replica did all the work"
    if len(done.replicas) > 1:
        return *_chosen(seen, replicas), "the replicas that answers name"
    if shown.cpu_s.size:
        share, number = float(shown.cpu_s.max() / shown.cpu_s.sum()), done.row.size
        if share - 1 / replicas > _SURE * np.sqrt(share * (1 - share) / number):
            return "random", (replicas * share - 1) / (replicas - 1), "the replicas' CPU time"
    return "random", 0.0, "not seen: that of Kubernetes"


def _chosen(seen: _Seen, replicas: int) -> tuple[str, float]:
    """What explains best which replica each execution went to, by likelihood; a share has a parameter more (BIC)."""
    done = seen.done
    came, left = _inside(seen)
    order = np.argsort(came, kind="stable")
    order = order[done.replica[order] >= 0]
    home = done.replica[order]
    number = home.size
    counts = np.bincount(home, minlength=replicas)
    top = counts.max() / number
    turns = home[replicas:] == home[:-replicas] if number > replicas else np.zeros(0, dtype=bool)
    open_ = np.zeros((number, replicas))
    for k in range(replicas):
        mine = done.replica == k
        open_[:, k] = np.searchsorted(np.sort(came[mine]), came[order]) - np.searchsorted(
            np.sort(left[mine]), came[order]
        )
    fewest = open_ == open_.min(axis=1, keepdims=True)
    least = fewest[np.arange(number), home] / fewest.sum(axis=1)
    others = max(number - counts.max(), 1)
    likelihoods = {
        "random": -number * log(replicas),
        "round-robin": float(np.log(np.where(turns, 1 - _MISTAKEN, _MISTAKEN)).sum()) - replicas * log(replicas),
        "least-connections": float(np.log(np.maximum((1 - _MISTAKEN) * least, _MISTAKEN / replicas)).sum()),
        "": counts.max() * log(top) + others * log(max(1 - top, 1 / number) / (replicas - 1)) - log(number) / 2,
    }
    best = max(likelihoods, key=lambda name: likelihoods[name])
    return (best, 0.0) if best else ("random", (replicas * top - 1) / (replicas - 1))


def _inside(seen: _Seen) -> tuple[Floats, Floats]:
    """When each execution came to the runtime, and when it left."""
    pods = seen.timeline.pods[seen.timeline.of_runs(QUEUED, LOADING, COMPUTING, SENDING)]
    came, left = np.full(len(seen.timeline.runs), inf), np.full(len(seen.timeline.runs), -inf)
    np.minimum.at(came, pods["row"].to_numpy(), floats(pods, "start_s"))
    np.maximum.at(left, pods["row"].to_numpy(), np.nan_to_num(floats(pods, "end_s"), nan=-inf))
    return came[seen.done.row], left[seen.done.row]


# --- work -------------------------------------------------------------------------------------------------------------


def _with_work(
    hetida: Hetida, seen: _Seen, request: Request, faults: Sequence[FaultPlan]
) -> tuple[Hetida, Sequence[Setting]]:
    """What each execution needs at most, in the order in which they were sent, and the backend's own time."""
    timeline, done, place = seen.timeline, seen.done, seen.place
    shared, (slow, times) = contention(timeline), _slow(done)
    computing = done.computing * (1 - shared.lost) if shared.likely else done.computing.copy()
    if any(fault.name == "slow-worker" for fault in faults):
        computing[done.replica == slow] /= times
    used = service_replicas(timeline).cpu_s
    cores = float(used.sum() / max(done.computing.sum(), 1e-9)) if used.size else 1.0
    cores = cores if cores > _MANY_CORES else 1.0
    told = place[place >= 0]

    def of(values: Floats) -> tuple[float, ...]:
        """By accepted run; those without phases are like others."""
        found = values[place]
        found[place < 0] = np.resize(values[told], int(np.count_nonzero(place < 0)))
        return tuple(found.tolist())

    # The slow or favoured replica is the first one of the model.
    first = slow if slow >= 0 else int(np.bincount(done.replica[done.replica >= 0], minlength=1).argmax())
    home = np.where(done.replica == first, 0, np.where(done.replica == 0, first, done.replica))
    several = len(done.replicas) > 1
    replica = np.where(place >= 0, home[place], -1) if several else np.full(place.size, -1)
    if not several and saturation(timeline).in_one:
        replica = np.zeros(place.size, dtype=np.int64)
    failed = _failures(seen)
    requests = max(1, len(request.sources()) + len(request.sinks()))
    by_adapters = sum(each not in {"", RAISED} for each in failed) / max(len(failed), 1)
    rate = 1 - (1 - by_adapters) ** (1 / requests)
    measured = MeasuredExecutions(
        of(done.loading), of(computing * cores), of(done.sending), failed, tuple(replica.tolist()), rate
    )
    like = tuple(replace(execution, cores=cores, operators=1) for execution in hetida.executions)
    split = waits_so_far(timeline)
    prepared = split.of(BACKEND)
    prepare_s = float(np.quantile(prepared, _EARLY)) if prepared.size else 0.0
    settings = [
        Setting("execution.compute", measured_amount(computing), "the answers' measured steps", computing.size),
        Setting("backend.prepare_s", f"{prepare_s:.3g} s", "the answers' measured steps", prepared.size),
    ]
    if any(failed):
        shown = ", ".join(f"{failed.count(each) / len(failed):.0%} {each}" for each in FAILURES if each in failed)
        settings.append(Setting("execution.failed", shown, "answers", len(failed)))
    backend = replace(hetida.backend, prepare_s=prepare_s)
    return replace(hetida, measured=measured, executions=like, backend=backend), settings


def _failures(seen: _Seen) -> tuple[str, ...]:
    """At which step each accepted execution failed, by hetida's process stages; a plain 500 is one of loading."""
    runs = seen.timeline.runs.iloc[seen.sent]

    def failure(state: str, message: str) -> str:
        if state != FAILED:
            return ""
        if "SENDING_DATA" in message:
            return SENDING_FAILED
        return LOADING_FAILED if "LOADING_DATA" in message or message.startswith("HTTP 5") else RAISED

    return tuple(map(failure, runs["state"].astype(str), runs["message"].astype(str)))


def _adapters(hetida: Hetida, request: Request) -> tuple[DataAdapter, ...]:
    """Those of the transformation; their limits are the profile's."""
    usual = {adapter.id: adapter for adapter in hetida.adapters}
    rate = hetida.measured.error_rate if hetida.measured else 0.0
    names = dict.fromkeys((*request.sources(), *request.sinks()))
    return tuple(replace(usual.get(name, DataAdapter(name)), error_rate=rate) for name in names)


# --- fit --------------------------------------------------------------------------------------------------------------


def _fitted(profile: Profile, test: RecordedTest, recorded: Measures) -> Fit:
    """Limit how long loading and sending take on their own; correct the means of computing and of the backend."""
    measured_executions = _measured(profile)
    best = found = profile, replay(profile, test)
    for _ in range(_ROUNDS):
        found = _corrected(found, test, recorded)
        for phase in _LIMITED:
            found = _with_limit(found, test, recorded, phase, measured_executions)
        if error(recorded, found[1]) >= error(recorded, best[1]):
            break
        best = found
    return best


def _nearest(profile: Profile, test: RecordedTest, recorded: Measures, simulated: Measures) -> Measures:
    """The simulation with the totals of that draw which comes nearest to each.

    Which worker took an execution is not known, and a busy one that takes all that wait makes the tail a matter of
    chance: equal tests of a full runtime differ. Beyond what several draws show, the model is wrong.
    """
    draws = [simulated, *(replay(replace(profile, resampled=True), test, seed) for seed in range(1, _DRAWS))]
    totals: Any = {}
    for name in ("makespan_s", "mean_s", "p50_s", "p95_s"):
        off = {abs(getattr(draw, name) - getattr(recorded, name)): getattr(draw, name) for draw in draws}
        totals[name] = off[min(off)]
    return replace(simulated, **totals)


def _corrected(found: Fit, test: RecordedTest, recorded: Measures) -> Fit:
    """Computing was measured on busy cores, which are simulated as well, and preparing at a busy backend."""
    profile, simulated = found
    better = profile
    for phase in (COMPUTING, BACKEND):
        was, now = recorded.phases[phase], simulated.phases[phase]
        if not now or not _off(recorded, was, now):
            continue
        hetida, measured = _hetida(better), _measured(better)
        if phase == COMPUTING:
            hetida = replace(hetida, measured=replace(measured, compute=tuple(c * was / now for c in measured.compute)))
        else:
            backend = replace(hetida.backend, prepare_s=hetida.backend.prepare_s * was / now)
            hetida = replace(hetida, backend=backend)
        better = replace(better, hetida=hetida)
    return found if better is profile else (better, replay(better, test))


def _off(recorded: Measures, was: float, now: float) -> bool:
    return abs(was - now) > max(_CLOSE * was, _SLIGHT * recorded.mean_s)


def _with_limit(found: Fit, test: RecordedTest, recorded: Measures, phase: str, said: MeasuredExecutions) -> Fit:
    """Bisect the limit with which a phase takes as long as recorded: the higher it is, the longer."""
    name, was = _LIMITED[phase], recorded.phases[phase]
    values = getattr(said, name)
    limit = max(getattr(_measured(found[0]), name))
    low, high = max(min(values), 1e-4), max(values)
    for _ in range(_BISECTIONS):
        now = found[1].phases[phase]
        if not _off(recorded, was, now):
            break
        # Of executions whose worker was killed because it was blocked for too long, no loading is reported.
        low, high = (low, limit) if now > was or found[1].lost > recorded.lost + LOST_OFF else (limit, high)
        if high <= low * (1 + _CLOSE):
            break
        limit = sqrt(low * high)
        limited: Any = {name: tuple(min(value, limit) for value in values)}
        measured = replace(_measured(found[0]), **limited)
        profile = replace(found[0], hetida=replace(_hetida(found[0]), measured=measured))
        found = profile, replay(profile, test)
    return found


def _hetida(profile: Profile) -> Hetida:
    assert profile.hetida is not None
    return profile.hetida


def _measured(profile: Profile) -> MeasuredExecutions:
    measured = _hetida(profile).measured
    assert measured is not None
    return measured


def _of_fit(found: Profile, recorded: Measures) -> Iterator[Setting]:
    """Loading and sending as they are without others' work."""
    for phase, name in _LIMITED.items():
        values = getattr(_measured(found), name)
        mean = float(np.mean(values))
        if _off(recorded, recorded.phases[phase], mean):
            yield Setting(f"execution.{name}", f"mean {mean:.3g} s", "fitted to how long it took with others' work")
        else:
            yield Setting(f"execution.{name}", measured_amount(values), "the answers' measured steps", len(values))
