"""Loads that a platform sustains, and the arguments that slow them down."""

from collections.abc import Callable

from harness.model.phases import (
    COMPUTING,
    FAILED,
    LIMITS,
    LOADING,
    PULLING,
    QUEUED,
    RUNNING,
    SCHEDULING,
    SENDING,
    STARTING,
    STORE_AVAILABLE_BYTES,
    STORE_CAPACITY_BYTES,
    STORE_PROBE_SECONDS,
    STORING,
    SUCCEEDED,
    UNSCHEDULABLE,
    WORKFLOW,
)
from harness.model.records import Span
from tests.support.injection.seen import RUNS_ONLY, seen
from tests.support.timelines import GIB, Story, at

NODES = tuple(f"node-{k}" for k in range(6))


def one_at_a_time(limit: str = "parallelism=1 width=8", at_once: int = 1) -> Story:
    """Workflows of one task over a list of eight, so many at once, and what a workflow that was read states."""
    story = Story(intended=40, target="argo")
    for name in NODES:
        story.node(name, -900, -890)
    for seq in range(40):
        run = story.submit(seq, due=2.0 * seq)
        for item in range(8):
            now = 2.0 * seq + 0.3 + 5.0 * (item // at_once)
            step = f"{run}-{item}"
            for phase, start, end in ((STARTING, now, now + 0.4), (RUNNING, now + 0.4, now + 4.6)):
                story.records.append(Span(run, step, phase, at(start), at(end), "one", 0, NODES[0], "kubernetes", 1.0))
        story.run(run, 2.0 * seq, now + 5.0)
        if limit and seq == 0:
            story.event(5.0, WORKFLOW, run, LIMITS, limit, run=run)
    return story


def steady(
    count: int = 80,
    every: float = 2.0,
    *,
    gap: Callable[[int], float] = lambda _: 0.3,
    first: Callable[[int], float] = lambda _: 0.5,
    pull: float = 0.3,
    work: float = 8.0,
    store: float = 0.2,
    room: float = 0.0,
    driver: float = 0.3,
    publish: Callable[[int], float] = lambda _: 0.5,
    service: Callable[[int], float] = lambda _: 0.03,
    lag: float = 0.001,
    skew: float = 0.0,
    fails: Callable[[int], str] = lambda _: "",
) -> Story:
    """A load that the platform sustains: a run of two steps every two seconds. The arguments slow it down."""
    story = Story(intended=count)
    for name in NODES:
        story.node(name, -900, -890)
    for seq in range(count):
        due, node = every * seq, NODES[seq % len(NODES)]
        run = story.submit(seq, due=due, lag=lag, service=service(seq))
        created = due + service(seq) + skew
        now = created + first(seq)
        message = fails(seq)
        for task in ("prepare", "train"):
            pod = story.pod(
                run,
                f"{task}-driver",
                node,
                (STARTING, now, now + driver / 2),
                (RUNNING, now + driver / 2, now + driver),
            )
            now += driver + gap(seq)
            stretches = [(UNSCHEDULABLE, room)] if room and task == "prepare" else []
            stretches += [(SCHEDULING, 0.1), (PULLING, pull), (STARTING, 0.4), (RUNNING, work), (STORING, store)]
            placed = []
            for phase, length in stretches:
                placed.append((phase, now, now + length))
                now += length
            pod = story.pod(run, task, node, *placed)
            if message:
                story.event(now, "Pod", pod, "Error", message, run=run, type="Warning")
                break
            now += gap(seq)
        over = now + 0.2
        story.run(run, float(int(created)), over, FAILED if message else SUCCEEDED)  # KFP gives no reason
        end = story.records[-1]
        story.records[-1] = type(end)(
            **{**{f: getattr(end, f) for f in end.__slots__}, "at": round(end.at + publish(seq) * 1e9)}
        )
    return story


def slow_store() -> Story:
    """Steps store for long, and a probe of the store is slow, too."""
    story = steady(store=8.0)
    for second in range(5, 160, 10):
        story.sample(float(second), STORE_PROBE_SECONDS, 2.5, operation="PUT", bucket="mlpipeline")
    return story


def stopped() -> Story:
    """The controller does nothing for 40 s: what arrives or ends meanwhile waits, and is caught up with at once."""
    down_s, up_s = 56.0, 100.0
    return steady(first=lambda seq: up_s + 0.5 - 2.0 * seq if down_s <= 2.0 * seq <= up_s else 0.5, work=1.0)


def with_volume(story: Story, share: float = 0.7) -> Story:
    for second in range(0, 160, 10):
        labels = {"volume": "seaweedfs-pvc", "namespace": "kubeflow"}
        story.sample(second, STORE_CAPACITY_BYTES, 20.0 * GIB, **labels)
        story.sample(second, STORE_AVAILABLE_BYTES, 20.0 * GIB * share, **labels)
    return story


def full_volume() -> Story:
    """The database's volume has no space left, and no run says so."""
    story = steady()
    for second in range(0, 160, 10):
        labels = {"volume": "mysql-pv-claim", "namespace": "kubeflow"}
        story.sample(second, STORE_CAPACITY_BYTES, 20.0 * GIB, **labels)
        story.sample(second, STORE_AVAILABLE_BYTES, 0.0, **labels)
    return story


def executed(
    count: int = 120,
    *,
    replica: Callable[[int], int] = lambda seq: seq % 3,
    queue: Callable[[int], float] = lambda _: 0.01,
    loading: Callable[[int], float] = lambda _: 0.2,
    computing: Callable[[int], float] = lambda _: 0.5,
    fails: Callable[[int], str] = lambda _: "",
) -> Story:
    """Executions by a service of three replicas, a second apart; each response is the result."""
    story = Story(intended=count, target="hetida")
    for seq in range(count):
        place = replica(seq)
        jitter = 1 + (seq * 7 % 10) / 100
        lengths = (
            (QUEUED, queue(place)),
            (LOADING, loading(seq) * jitter),
            (COMPUTING, computing(place) * jitter),
            (SENDING, 0.1),
        )
        sent = float(seq)
        run = story.submit(seq, due=sent, lag=0.0, service=sum(length for _, length in lengths))
        now, placed = sent, []
        for phase, length in lengths:
            placed.append((phase, now, now + length))
            now += length
        message = fails(seq)
        if not message:
            story.pod(run, "anomaly", f"runtime-{place}", *placed)
        story.run(run, sent, now, FAILED if message else SUCCEEDED, message)
    return story


def capped(most: int = 5) -> Story:
    """60 runs at once, of which `most` may be active."""
    return steady(60, every=0.001, first=lambda seq: 0.5 + 20.5 * (seq // most))


def slower_and_slower() -> Story:
    """Runs take longer and longer, and nothing but the platform's list of runs was read."""
    story = steady(gap=lambda seq: 0.3 + seq / 5)
    story.records = list(seen(story.records, without=RUNS_ONLY, whole=False))
    return story


def watched(rates: dict[tuple[str, str], float], *, intended: int = 0) -> Story:
    """Runs of others, and what KFP's API server answered by method and gRPC code (requests a second)."""
    story = Story(intended=intended, schedule={})
    for seq in range(40):
        story.run(f"run-{seq:04d}", 2.0 * seq, 2.0 * seq + 20.0)
    for second in range(0, 120, 30):
        for (method, code), rate in rates.items():
            story.sample(float(second), "kfp_requests_per_s", rate, grpc_method=method, grpc_code=code)
    return story


# Of the requests to create runs, a tenth.
REFUSING = {("CreateRun", "OK"): 0.9, ("CreateRun", "Internal"): 0.08, ("CreateRun", "Unavailable"): 0.02}
