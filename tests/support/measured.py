"""What a real KFP 2.17 with Argo 4.0.8 was measured to do, beside what the simulated platform does.

``python -m tests.support.measured`` prints the table of docs/simulator.md. The measurements are of 22 November 2026, on
two shared cores, with pods of a few seconds of fake work; each row is small in number, so times are ±15 %.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from statistics import median
from typing import Any

import yaml

from harness.simulator.engine.distributions import fixed
from harness.simulator.kfp.records import SUCCEEDED, Run, Version
from harness.simulator.platform import Platform
from harness.simulator.profile import Api, Controller, Kubelet, Pool, Profile, Step
from harness.simulator.workflows.graph import IMPORTER, Graph, Plan
from harness.simulator.workflows.workflow import Workflow
from tests.support.platforms import TRAINING, UNCACHED, upload

Figures = Mapping[str, float]
ONE_POD = Graph((Plan(IMPORTER, "main", "main"),))  # a plain workflow: one pod, whose work takes as long as a driver's
_GI = 2.0**30
_ARRIVALS_S = 3.5  # in which the 200 workflows were created: "1 to 6 s"
_FINE_S = 0.05


def platform(**more: Any) -> Profile:
    """The defaults, on a machine where pods start at once."""
    kubelet = Kubelet(start=fixed(0.3), pull_overhead_s=0.0, pull_bytes_per_s=1e15, termination_s=0.0)
    usual: dict[str, Any] = {"pools": (Pool("big", cpu=1e5, memory=1e5 * _GI, pods=10**6, initial=1),)}
    return Profile("measured", **(usual | {"kubelet": kubelet} | more))


@cache
def two_hundred(qps: float, burst: int, workers: int, pod_s: float) -> Figures:
    """200 workflows of one pod each, at once."""
    controller = Controller(qps=qps, burst=burst, workers=workers, driver=fixed(pod_s))
    here, count = Platform(platform(controller=controller)), 200
    control, workflows = here.controller, []

    def create(number: int) -> None:
        name = f"one-pod-{number}"
        workflows.append(Workflow(name, name, "kubeflow", graph=ONE_POD, parameters={}, created=here.loop.now))
        control.add(workflows[-1])

    for number in range(count):
        here.loop.at(_ARRIVALS_S * number / count, create, number)
    here.loop.run(_ARRIVALS_S)
    while any(not each.over for each in workflows):
        here.loop.run(here.loop.now + _FINE_S)
    over_s = max(each.finished or 0.0 for each in workflows)
    client = control.client
    sent, updates = client.sent, client.counts["workflows update"]
    of_workflows = updates + client.counts["workflowtaskresults deletecollection"]
    while client.events.waiting:
        here.loop.run(here.loop.now + _FINE_S)
    created = sorted(step.pods[0].created for each in workflows for _, step in each.made())
    since = [at - created[0] for at in created]
    return {
        "over": over_s,
        "workflows/s": count / over_s,
        "pods/s": 0.8 * count / (since[int(0.9 * count)] - since[int(0.1 * count)]),
        "10 %": since[count // 10],
        "half": since[count // 2],
        "90 %": since[int(0.9 * count)],
        "last": since[-1],
        "requests/s": sent / over_s,
        "argoproj/s": of_workflows / over_s,
        "updates": updates / count,
        "events": here.loop.now - over_s,
    }


def one_step() -> bytes:
    """The training pipeline's first step alone."""
    spec = yaml.safe_load(UNCACHED)
    spec["root"]["dag"]["tasks"] = {"prepare": spec["root"]["dag"]["tasks"]["prepare"]}
    return yaml.safe_dump(spec).encode()


@cache
def one_run(package: bytes, first_s: float, times: int = 1) -> Figures:
    """The last of several runs on a quiet system: drivers of 3 s, steps of `first_s`, 7 and 9 s, as recorded."""
    steps = tuple(
        Step(name, duration=fixed(seconds), output=fixed(0.0), cpu=fixed(0.01), memory=fixed(1.0))
        for name, seconds in (("prepare", first_s), ("train", 7.0), ("evaluate", 9.0))
    )
    here = Platform(platform(steps=steps, controller=Controller(driver=fixed(3.0))))
    version, client = upload(here, package), here.controller.client
    for _ in range(times):
        client.counts.clear()
        client.events.sent = client.cleanup.sent = 0
        run = _run_to_the_end(here, version)
    workflow = run.workflow
    assert workflow is not None
    pods = [pod for _, step in workflow.made() for pod in step.pods]
    by_start = sorted(pods, key=lambda pod: pod.created)
    gaps = [after.created - (pod.finished or 0.0) for pod, after in pairwise(by_start)]
    return {
        "pods": len(pods),
        "updates": client.counts["workflows update"],
        "events": client.events.sent,
        "requests": client.sent,
        "over": (run.finished or 0.0) - run.created,
        "gap": median(gaps),
        "bytes": here.server.database.bytes_of(workflow.graph),
    }


def _run_to_the_end(here: Platform, version: Version) -> Run:
    run = here.server.prepare_run("run", "", version, {}, by_reference=True)
    here.server.start_run(run, lambda _: None)
    while run.state != SUCCEEDED:
        here.loop.run(here.loop.now + 1)
    here.loop.run(here.loop.now + 60)  # events, too
    return run


@cache
def submissions(count: int, together: int) -> Figures:
    """So many CreateRun calls, `together` at a time, while no run ends."""
    here = Platform(platform(api=replace(Api(), latency=fixed(0.025)), controller=Controller(parallelism=1)))
    version, took, left = upload(here), list[float](), [count]

    def submit() -> None:
        if not left[0]:
            return
        left[0] -= 1
        sent = here.loop.now

        def answered(_: object) -> None:
            took.append(here.loop.now - sent)
            submit()

        run = here.server.prepare_run(f"run-{left[0]}", "", version, {}, by_reference=True)
        here.server.start_run(run, answered)

    for _ in range(together):
        submit()
    while len(took) < count:
        here.loop.run(here.loop.now + _FINE_S)
    return {"over": here.loop.now, "median": median(took), "fastest": min(took)}


@cache
def listings() -> Figures:
    """Pages of an experiment with 100 waiting runs, and then with 900 finished ones of 24 tasks before them."""
    database = Platform(platform()).server.database
    here = Platform(platform())
    version = upload(here, TRAINING)
    waiting = here.server.prepare_run("waiting", "", version, {}, by_reference=True)
    over = _run_to_the_end(here, version)

    def ms(stored: int, unreported: int, ended: int) -> float:
        return 1000 * database.listing_s(stored, [waiting] * unreported + [over] * ended)

    return {
        "100, 1": ms(100, 1, 0),
        "100, 20": ms(100, 20, 0),
        "100, 100": ms(100, 100, 0),
        "1000, 1": ms(1000, 1, 0),
        "1000, 20": ms(1000, 20, 0),
        "1000, 20 over": ms(1000, 0, 20),
        "1000, 100": ms(1000, 100, 0),
        "1000, 200": ms(1000, 100, 100),
        "all": (4 * ms(1000, 0, 200) + ms(1000, 100, 100)) / 1000,
    }


def agent() -> Figures:
    """From a workflow's change until a client that polls once a second sees it, on average."""
    settings = platform().agent
    return {"seen": settings.lag_s + settings.report_s + 0.5}


@dataclass(frozen=True)
class Row:
    """One measurement: what, the real figure, the simulated one, and why they may differ by more than 15 %."""

    what: str
    real: float
    simulated: Callable[[], float]
    unless: str = ""

    @property
    def off(self) -> float:
        """The difference, relative to the real figure."""
        return self.simulated() / self.real - 1


def _of(figures: Callable[..., Figures], name: str, *arguments: Any) -> Callable[[], float]:
    return lambda: figures(*arguments)[name]


# At 40 requests/s each workflow was recorded with three updates: the busy rig ended pods after the next look.
_DEFAULT, _FAST = (20.0, 30, 32, 3.0), (40.0, 60, 128, 10.0)
_ARRIVALS = "how the workflows came within seconds is not recorded"
_BUSY = "the two cores were busy: the client stayed below its limit"
_NOISE = "6 samples from 10 to 74 ms"
ROWS = (
    Row("200 one-pod workflows, 20 requests/s, 32 workers: all over after s", 35.8, _of(two_hundred, "over", *_DEFAULT)),
    Row("… workflows per s", 5.6, _of(two_hundred, "workflows/s", *_DEFAULT)),
    Row("… pods created per s, middle 80 %", 9.4, _of(two_hundred, "pods/s", *_DEFAULT)),
    Row("… 10 % of the pods created after s", 0.8, _of(two_hundred, "10 %", *_DEFAULT), _ARRIVALS),
    Row("… half of the pods created after s", 9.8, _of(two_hundred, "half", *_DEFAULT)),
    Row("… 90 % of the pods after s", 17.8, _of(two_hundred, "90 %", *_DEFAULT)),
    Row("… last pod after s", 19.8, _of(two_hundred, "last", *_DEFAULT)),
    Row("… requests of the controller per s", 40.0, _of(two_hundred, "requests/s", *_DEFAULT)),
    Row("… of them in argoproj.io", 16.1, _of(two_hundred, "argoproj/s", *_DEFAULT)),
    Row("… updates of a workflow", 2.0, _of(two_hundred, "updates", *_DEFAULT)),
    Row("… last event after the last workflow, s", 57.0, _of(two_hundred, "events", *_DEFAULT)),
    Row("the same, 40 requests/s, 128 workers, pods longer than a requeue: all over after s", 29.7, _of(two_hundred, "over", *_FAST)),
    Row("… workflows per s", 6.7, _of(two_hundred, "workflows/s", *_FAST)),
    Row("… pods created per s, middle 80 %", 20.0, _of(two_hundred, "pods/s", *_FAST)),
    Row("… half of the pods created after s", 3.7, _of(two_hundred, "half", *_FAST), _ARRIVALS),
    Row("… last pod after s", 8.7, _of(two_hundred, "last", *_FAST)),
    Row("… requests of the controller per s", 60.0, _of(two_hundred, "requests/s", *_FAST)),
    Row("… of them in argoproj.io", 26.3, _of(two_hundred, "argoproj/s", *_FAST)),
    Row("… updates of a workflow", 3.0, _of(two_hundred, "updates", *_FAST)),
    Row("… last event after the last workflow, s", 28.0, _of(two_hundred, "events", *_FAST), _BUSY),
    Row("KFP run of one step: pods", 3, _of(one_run, "pods", one_step(), 7.0)),
    Row("… updates of its workflow", 4, _of(one_run, "updates", one_step(), 7.0)),
    Row("… events", 26, _of(one_run, "events", one_step(), 7.0)),
    Row("… bytes of its workflow", 26_610, _of(one_run, "bytes", one_step(), 7.0)),
    Row("KFP run of three steps: pods", 7, _of(one_run, "pods", UNCACHED, 13.0)),
    Row("… updates of its workflow", 9, _of(one_run, "updates", UNCACHED, 13.0)),
    Row("… events", 50, _of(one_run, "events", UNCACHED, 13.0)),
    Row("… requests of the controller", 76, _of(one_run, "requests", UNCACHED, 13.0)),
    Row("… bytes of its workflow", 59_495, _of(one_run, "bytes", UNCACHED, 13.0)),
    Row("… s from its creation to its end", 80.8, _of(one_run, "over", UNCACHED, 13.0)),
    Row("… s from a pod's end to the next pod, median", 6.95, _of(one_run, "gap", UNCACHED, 13.0)),
    Row("the same, cached: pods", 4, _of(one_run, "pods", TRAINING, 13.0, 2)),
    Row("… updates of its workflow", 5, _of(one_run, "updates", TRAINING, 13.0, 2)),
    Row("… events", 38, _of(one_run, "events", TRAINING, 13.0, 2)),
    Row("40 CreateRun one at a time: all answered after s", 6.0, _of(submissions, "over", 40, 1)),
    Row("… median, s", 0.197, _of(submissions, "median", 40, 1)),
    Row("… fastest, s", 0.025, _of(submissions, "fastest", 40, 1)),
    Row("60 CreateRun 8 at a time: all answered after s", 10.0, _of(submissions, "over", 60, 8)),
    Row("… median, s", 1.6, _of(submissions, "median", 60, 8)),
    Row("s from a change of a workflow until a poll each second sees it", 1.15, _of(agent, "seen")),
    Row("GET /runs of 100 waiting runs, page of 1, ms", 5.6, _of(listings, "100, 1")),
    Row("… page of 20", 10, _of(listings, "100, 20")),
    Row("… page of 100", 28, _of(listings, "100, 100")),
    Row("GET /runs of 1,000 runs, page of 1, ms", 9.5, _of(listings, "1000, 1")),
    Row("… page of 20 that wait", 21, _of(listings, "1000, 20"), _NOISE),
    Row("… page of 20 that are over, 24 tasks each", 74, _of(listings, "1000, 20 over")),
    Row("… page of 100 that wait", 49, _of(listings, "1000, 100")),
    Row("… page of 200, half of them over", 332, _of(listings, "1000, 200")),
    Row("… all five pages of 200, s", 3.3, _of(listings, "all")),
)  # fmt: skip


def table() -> str:
    """The rows as a Markdown table."""
    lines = ["| what | measured | simulated | difference |", "|---|---|---|---|"]
    for row in ROWS:
        note = f" ({row.unless})" if row.unless else ""
        lines.append(f"| {row.what} | {row.real:,g} | {_short(row.simulated())} | {100 * row.off:+.0f} %{note} |")
    return "\n".join(lines)


def _short(value: float) -> str:
    return f"{float(f'{value:.3g}'):,g}"


if __name__ == "__main__":
    print(table())
