"""Stories that tests of several rooms tell."""

import numpy as np

from harness.model.phases import POD_CPU_CORES, POD_MEMORY_BYTES, RUNNING, UNSCHEDULABLE
from tests.support.timelines import GIB, Story

_MI = 2**20


def stairs(per_node_hour, *, work=30.0, stretch=600.0, steps=(1, 2, 3, 4, 6, 8)):
    """Nodes come at equal intervals; each number of nodes ends runs at its own steady rate, with pods always waiting."""
    story = Story()
    ready = 0
    for k, count in enumerate(steps):
        for node in range(ready, count):
            story.node(f"n{node}", k * stretch - 1, k * stretch)
        ready, gap = count, 3600 / per_node_hour(count)
        for at in work + np.arange(k * stretch + gap, (k + 1) * stretch, gap):
            run = story.submit(story.intended, due=0.0, lag=0.0, service=0.0)
            story.pod(run, "a", "n0", (UNSCHEDULABLE, 0.0, at - work), (RUNNING, at - work, at))
            story.run(run, 0.0, at)
            story.intended += 1
    return story


def measured(runs=20, *, limit=None, oom=False):
    """Runs of `prepare` then `train` beside `watch`; train uses 1.00 … 1.95 cores and 500 … 595 MiB."""
    story = Story(intended=runs)
    story.node("n", -10, -5, cpu=4.0, memory=8 * GIB)
    for seq in range(runs):
        run = story.submit(seq)
        story.pod(run, "prepare-driver", "n", (RUNNING, 0, 1))
        story.pod(run, "prepare", "n", (RUNNING, 1, 10))
        story.pod(run, "train", "n", (RUNNING, 10, 60))
        story.pod(run, "watch", "n", (RUNNING, 10, 30))
        used = 1.0 + 0.05 * seq
        for at in (20, 35, 50):
            story.sample(at, POD_CPU_CORES, min(used, limit or 9e9), pod=f"{run}-train")
            story.sample(at, POD_MEMORY_BYTES, (500 + 5 * seq - (at == 35)) * _MI, pod=f"{run}-train")
        story.sample(5, POD_CPU_CORES, 0.2, pod=f"{run}-prepare")
        story.sample(5, POD_MEMORY_BYTES, 100 * _MI, pod=f"{run}-prepare")
        story.sample(20, POD_CPU_CORES, 0.01, pod=f"{run}-watch")
        story.sample(20, POD_MEMORY_BYTES, 30 * _MI, pod=f"{run}-watch")
        story.sample(0.5, POD_CPU_CORES, 3.0, pod=f"{run}-prepare-driver")
        story.run(run, 0.0, 61.0)
    if oom:
        story.event(40, "Pod", "run-0003-train", "OOMKilled", run="run-0003")
    return story


def waiting(*waits, ends_s=200.0):
    """A pod for each (start, end) of a wait without a node; no end is still waiting."""
    story = Story(intended=len(waits))
    for seq, (start, end) in enumerate(waits):
        run = story.submit(seq)
        stretches = [] if start is None else [(UNSCHEDULABLE, start, end)]
        if end is not None:
            stretches.append((RUNNING, end, end + 1.0))
        story.pod(run, "train", None if end is None else "n", *stretches)
        story.run(run, 0.0, None if end is None else end + 2.0)
    story.event(ends_s, "Test", "test", "DrainTimedOut")
    return story


def lasting(*seconds):
    """Runs of one pod each, which begins when its run is answered and ends a second before it."""
    story = Story(intended=len(seconds))
    for seq, lasts in enumerate(seconds):
        run = story.submit(seq, lag=0.0, service=1.0)
        story.pod(run, "train", "n", (RUNNING, 1.0, lasts - 1.0))
        story.run(run, 0.0, float(lasts))
    return story
