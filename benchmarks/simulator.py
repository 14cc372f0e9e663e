"""What a simulated pod costs: against the same model on simpy, as it grows, and served in wall time.

    python benchmarks/simulator.py [--runs 2000] [--nodes 200]

All CPU seconds are of one process and one core, best of three, ours and simpy's in turn, so that other work on the
machine slows both alike. The simpy model has the same stations with the same algorithms and draws the same
distributions, but it knows no failures, no retries and no pod's life: it keeps nothing but each run's end.
"""

import argparse
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from heapq import heapify, heappop, heappush
from math import inf, log2
from pathlib import Path
from random import Random
from typing import Any

import simpy

from harness.model import Scenario
from harness.simulator.fast import Arrival, simulate
from harness.simulator.kfp.records import OVER
from harness.simulator.platform import Platform
from harness.simulator.profile import Profile
from harness.simulator.profile_file import load_profile

PACKAGE = Path(__file__).parents[1] / "harness" / "targets" / "training.yaml"
PIPELINE = PACKAGE.read_bytes().replace(b"enableCache: true", b"enableCache: false")
STEPS = ((500, 512), (1000, 1024), (250, 256))  # thousandths of a core, MiB: as the pipeline requests
PODS_A_RUN = 7
REPEATS = 3


def profile(nodes: int) -> Profile:
    """Many equal machines that are all there, and a store nobody waits for."""
    base = load_profile("aks-20-nodes")
    pools = tuple(
        replace(pool, initial=nodes, min=nodes, max=nodes) if pool.name == "steps" else pool for pool in base.pools
    )
    fast = {"qps": 500.0, "burst": 1000}
    store = replace(base.store, capacity=1e15, bytes_per_s=1e12)
    return replace(
        base, pools=pools, autoscaler=None, store=store,
        api=replace(base.api, **fast), controller=replace(base.controller, **fast),
    )  # fmt: skip


def ours(its_profile: Profile, runs: int) -> float:
    """The model alone; returns when the mean run was over."""
    platform = Platform(its_profile, 1)
    version = platform.server.create_pipeline("", "", "", PIPELINE)
    (version,) = platform.server.versions_of(version.id)
    started = [platform.server.prepare_run(f"r{k}", "", version, {}, by_reference=True) for k in range(runs)]
    for run in started:
        platform.server.start_run(run, lambda _: None)
    while any(run.state not in OVER for run in reversed(started)):
        platform.loop.run(platform.loop.now + 60)
    return sum(run.finished or 0.0 for run in started) / runs


class Shared:
    """Processor sharing in virtual time, as `harness.simulator.stations.SharedCapacity`, on simpy's events."""

    def __init__(self, env: simpy.Environment, capacity: float) -> None:
        self.env, self.capacity, self.demand = env, capacity, 0.0
        self.virtual, self.updated, self.armed = 0.0, 0.0, inf
        self.jobs: list[tuple[float, int, float, simpy.Event]] = []
        self.count = 0

    def add(self, alone_s: float, demand: float) -> simpy.Event:
        self.advance()
        done = self.env.event()
        self.count += 1
        self.demand += demand
        heappush(self.jobs, (self.virtual + alone_s, self.count, demand, done))
        self.arm()
        return done

    def advance(self) -> None:
        self.virtual += (self.env.now - self.updated) * min(1.0, self.capacity / (self.demand or 1.0))
        self.updated = self.env.now

    def arm(self) -> None:
        if self.jobs:
            wait = (self.jobs[0][0] - self.virtual) * max(1.0, self.demand / self.capacity)
            if self.env.now + wait < self.armed:
                self.armed = self.env.now + wait
                self.env.timeout(max(0.0, wait)).callbacks.append(self.wake)

    def wake(self, _: simpy.Event) -> None:
        if self.env.now >= self.armed:
            self.armed = inf
        self.advance()
        while self.jobs and self.jobs[0][0] <= self.virtual + 1e-9:
            _, _, demand, done = heappop(self.jobs)
            self.demand -= demand
            done.succeed()
        self.arm()


class OnSimpy:
    """API server, controller, scheduler, kubelets and steps as processes and resources of simpy."""

    def __init__(self, its_profile: Profile, runs: int) -> None:
        self.profile, self.random = its_profile, Random(1)
        self.env = simpy.Environment()
        self.workers = simpy.Resource(self.env, its_profile.controller.workers)
        self.scheduler = simpy.Resource(self.env, 1)
        (pool,) = (each for each in its_profile.pools if not each.taints)
        cpu, memory = round((pool.cpu - pool.reserved_cpu) * 1000), int((pool.memory - pool.reserved_memory) / 2**20)
        self.free = [[cpu, memory, pool.pods, 0] for _ in range(pool.initial)]  # the last one counts changes
        self.whole = (cpu, memory)
        self.processors = [Shared(self.env, pool.cpu) for _ in self.free]
        self.link = Shared(self.env, its_profile.store.bytes_per_s)
        self.stream = its_profile.store.stream_bytes_per_s
        self.ranked: dict[tuple[int, int], list[tuple[float, int, int]]] = {}
        self.room = self.env.event()
        self.images: list[dict[int, float]] = [{} for _ in self.free]
        self.tokens = {"api": (its_profile.api.burst, 0.0), "pods": (its_profile.controller.burst, 0.0)}
        self.ends = 0.0
        for _ in range(runs):
            self.env.process(self.run())

    def take(self, bucket: str, rate: float, burst: int) -> simpy.Timeout:
        tokens, then = self.tokens[bucket]
        tokens = min(burst, tokens + (self.env.now - then) * rate) - 1
        self.tokens[bucket] = tokens, self.env.now
        return self.env.timeout(max(0.0, -tokens / rate))

    def run(self) -> Any:
        api = self.profile.api
        yield self.take("api", api.qps, api.burst)
        yield self.env.timeout(api.latency.sample(self.random, {}))
        yield from self.pod(100, 64, 0)
        size = 0.0
        for number, (cpu, memory) in enumerate(STEPS, 1):
            yield from self.pod(100, 64, 0)
            size = yield from self.pod(cpu, memory, number, size)
        yield from self.reconcile(make=False)
        yield self.env.timeout(self.profile.agent.lag_s + self.profile.agent.report_s)
        self.ends += self.env.now

    def reconcile(self, *, make: bool) -> Any:
        controller = self.profile.controller
        yield self.env.timeout(controller.requeue_s)
        with self.workers.request() as worker:
            yield worker
            yield self.env.timeout(controller.operation_s)
            yield self.take("pods", controller.qps, controller.burst)
            if make:
                yield self.take("pods", controller.qps, controller.burst)

    def pod(self, cpu: int, memory: int, step: int, size: float = 0.0) -> Any:
        yield from self.reconcile(make=True)
        node = yield from self.place(cpu, memory)
        yield from self.pull(node, step)
        yield self.env.timeout(self.profile.kubelet.start.sample(self.random, {}))
        if step:
            model = self.profile.steps[0]
            if step > 1:  # reads what the step before has left
                yield self.link.add(self.profile.store.request_s + size / self.stream, self.stream)
            use = model.cpu.sample(self.random, {})
            yield self.processors[node].add(model.duration.sample(self.random, {}), use)
            size = model.output.sample(self.random, {})
            yield self.link.add(self.profile.store.request_s + size / self.stream, self.stream)
        else:
            yield self.processors[node].add(self.profile.controller.driver.sample(self.random, {}), 0.05)
        self.change(node, -cpu, -memory, -1)
        room, self.room = self.room, self.env.event()
        room.succeed()
        return size

    def place(self, cpu: int, memory: int) -> Any:
        while True:
            with self.scheduler.request() as turn:
                yield turn
                yield self.env.timeout(self.profile.scheduler.pod_s)
                node = self.best(cpu, memory)
            if node is not None:
                self.change(node, cpu, memory, 1)
                return node
            yield self.room

    def rank(self, node: int) -> float:
        cpu, memory, *_ = self.free[node]
        return -(cpu / self.whole[0] + memory / self.whole[1])

    def best(self, cpu: int, memory: int) -> int | None:
        heap = self.ranked.get((cpu, memory))
        if heap is None:
            nodes = range(len(self.free))
            heap = self.ranked[cpu, memory] = [(self.rank(node), node, self.free[node][3]) for node in nodes]
            heapify(heap)
        while heap:
            _, node, version = heap[0]
            if self.free[node][3] == version and self.fits(node, cpu, memory):
                return node
            heappop(heap)
        return None

    def fits(self, node: int, cpu: int, memory: int) -> bool:
        free = self.free[node]
        return free[0] >= cpu and free[1] >= memory and free[2] > 0

    def change(self, node: int, cpu: int, memory: int, pods: int) -> None:
        free = self.free[node]
        free[0], free[1], free[2], free[3] = free[0] - cpu, free[1] - memory, free[2] - pods, free[3] + 1
        rank = self.rank(node)
        for (its_cpu, its_memory), heap in self.ranked.items():
            if self.fits(node, its_cpu, its_memory):
                heappush(heap, (rank, node, free[3]))

    def pull(self, node: int, image: int) -> Any:
        """Two images for a driver, three for a step, each once on a node, one after the other."""
        kubelet, there = self.profile.kubelet, self.images[node]
        for number in (image, 10, 11) if image else (image, 10):
            if number not in there:
                takes = kubelet.pull_overhead_s + kubelet.image_bytes / kubelet.pull_bytes_per_s
                there[number] = max(self.env.now, max(there.values(), default=0.0)) + takes
        ready = max(there[number] for number in ((image, 10, 11) if image else (image, 10)))
        if ready > self.env.now:
            yield self.env.timeout(ready - self.env.now)


def on_simpy(its_profile: Profile, runs: int) -> float:
    model = OnSimpy(its_profile, runs)
    model.env.run()
    return model.ends / runs


def cpu_of(work: Callable[[], object]) -> tuple[float, object]:
    """CPU seconds, without looking for garbage: nothing is, in either model."""
    gc.collect()
    gc.disable()
    begun = time.process_time()
    result = work()
    used = time.process_time() - begun
    gc.enable()
    return used, result


def against_simpy(runs: int, nodes: int) -> None:
    its_profile = profile(nodes)
    rows: dict[str, list[tuple[float, object]]] = {"ours": [], "simpy": []}
    for _ in range(REPEATS):
        rows["ours"].append(cpu_of(lambda: ours(its_profile, runs)))
        rows["simpy"].append(cpu_of(lambda: on_simpy(its_profile, runs)))
    (mine, mean), (theirs, their_mean) = min(rows["ours"]), min(rows["simpy"])
    print(f"{runs:,} runs, {PODS_A_RUN * runs:,} pods, {nodes:,} nodes\n")
    print("model                        CPU s  CPU µs a pod   mean run over at")
    print(f"ours, the whole model     {mine:8.2f}  {mine / runs / PODS_A_RUN * 1e6:12.1f}  {mean:14.0f} s")
    print(f"the same on simpy         {theirs:8.2f}  {theirs / runs / PODS_A_RUN * 1e6:12.1f}  {their_mean:14.0f} s")
    print(f"simpy / ours: {theirs / mine:.1f}\n")


_ONE = (
    "import json, resource, sys, time; sys.path.insert(0, '.'); from benchmarks.simulator import records; "
    "used = time.process_time(); count = records(int(sys.argv[1]), int(sys.argv[2])); "
    "print(json.dumps([time.process_time() - used, count, "
    "resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))"
)


def records(runs: int, nodes: int) -> int:
    """Everything that ends up in a run folder."""
    arrivals = [Arrival(0.0, Scenario(str(number), "run", {}, {})) for number in range(runs)]
    return sum(1 for _ in simulate(profile(nodes), PIPELINE, arrivals, seed=1))


def growth(sizes: list[int]) -> None:
    print("with all records     CPU s  µs a pod  µs / log2(pods)      MB")
    for runs in sizes:
        command = [sys.executable, "-c", _ONE, str(runs), str(max(10, runs // 10))]
        done = subprocess.run(command, cwd=Path(__file__).parents[1], check=True, capture_output=True, text=True)
        used, _, megabytes = json.loads(done.stdout)
        pods = runs * PODS_A_RUN
        micro = used / pods * 1e6
        print(f"{runs:>9,} runs {used:12.2f} {micro:9.1f} {micro / log2(pods):16.2f} {megabytes:7.0f}")
    print()


def served(submissions: int) -> None:
    """Submissions and list polls against a served platform, from this process: the server's own CPU time counts."""
    command = [sys.executable, "-m", "harness.simulator", "serve", "--profile", "demo", "--die-with-parent"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        try:
            used, slowest = _load(url, process.pid, submissions)
        finally:
            process.terminate()
    each = used * 1e3 / submissions
    print(
        f"served: {submissions:,} submissions cost the server {each:.2f} ms of CPU each, with what their pods do so far"
    )
    print(f"        99 of 100 were answered within {slowest * 1e3:.0f} ms")


def _load(url: str, pid: int, submissions: int) -> tuple[float, float]:
    import http.client

    connection = http.client.HTTPConnection(url.removeprefix("http://"))

    def post(path: str, body: bytes, kind: str) -> dict[str, Any]:
        connection.request("POST", path, body, {"Content-Type": kind})
        answer: dict[str, Any] = json.loads(connection.getresponse().read())
        return answer

    spec = json.dumps({"display_name": "r", "pipeline_spec": _spec()}).encode()
    before, waits = _cpu(pid), []
    for _ in range(submissions):
        begun = time.perf_counter()
        post("/apis/v2beta1/runs", spec, "application/json")
        waits.append(time.perf_counter() - begun)
    return _cpu(pid) - before, sorted(waits)[int(0.99 * len(waits))]


def _spec() -> Any:
    import yaml

    return yaml.safe_load(PIPELINE)


def _cpu(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 10_000], help="runs, a tenth in nodes")
    arguments = parser.parse_args()
    against_simpy(arguments.runs, arguments.nodes)
    growth(arguments.sizes)
    served(500)


if __name__ == "__main__":
    main()
