"""Faults of nodes, their autoscaler and images, and of the services on them."""

from collections.abc import Mapping
from dataclasses import replace

from harness.model import Event, Node, Submission
from harness.model.phases import NODE_CPU_CORES, REQUESTED_CPU_CORES, RUNNING, SCHEDULING, STARTING
from harness.reasons import stated
from tests.support.injected.loads import NODES, steady, with_volume
from tests.support.timelines import Story


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


def image_missing() -> Story:
    """Every tenth run waits for good for an image."""
    story = steady()
    story.intended = 90
    for seq in range(80, 90):
        run = story.submit(seq, due=2.0 * seq)
        words = 'Back-off pulling image "registry.example/train:1": ErrImagePull: registry.example/train:1: not found'
        reason = stated("waiting", "ImagePullBackOff", words)
        stretches = (SCHEDULING, 161.0, 162.0), (STARTING, 162.0, None)
        pod = story.pod(run, "train", NODES[0], *stretches, reason=reason)
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


def busy_nodes() -> Story:
    story = steady()
    for second in range(0, 160, 5):
        for name in NODES:
            story.sample(second, NODE_CPU_CORES, 3.9 if second > 20 else 2.0, node=name)
    return story


def overstated(
    used: float = 0.3,
    *,
    wants: Mapping[str, float] | None = None,
    held: Mapping[str, float] | None = None,
    ephemeral: float = 0.0,
    room: float = 30.0,
) -> Story:
    """Pods wait `room` seconds for a node, as others of the test hold the nodes by their requests; they use `used` cores.

    `wants` is what a waiting pod requests, by metric, and `held` what the pod on each node does. `ephemeral` is what a
    node can allocate of ephemeral storage, in bytes.
    """
    story = steady(60, every=0.01, work=4.0, room=room)
    story.records = [record for record in story.records if not isinstance(record, Node)]
    runs = [record.run for record in story.records if isinstance(record, Submission) and record.run]
    for name, run in zip(NODES, runs, strict=False):
        story.node(name, -900, -890, gpu=1.0, ephemeral=ephemeral)
        story.pod(run, "holder", name, (RUNNING, 0.5, room + 2.0))
        for second in range(60):
            story.sample(second, NODE_CPU_CORES, used, node=name)
    requests = {"prepare": {REQUESTED_CPU_CORES: 1.0, **(wants or {})}, "holder": held or {REQUESTED_CPU_CORES: 3.5}}
    for task, amounts in requests.items():
        for metric, amount in amounts.items():
            story.sample(0.5, metric, amount, task=task)
    return story


def shared(cores: float = 3.0, runs: int = 12, room: float = 3.0) -> Story:
    """Pods wait `room` seconds for nodes of which `runs` other runs hold `cores` each."""
    story = steady(60, room=room)
    for k in range(runs):
        story.pod(f"theirs-{k}", "report", NODES[k % len(NODES)], (SCHEDULING, 1.0, 2.0), (RUNNING, 2.0, 150.0))
    story.sample(2.0, REQUESTED_CPU_CORES, cores, task="report")
    return story
