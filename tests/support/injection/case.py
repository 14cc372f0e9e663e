"""One simulated test: platform, load, injected faults and observed sources; read back from a run folder."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import orjson

from harness.analysis.timeline import Timeline
from harness.collectors.metrics.profiles_file import load as load_metrics
from harness.collectors.metrics.scraping import Scrape, parse, samples
from harness.model import Event, Outcome, Plan, PodSpans, Sample, Scenario, Submission
from harness.model.http import HttpAnswer
from harness.model.phases import FAILED, POD_CPU_CORES, REPLICA_WORKERS, RUNS_IN_FLIGHT
from harness.model.schedules import Burst, Poisson, Ramp, Spread
from harness.simulator.engine.calendar import Calendar
from harness.simulator.engine.distributions import Amount, Lognormal
from harness.simulator.engine.events import EventLoop
from harness.simulator.fast import Arrival
from harness.simulator.fast.executions import replica_name
from harness.simulator.fast.recorder import Recorder
from harness.simulator.fast.runs import SAMPLE_S, simulate_runs
from harness.simulator.fast.simulation import without_collections
from harness.simulator.fast.submitting import pipelines
from harness.simulator.faults import inject, parse_fault
from harness.simulator.hetida import answers
from harness.simulator.hetida.execution import Ending, Job
from harness.simulator.hetida.faults import FAULTS as OF_HETIDA
from harness.simulator.hetida.service import ReplicaUsage, Service
from harness.simulator.kube_objects.metrics import workflow_controller
from harness.simulator.platform import Platform
from harness.simulator.profile import Profile
from harness.simulator.profile.file import load_profile
from harness.store import RunFolder
from harness.store.tables import load, seal
from harness.targets.completed_run import CompletedRun
from harness.targets.hetida.answers import completed_run
from tests.support.injection.packages import PACKAGE
from tests.support.injection.seen import as_read, seen

ORIGIN_AT = 1_790_000_000 * 10**9
_RUN = "run"  # the run folder's name
_SCRAPES = 50  # within the time that passed so far, if samples are taken that often
_FIRST_S = 5.0  # leaves time for a fault before the first arrival


@dataclass(frozen=True)
class Case:
    """A platform, a load, the injected faults (`name@when`, without strength), and what is observed.

    Attributes:
        schedule: constant, spread (each arrival somewhere in its slot), poisson, ramp (from a fifth to nine fifths of
            the mean rate) or burst (all at once).
        step_s: typical duration of every step; none: as in the profile.
        package: the pipeline.
        many: every run has its own parameter values, and so its own amount of data.
        whole: timestamps of pods, nodes and runs are in whole seconds.
        without: sources that were not observed, see `tests.support.injection.seen`.
        drain_s: how long the test waits for the last runs.
    """

    faults: tuple[str, ...] = ()
    runs: int = 90
    over_s: float = 60.0
    profile: str = "demo"
    schedule: str = "constant"
    step_s: float | None = None
    package: bytes = PACKAGE
    many: bool = False
    whole: bool = False
    without: frozenset[str] = frozenset()
    drain_s: float = 600.0

    @property
    def injected(self) -> tuple[str, ...]:
        """The names of its faults."""
        return tuple(fault.partition("@")[0] for fault in self.faults)


def profile_of(case: Case) -> Profile:
    """The platform of a case, with the case's step duration."""
    profile = load_profile(case.profile)
    if case.step_s is None:
        return profile
    duration = Amount(Lognormal(case.step_s, 2 * case.step_s))
    return replace(profile, steps=tuple(replace(step, duration=duration) for step in profile.steps))


def simulated(
    case: Case, strength: float, seed: int, profile: Profile | None = None, place: Path | None = None,
    chance: int | None = None,
) -> Timeline:  # fmt: skip
    """Simulate a case and read it back from its run folder, which stays in `place` where one is given.

    Another `chance` repeats the test: the same arrivals, and other draws of the platform.
    """
    if place is not None and (place / _RUN).is_dir():
        return read(run_in(place))
    profile = profile or profile_of(case)
    plan = Plan(
        "hetida" if profile.hetida is not None else "kfp", "simulated", {"name": case.schedule},
        sum(1 for _ in _due(case, seed)), seed, simulated=True, started_at=ORIGIN_AT,
    )  # fmt: skip
    observed = seen(
        as_read(records(case, strength, seed, profile, chance=chance)), without=case.without, whole=case.whole
    )
    return read_back(plan, observed, place)


def records(
    case: Case, strength: float, seed: int, profile: Profile, sample_s: float = SAMPLE_S, *, chance: int | None = None
) -> Iterator[Any]:
    """Simulate a case on that platform: its records, exact and complete."""
    due = tuple(_FIRST_S + at for at in _due(case, seed))
    if profile.hetida is not None:
        return _hetida(case, profile, due, strength, seed if chance is None else chance)
    return _kfp(case, profile, due, strength, seed if chance is None else chance, sample_s)


def read_back(plan: Plan, records: Iterable[Any], place: Path | None = None) -> Timeline:
    """Write a test's records into a run folder and read it back; the folder moves to `place` when it is whole."""
    with tempfile.TemporaryDirectory(dir=place) as passing:
        folder = RunFolder.create(Path(passing), _RUN)
        folder.write_plan(plan)
        with folder.recorder() as recorder:
            recorder.write(Event(plan.started_at, "Test", "run", "Started"))
            for record in records:
                recorder.write(record)
        seal(folder)
        if place is not None:
            folder = RunFolder(folder.path.rename(place / _RUN))
        return read(folder)


def run_in(place: Path) -> RunFolder:
    """The run folder that `read_back` left in a place."""
    return RunFolder.open(place / _RUN)


def read(folder: RunFolder) -> Timeline:
    """The timeline of a sealed run folder."""
    return Timeline.from_frames(folder.read_plan(), load(folder))


def _due(case: Case, seed: int) -> Iterable[float]:
    rate = case.runs / case.over_s
    match case.schedule:
        case "constant":
            return (k / rate for k in range(case.runs))
        case "spread":
            return Spread(case.runs, case.over_s, 1.0).offsets(seed)
        case "poisson":
            return Poisson(rate, case.over_s).offsets(seed)
        case "ramp":
            return Ramp(0.2 * rate, 1.8 * rate, case.over_s).offsets(seed)
        case _:
            return Burst(case.runs).offsets(seed)


def _kfp(
    case: Case, profile: Profile, due: tuple[float, ...], strength: float, seed: int, sample_s: float
) -> Iterator[Any]:
    faults = tuple(filter(None, (parse_fault(f"{text}:{strength}") for text in case.faults)))
    draw = Random(f"{seed}/scenarios")
    arrivals = [Arrival(at, Scenario(str(k), "injected", _values(case, draw), {})) for k, at in enumerate(due)]
    recorder, calendar = Recorder(ORIGIN_AT), Calendar(ORIGIN_AT)
    platform = Platform(profile, seed, recorder)
    recorder.follow(platform)
    for fault in (*profile.faults, *faults):
        inject(platform, fault)
    metrics, before, next_at = load_metrics("argo").metrics, None, ORIGIN_AT
    with without_collections():
        submit = pipelines(platform, case.package)
        for each in simulate_runs(recorder, submit, arrivals, calendar, due[-1] + case.drain_s, sample_s):
            yield from each.spans() if isinstance(each, PodSpans) else (each,)
            # The last sample of an instant. Longer tests do with fewer scrapes.
            if isinstance(each, Sample) and each.metric == RUNS_IN_FLIGHT and each.at >= next_at:
                next_at = each.at + (each.at - ORIGIN_AT) // _SCRAPES
                now = Scrape(each.at, parse(workflow_controller(platform)))
                yield from (sample for metric in metrics for sample in samples(metric, now, before))
                before = now


def _values(case: Case, draw: Random) -> Mapping[str, int]:
    return {"data_multiplier": draw.choice((500, 1000, 5000, 20000, 50000))} if case.many else {}


def _hetida(case: Case, profile: Profile, due: tuple[float, ...], strength: float, seed: int) -> Iterator[Any]:
    """Executions at the runtime; replicas are named in a header, as a load balancer can be configured to do."""
    settings = profile.hetida
    assert settings is not None
    loop = EventLoop()
    service = Service(loop, settings, f"{seed}/hetida")
    for text in case.faults:
        name, _, when = text.partition("@")
        loop.at(float(when.removesuffix("s")), OF_HETIDA[name][1], service, strength)
    jobs: list[tuple[float, Job, list[float]]] = []
    for at in due:
        loop.at(at, partial(_execute, loop, service, at, jobs))
    usage = ReplicaUsage(loop, service)
    loop.run(due[-1] + case.drain_s)
    for seq, (at, job, ended) in enumerate(jobs):
        sent_at = ORIGIN_AT + round(at * 1e9)
        over_at = ORIGIN_AT + round(ended[0] * 1e9) if ended else None
        name = f"run-{seq}"
        yield Submission(seq, str(seq), name, sent_at, sent_at, over_at, Outcome.ACCEPTED, name, 0, 200, None)
        if over_at is not None:
            yield from _over(name, job, named=settings.runtime.names_replicas).records(sent_at, over_at, "hetida")
    yield from _replicas(service, usage, max((ended[0] for _, _, ended in jobs if ended), default=0.0))


def _replicas(service: Service, usage: ReplicaUsage, until: float) -> Iterator[Sample]:
    """What Kubernetes and metrics-server tell of the runtime's pods."""
    for replica in service.replicas:
        labels = {"pod": replica_name(replica.index)}
        yield Sample(REPLICA_WORKERS, ORIGIN_AT, float(len(replica.workers)), labels)
    for at_s, index, cores in usage.samples(until):
        yield Sample(POD_CPU_CORES, ORIGIN_AT + round(at_s * 1e9), cores, {"pod": replica_name(index)})


def _execute(loop: EventLoop, service: Service, due: float, jobs: list[tuple[float, Job, list[float]]]) -> None:
    ended: list[float] = []
    work = service.work("anomaly", ["plants"], ["plants"], {})
    jobs.append((due, service.run(work, lambda _: ended.append(loop.now)), ended))


def _over(name: str, job: Job, *, named: bool) -> CompletedRun:
    node = replica_name(job.replica)
    if job.ending in {Ending.LOAD_FAILED, Ending.RESET}:
        return CompletedRun(name, FAILED, "HTTP 500 · Internal Server Error", "anomaly", node=node if named else None)
    body = (
        answers.succeeded(job, {}, origin_at=ORIGIN_AT, outputs={})
        if job.ending is Ending.OK
        else answers.failed(job, {}, name="anomaly", origin_at=ORIGIN_AT)
    )
    headers = {"x-upstream-addr": node} if named else {}
    ended = completed_run(HttpAnswer(200, orjson.dumps(body), headers), name, task="anomaly", empty_s=0.0, expected=())
    assert ended is not None
    return ended
