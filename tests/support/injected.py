"""Handwritten tests with one fault each, as a cluster would show it."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import isfinite

from harness.model import Event, Node, Outcome, Submission
from harness.model.findings import Evidence
from harness.model.phases import (
    CACHED,
    COMPUTING,
    FAILED,
    GENERATOR_CPU,
    LIST_SECONDS,
    LOADING,
    NODE_CPU_CORES,
    PULLING,
    QUEUED,
    REQUESTED_CPU_CORES,
    RUNNING,
    RUNS_IN_FLIGHT,
    SCHEDULING,
    SENDING,
    STARTING,
    STORE_AVAILABLE_BYTES,
    STORE_CAPACITY_BYTES,
    STORING,
    SUCCEEDED,
    UNSCHEDULABLE,
)
from tests.support.injection.seen import RUNS_ONLY, seen
from tests.support.timelines import GIB, T0, Story, burst

NODES = tuple(f"node-{k}" for k in range(6))


def plausible(evidence: Evidence) -> bool:
    """Whether the value is finite and its statement has no negative time or share."""
    value = evidence.value
    possible = value is None or (isfinite(value) and (value >= 0 or "before the test" in evidence.statement))
    return possible and not re.search(r"(?<![\w.:-])-\d|\bnan\b|\binf\b", evidence.statement)


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


def with_volume(story: Story, share: float = 0.7) -> Story:
    for second in range(0, 160, 10):
        labels = {"volume": "seaweedfs-pvc", "namespace": "kubeflow"}
        story.sample(second, STORE_CAPACITY_BYTES, 20.0 * GIB, **labels)
        story.sample(second, STORE_AVAILABLE_BYTES, 20.0 * GIB * share, **labels)
    return story


def api_throttled() -> Story:
    story = burst(120, pool=12, slots=20)
    story.records = [r for r in story.records if type(r).__name__ != "Submission"]
    for seq in range(120):
        story.submit(seq, lag=0.0004 * seq, service=max(0.03, (seq - 10) / 5) + 0.03)
    return story


def api_errors() -> Story:
    story = steady()
    for seq in range(80, 100):
        story.submit(seq, due=2.0 * seq, outcome=Outcome.REJECTED, status=503, error="upstream connect error")
    story.intended = 100
    return story


def store_unreachable() -> Story:
    words = "unable to write outputs: Put http://seaweedfs:9000/: dial tcp: i/o timeout: timed out waiting for the condition"
    story = with_volume(steady(fails=lambda seq: words if seq % len(NODES) < 2 else ""))
    story.records = [r for r in story.records if getattr(r, "name", "") not in NODES[2:]]
    for name in NODES[2:]:
        story.node(name, -60, -50)
    return story


def autoscaled(message: str, *, reason: str = "TriggeredScaleUp", ready: float = 12.0, over: float = 40.0) -> Story:
    """Pods wait from 1 s to `over` for nodes; the first new node is ready at `ready`."""
    story = steady(60, every=0.01, work=4.0, room=over)
    story.event(2.0, "Pod", "p", reason, message)
    story.node("new-0", ready - 1, ready)
    return story


def db(message: str) -> Story:
    story = steady()
    for seq in range(80, 110):
        story.submit(seq, due=2.0 * seq, outcome=Outcome.REJECTED, status=500, error=message)
    story.intended = 110
    return story


def spot() -> Story:
    story = steady(work=20.0)
    story.records = [r for r in story.records if getattr(r, "name", "") not in NODES[:2]]
    for name in NODES[:2]:
        story.node(name, -900, -890, gone=60.0, spot=True)
    evicted = [
        r
        for r in story.records
        if getattr(r, "phase", "") == RUNNING and r.node in NODES[:2] and r.task in {"prepare", "train"}
    ]
    ends = round(60.0 * 1e9) + story.plan().started_at
    for span in evicted:
        if span.started_at < ends < span.ended_at:
            story.records.append(type(span)(**{**{f: getattr(span, f) for f in span.__slots__}, "ended_at": ends}))
            story.event(60.0, "Pod", span.step, "Failed", "node is shutting down", run=span.run)
    return story


def quota() -> Story:
    story = steady()
    words = 'pods "x-1" is forbidden: exceeded quota: compute, requested: requests.cpu=1, used: requests.cpu=20, limited: requests.cpu=20'
    story.event(20.0, "Task", "prepare", "PENDING", words, run="run-0010", type="Warning")
    return story


def waiting(target: str, message: str) -> Story:
    """Workflows wait before their first pod, and say why."""
    story = steady()
    story.target = target
    for seq in range(10, 20):
        story.event(20.0 + seq, "Task", "", "PENDING", message, run=f"run-{seq:04d}", type="Warning")
    return story


def piling_up() -> Story:
    """The number of finished workflows only grows."""
    story = steady()
    for second in range(0, 60, 15):
        for phase, count in (("Succeeded", 9_000 + second), ("Failed", 300), ("Running", 20)):
            story.sample(float(second), "argo_workflows", float(count), phase=phase)
    return story


def image_missing() -> Story:
    """Every tenth run waits for good for an image."""
    story = steady()
    story.intended = 90
    for seq in range(80, 90):
        run = story.submit(seq, due=2.0 * seq)
        pod = story.pod(run, "train", NODES[0], (SCHEDULING, 161.0, 162.0), (STARTING, 162.0, None))
        words = 'Back-off pulling image "registry.example/train:1": ErrImagePull: not found'
        story.event(165.0, "Pod", pod, "ImagePullBackOff", words, run=run, type="Warning")
        story.run(run, 160.0, None)
    return story


def evicted() -> Story:
    """The kubelet evicts every eighth run's first step, and says why."""
    words = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 88Mi."
    story = steady(fails=lambda seq: words if seq % 8 == 0 else "")
    ends = [r for r in story.records if isinstance(r, Event) and r.message == words]
    for each in ends:
        story.records.remove(each)
        story.records.append(replace(each, reason="Evicted"))
    return story


def generator_lag() -> Story:
    story = steady(lag=0.08)
    story.sample(30.0, GENERATOR_CPU, 0.97, worker="0")
    return story


def missed() -> Story:
    story = steady()
    story.intended = 100
    for seq in range(80, 100):
        story.submit(
            seq, due=170.0, lag=None, outcome=Outcome.MISSED, status=None, error="100 requests were in flight already"
        )
    return story


def unauthorized() -> Story:
    story = steady()
    story.intended = 100
    story.records.append(Event(T0, "Test", "test", "TokenExpires", "2026-01-01 12:00 UTC"))
    for seq in range(80, 100):
        story.submit(seq, due=160.0 + seq, outcome=Outcome.REJECTED, status=401, error="token has expired")
    return story


def censored() -> Story:
    story = steady()
    story.intended = 90
    for seq in range(80, 90):
        run = story.submit(seq, due=160.0)
        story.pod(run, "train", NODES[0], (RUNNING, 160.5, None))
    story.event(400.0, "Test", "test", "DrainTimedOut")
    return story


def capped(most: int = 5) -> Story:
    """60 runs at once, of which `most` may be active."""
    return steady(60, every=0.001, first=lambda seq: 0.5 + 20.5 * (seq // most))


def observer_gaps() -> Story:
    story = steady()
    story.event(40.0, "Observer", "kubernetes", "Gap", "no answer for 31 s")
    return story


def busy_nodes() -> Story:
    story = steady()
    for second in range(0, 160, 5):
        for name in NODES:
            story.sample(second, NODE_CPU_CORES, 3.9 if second > 20 else 2.0, node=name)
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


def adapter_errors() -> Story:
    words = ("SENDING_DATA_TO_ADAPTERS · AdapterHandlingException: 503", "HTTP 500 · Internal Server Error")
    return executed(fails=lambda seq: words[seq % 2] if seq % 5 < 2 else "")


def overstated(
    used: float = 0.3,
    *,
    wants: Mapping[str, float] | None = None,
    held: Mapping[str, float] | None = None,
    ephemeral: float = 0.0,
) -> Story:
    """Pods wait 30 s for a node, as others of the test hold the nodes by their requests; they use `used` cores.

    `wants` is what a waiting pod requests, by metric, and `held` what the pod on each node does. `ephemeral` is what a
    node can allocate of ephemeral storage, in bytes.
    """
    story = steady(60, every=0.01, work=4.0, room=30.0)
    story.records = [record for record in story.records if not isinstance(record, Node)]
    runs = [record.run for record in story.records if isinstance(record, Submission) and record.run]
    for name, run in zip(NODES, runs, strict=False):
        story.node(name, -900, -890, gpu=1.0, ephemeral=ephemeral)
        story.pod(run, "holder", name, (RUNNING, 0.5, 32.0))
        for second in range(0, 60, 5):
            story.sample(second, NODE_CPU_CORES, used, node=name)
    requests = {"prepare": {REQUESTED_CPU_CORES: 1.0, **(wants or {})}, "holder": held or {REQUESTED_CPU_CORES: 3.5}}
    for task, amounts in requests.items():
        for metric, amount in amounts.items():
            story.sample(0.5, metric, amount, task=task)
    return story


def slower_and_slower() -> Story:
    """Runs take longer and longer, and nothing but the platform's list of runs was read."""
    story = steady(gap=lambda seq: 0.3 + seq / 5)
    story.records = list(seen(story.records, without=RUNS_ONLY, whole=False))
    return story


def miscounted() -> Story:
    """Five runs are in flight by their timestamps, twelve by the listing."""
    story = steady(80, every=4.0)
    for second in range(10, 300, 10):
        story.sample(float(second), RUNS_IN_FLIGHT, 12.0)
    return story


def listed(takes: Callable[[int], float]) -> Story:
    """Healthy runs on a platform whose list requests take `takes(second)` seconds."""
    story = steady(80)
    for second in range(5, 80, 15):
        story.sample(float(second), LIST_SECONDS, takes(second), endpoint="ListRuns")
    return story


def cached() -> Story:
    """The task details of every third run report a task from the cache."""
    story = steady(60)
    for seq in range(0, 60, 3):
        story.event(90.0, "Task", "train", CACHED, run=f"run-{seq:04d}")
    return story


def shared(cores: float = 3.0, runs: int = 12, room: float = 3.0) -> Story:
    """Pods wait `room` seconds for nodes of which `runs` other runs hold `cores` each."""
    story = steady(60, room=room)
    for k in range(runs):
        story.pod(f"theirs-{k}", "report", NODES[k % len(NODES)], (SCHEDULING, 1.0, 2.0), (RUNNING, 2.0, 150.0))
    story.sample(2.0, REQUESTED_CPU_CORES, cores, task="report")
    return story


def noisy_tenants(*, slow: float = 3.0, batch: int = 8, steady: int = 24, own_scenario: bool = False) -> Story:
    """Two tenants send a run every 10 s; in the second half a third has `batch` runs in flight, and theirs slow down.

    With `own_scenario` the runs of the second half are of a scenario of their own.
    """
    story = Story(schedule={"name": "constant"})
    half_s = steady * 5.0

    def run(tenant: str, scenario: str, due: float, took: float) -> None:
        name = story.submit(story.intended, due=due)
        scenario_id = f"{tenant}-{scenario}"
        row = story.records[-1]
        story.records[-1] = replace(row, tenant=tenant, scenario_id=scenario_id, run_name=f"{scenario_id}-{scenario}")
        story.run(name, due, due + took)
        story.pod(name, "train", "node-1", (RUNNING, due + 0.1, due + took))
        story.intended += 1

    for k in range(steady):
        late = k * 10.0 >= half_s
        scenario = "large" if late and own_scenario else "small"
        run(("web", "reports")[k % 2], scenario, k * 10.0, 8.0 * (slow if late else 1.0) + k % 7 / 10)
    for k in range(batch * steady // 2):
        run("batch", "nightly", half_s + k * 10.0 / batch - 5.0, 10.0)
    return story


def controller(
    *, token_s: float | None = None, queued_s: float = 0.5, busy: float = 1.0, updates: float = 1.0, grows: bool = True
) -> Story:
    """A slow controller, and what its own metrics say: of an idle one by default."""
    story = backlog() if grows else steady(gap=lambda _: 7.0)
    for second in range(15, 165, 15):
        if token_s is not None:
            story.sample(second, "argo_client_wait_s", token_s, quantile="0.5")
        story.sample(second, "argo_queue_wait_s", queued_s, queue_name="workflow_queue", quantile="0.5")
        story.sample(second, "argo_working_workers", busy, queue_name="workflow_queue")
        labels = {"kind": "workflows", "verb": "Update", "status_code": "200"}
        story.sample(second, "argo_k8s_requests_per_s", updates, **labels)
        labels = {"kind": "pods", "verb": "Create", "status_code": "201"}
        story.sample(second, "argo_k8s_requests_per_s", 1.2 * updates, **labels)
    return story


def backlog() -> Story:
    """A controller that can't keep up."""
    return steady(gap=lambda seq: 0.3 + seq / 5, first=lambda seq: 0.5 + seq / 8)


def etcd(last: float, quota: float | None = 2.0 * GIB, first: float | None = None) -> Story:
    """The size of the cluster's etcd, from `first` to `last` bytes within the test."""
    story = steady()
    for k in range(11):
        size = last if first is None else first + (last - first) * k / 10
        story.sample(15.0 * k, "etcd_db_bytes", size)
        if quota is not None:
            story.sample(15.0 * k, "etcd_quota_bytes", quota)
    return story


INJECTED: dict[str, Callable[[], Story]] = {
    "noisy-neighbour": noisy_tenants,
    "store-full": lambda: burst(100, store_full_from=0.5),
    "store-slow": lambda: steady(store=8.0),
    "store-unreachable-from-old-nodes": store_unreachable,
    "api-throttled": api_throttled,
    "api-errors": api_errors,
    "controller-backlog": backlog,
    "controller-qps": lambda: controller(token_s=3.0, queued_s=9.0, busy=32.0, updates=20.0),
    "controller-workers": lambda: controller(token_s=0.005, queued_s=9.0, busy=4.0, updates=3.8),
    "controller-requeue": lambda: controller(grows=False),
    "parallelism-cap": capped,
    "agent-lag": lambda: steady(publish=lambda seq: 2.0 + seq),
    "nodes-exhausted": lambda: burst(100),
    "autoscaler-at-max": lambda: autoscaled("pod triggered scale-up: [{steps 6->7 (max: 7)}]"),
    "autoscaler-slow": lambda: autoscaled("pod triggered scale-up: [{steps 6->7 (max: 20)}]", ready=40.0),
    "autoscaler-failing": lambda: autoscaled("no capacity in zone 2", reason="FailedToScaleUpGroup"),
    "lock-wait": lambda: waiting("kfp", "Waiting for kubeflow/ConfigMap/my-semaphore/one lock. Lock status: 0/1"),
    "workflows-postponed": lambda: waiting(
        "argo", "Workflow processing has been postponed because too many workflows are already running"
    ),
    "workflow-too-large": lambda: db("workflow is longer than maximum allowed size. Size=1600000"),
    "etcd-nearly-full": lambda: etcd(1.8 * GIB),
    "etcd-full": lambda: db("etcdserver: mvcc: database space exceeded"),
    "finished-workflows": piling_up,
    "image-pull": lambda: steady(pull=9.0),
    "image-missing": image_missing,
    "node-pressure": evicted,
    "quota": quota,
    "oom": lambda: steady(fails=lambda seq: "OOMKilled: container main" if seq % 3 == 0 else ""),
    "db-connections": lambda: db("Error 1040: Too many connections"),
    "db-full": lambda: db("Error 1114: The table 'run_details' is full"),
    "db-slow-listing": lambda: listed(lambda second: 0.1 + second / 20),
    "cpu-starved": busy_nodes,
    "spot-evictions": spot,
    "driver-overhead": lambda: steady(driver=6.0, work=2.0),
    "clock-skew": lambda: steady(skew=7.0),
    "generator-lag": generator_lag,
    "missed-arrivals": missed,
    "credentials-refused": unauthorized,
    "caching": cached,
    "censoring": censored,
    "observer-gaps": observer_gaps,
    "too-few-samples": lambda: steady(10),
    "adapter-slow": lambda: executed(loading=lambda _: 1.5),
    "adapter-errors": adapter_errors,
    "slow-worker": lambda: executed(computing=lambda place: 2.0 if place == 1 else 0.5),
    "lb-imbalance": lambda: executed(
        replica=lambda seq: 0 if seq % 10 < 8 else 1 + seq % 2, queue=lambda place: 3.0 if place == 0 else 0.01
    ),
    "stranded-capacity": overstated,
    "runtime-saturated": lambda: executed(queue=lambda _: 9.0, computing=lambda _: 2.5),
    "unexplained-wait": slower_and_slower,
    "inconsistent-records": miscounted,
    "foreign-load": lambda: shared(cores=1.9),
    "failures": lambda: steady(fails=lambda seq: "exit code 3: no such column" if seq % 4 == 0 else ""),
}
