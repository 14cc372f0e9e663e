"""What a simulated pod costs: against the same platform on simpy, as it grows, as a command, and served in wall time.

    python benchmarks/simulator.py           # three minutes
    python benchmarks/simulator.py --long    # also 1,000,000 pods: some minutes more
    python benchmarks/simulator.py pods      # one part: simpy, growth, command, load, pods or memory

CPU seconds are of one process and one core, the best of a few tries, ours and simpy's in turn, so that other work on
the machine slows both alike. A server that is late while it has hardly anything to do says that the machine was busy.

On simpy it is the platform of tests/simulator/on_simpy.py, which the tests hold against ours pod by pod. It keeps each
pod's instants, too, but tells no witness and knows no deletions, evictions and faults. The bound is for a model as one
would write it, which looks at all nodes for each pod; ranking them is a part of our core. How much is left when simpy's
has the same ranking is told beside it: of the work for a pod, a third passes no time and is the same code in both.
"""

import argparse
import asyncio
import contextlib
import gc
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from math import log2
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from harness.model import Scenario
from harness.simulator.cluster.ranking import Ranks
from harness.simulator.fast import Arrival, simulate
from harness.simulator.kfp.records import OVER
from harness.simulator.platform import Platform
from harness.simulator.profile import Profile
from harness.simulator.profile_file import load_profile
from tests.simulator.on_simpy import simulated
from tests.simulator.simpy_parts import Search

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "harness" / "targets" / "training.yaml"
PIPELINE = PACKAGE.read_bytes().replace(b"enableCache: true", b"enableCache: false")
PODS_A_RUN = 7
MANY = 10_000  # runs
MOST = 142_858  # runs of 1,000,000 pods
TRIES = 3
IDLE = 0.6  # who is late with less than this share of a core was kept waiting by others
THOUSAND_NODES = """
pools: [{name: steps, cpu: %(cpu)s, memory: %(memory)s, initial: 1000, min: 1000, max: 1000}]
api: {qps: 1000, burst: 1000, latency: 1ms}
agent: {workers: 8}
store: {capacity: 900Ti, bytes_per_s: 1Ti}
"""
# Machines as most have; the controller's client is as fast as the API server's.
COMMAND = THOUSAND_NODES % {"cpu": 4, "memory": "16Gi"} + "controller: {qps: 500, burst: 1000, requeue_s: 2s}\n"
# The controller makes 50 pods a second, as large installations let it; the others wait.
SUBMITTED = THOUSAND_NODES % {"cpu": 64, "memory": "256Gi"} + "controller: {qps: 50, burst: 100, requeue_s: 2s}\n"
# Pods that go on for long, and are made 2,000 a second.
LIVE = (
    THOUSAND_NODES % {"cpu": 64, "memory": "256Gi"} + "controller: {qps: 2000, workers: 64, operation_s: 1ms}\n"
    "scheduler: {pod_s: 0.1ms}\nsteps: [{duration: 1h}]\n"
)
LIVE_PODS, WIDTH = 50_000, 100


class Table:
    """Prints each row as it is known; `missed` when one missed its bound on a machine that could have kept it."""

    def __init__(self) -> None:
        self.missed = False
        print(f"{'what':68}{'measured':>12}{'bound':>10}  verdict")

    def row(self, what: str, measured: str, bound: str = "", *, kept: bool = True, busy: bool = False) -> None:
        verdict = "" if not bound else "met" if kept else "machine is busy" if busy else "MISSED"
        self.missed |= verdict == "MISSED"
        print(f"{what:68}{measured:>12}{bound:>10}  {verdict}".rstrip(), flush=True)


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


# --- against simpy --------------------------------------------------------------------------------------------------


def ours(its_profile: Profile, runs: int) -> float:
    """The model alone; returns when the mean run was over."""
    platform = Platform(its_profile, 1)
    version = platform.server.catalogue.create_pipeline("", "", "", PIPELINE)
    (version,) = platform.server.catalogue.versions_of(version.id)
    started = [platform.server.prepare_run(f"r{k}", "", version, {}, by_reference=True) for k in range(runs)]
    for run in started:
        platform.server.start_run(run, lambda _: None)
    while any(run.state not in OVER for run in reversed(started)):
        platform.loop.run(platform.loop.now + 60)
    return sum(run.finished or 0.0 for run in started) / runs


def on_simpy(its_profile: Profile, runs: int, ranks: type[Ranks | Search]) -> float:
    return sum(run.finished or 0.0 for run in simulated(its_profile, PIPELINE, [0.0] * runs, 1, ranks)) / runs


def cpu_of(work: Callable[[], float]) -> tuple[float, float]:
    """CPU seconds, without looking for garbage: nothing is, in either model."""
    gc.collect()
    gc.disable()
    begun = time.process_time()
    result = work()
    used = time.process_time() - begun
    gc.enable()
    return used, result


def against_simpy(table: Table, runs: int = 2000, nodes: int = 200) -> None:
    its_profile = profile(nodes)
    models: dict[str, Callable[[], float]] = {
        "ours": lambda: ours(its_profile, runs),
        "on simpy, looking for a node among all": lambda: on_simpy(its_profile, runs, Search),
        "on simpy, with our ranking of nodes": lambda: on_simpy(its_profile, runs, Ranks),
    }
    tries = [{name: cpu_of(model) for name, model in models.items()} for _ in range(TRIES)]
    best = {name: min(each[name][0] for each in tries) for name in models}
    means = {name: tries[0][name][1] for name in models}
    print(f"\n{runs:,} runs, {PODS_A_RUN * runs:,} pods, {nodes:,} nodes, model alone")
    for name, used in best.items():
        table.row(f"CPU µs a pod, {name}", f"{used / runs / PODS_A_RUN * 1e6:.1f}")
    mine, plain, ranked = best.values()
    table.row("the same platform on simpy, × ours", f"{plain / mine:.1f}", "≥ 3", kept=plain >= 3 * mine)
    table.row("the same with our ranking of nodes, × ours", f"{ranked / mine:.1f}")
    off = max(abs(mean / means["ours"] - 1) for mean in means.values())
    table.row("mean end of a run, by how much the models differ", f"{off:.2%}", "< 1 %", kept=off < 0.01)


# --- growth ---------------------------------------------------------------------------------------------------------

_ONE = (
    "import json, resource, sys, time; from benchmarks.simulator import records; "
    "used = time.process_time(); records(int(sys.argv[1]), int(sys.argv[2])); "
    "print(json.dumps([time.process_time() - used, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))"
)


def records(runs: int, nodes: int) -> int:
    """Everything that ends up in a run folder."""
    arrivals = [Arrival(0.0, Scenario(str(number), "run", {}, {})) for number in range(runs)]
    return sum(1 for _ in simulate(profile(nodes), PIPELINE, arrivals, seed=1))


def alone(runs: int) -> tuple[float, float]:
    """CPU seconds and MB of a process that simulates so many runs on a tenth as many nodes."""
    command = [sys.executable, "-c", _ONE, str(runs), str(runs // 10)]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    used, megabytes = json.loads(done.stdout)
    return used, megabytes


def growth(table: Table, *, long: bool) -> None:
    print("\nall records of a test; a tenth as many nodes as runs")
    per_log: dict[int, float] = {}
    for runs in (1000, MANY, MOST) if long else (1000, MANY):
        used, megabytes = min(alone(runs) for _ in range(TRIES if runs < MOST else 1))
        pods = runs * PODS_A_RUN
        per_log[runs] = used / pods / log2(pods) * 1e6
        crowded = os.getloadavg()[0] > (os.cpu_count() or 1)  # others in a core's caches cost CPU seconds, too
        bounded = {"bound": "< 5", "kept": used < 5, "busy": crowded} if runs == MANY else {}
        table.row(f"{runs:,} runs, {pods:,} pods: CPU s", f"{used:.2f}", **bounded)
        bounded = {"bound": "< 1000", "kept": megabytes < 1000} if runs == MANY else {}
        table.row(f"{runs:,} runs, {pods:,} pods: MB", f"{megabytes:.0f}", **bounded)
    first, last = per_log[1000], per_log[max(per_log)]
    # A core's caches are a hundred times faster than its memory, which n log n doesn't know.
    most = 1.5
    name = f"CPU a pod / log(pods), {max(per_log) * PODS_A_RUN:,} pods × 7,000 pods"
    table.row(name, f"{last / first:.2f}", f"< {most}", kept=last < most * first)


def as_a_command(table: Table) -> None:
    """From the interpreter's start to the run folder on disk."""
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "thousand.yaml").write_text(COMMAND)
        command = [
            sys.executable, "-m", "harness.cli", "simulate", "run", "--profile", f"{place}/thousand.yaml",
            "--schedule", "burst", "--runs", str(MANY), "--runs-dir", place, "--no-report",
        ]  # fmt: skip
        used = []
        for _ in range(TRIES):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            used.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    table.row(f"pipeswarm simulate run --runs {MANY}, with its run folder: CPU s", f"{min(used):.2f}")


# --- served ---------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def served(text: str) -> Iterator[tuple[str, int, Path]]:
    """A platform in a process of its own: its address, its process, and what it says, as that it can't keep up."""
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "profile.yaml").write_text(text)
        said = Path(place) / "said"
        command = [sys.executable, "-m", "harness.simulator", "serve", "--profile", f"{place}/profile.yaml"]
        with (
            said.open("w") as errors,
            subprocess.Popen(
                [*command, "--die-with-parent"], cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True
            ) as process,
        ):
            assert process.stdout is not None
            try:
                yield json.loads(process.stdout.readline())["url"], process.pid, said
            finally:
                process.terminate()


class Client:
    """Submits by version, as a load test does."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.session, self.runs, self.pods = session, f"{url}/apis/v2beta1/runs", f"{url}/api/v1/pods"
        self.upload_to = f"{url}/apis/v2beta1/pipelines"
        self.body = b""

    async def upload(self, package: bytes) -> None:
        form = aiohttp.FormData()
        form.add_field("uploadfile", package, filename="pipeline.yaml")
        async with self.session.post(f"{self.upload_to}/upload?name=p", data=form) as answer:
            pipeline = (await answer.json())["pipeline_id"]
        async with self.session.get(f"{self.upload_to}/{pipeline}/versions") as answer:
            version = (await answer.json())["pipeline_versions"][0]["pipeline_version_id"]
        reference = {"pipeline_id": pipeline, "pipeline_version_id": version}
        self.body = json.dumps({"display_name": "r", "pipeline_version_reference": reference}).encode()

    async def submit(self) -> None:
        headers = {"Content-Type": "application/json"}
        async with self.session.post(self.runs, data=self.body, headers=headers) as answer:
            answer.raise_for_status()
            await answer.read()

    async def poll(self) -> None:
        async with self.session.get(f"{self.runs}?page_size=200&sort_by=created_at%20desc") as answer:
            answer.raise_for_status()
            await answer.read()

    async def list_pods(self, limit: int = 500, token: str = "") -> dict[str, Any]:
        """One page."""
        async with self.session.get(f"{self.pods}?limit={limit}&continue={token}") as answer:
            answer.raise_for_status()
            return await answer.json()


async def timed(call: Any, due: float, into: list[float]) -> None:
    await call()
    into.append(time.perf_counter() - due)


async def submissions(url: str, pid: int, seconds: float = 6.0) -> tuple[list[float], float]:
    """500 submissions and 20 polls a second; returns how long each took from when it was due, and the server's CPU."""
    took: list[float] = []
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        client = Client(session, url)
        await client.upload(PIPELINE)
        due = [(k / 500, client.submit) for k in range(int(500 * seconds))]
        due += [((k + 0.5) / 20, client.poll) for k in range(int(20 * seconds))]
        begun, before, tasks = time.perf_counter() + 0.1, cpu_s(pid), []
        for at, call in sorted(due, key=lambda each: each[0]):
            await asyncio.sleep(max(0.0, begun + at - time.perf_counter()))
            tasks.append(asyncio.create_task(timed(call, begun + at, took)))
        await asyncio.gather(*tasks)
        return sorted(took), (cpu_s(pid) - before) / (time.perf_counter() - begun)


def under_load(table: Table) -> None:
    print("\nserved: 500 submissions and 20 polls of 200 runs a second, on 1,000 nodes")
    tries = []
    for _ in range(TRIES):
        with served(SUBMITTED) as (url, pid, _said):
            took, share = asyncio.run(submissions(url, pid))
        tries.append((took[int(0.99 * len(took))] * 1e3, took[len(took) // 2] * 1e3, share))
        if tries[-1][0] < 50:
            break
    late, usual, share = min(tries)
    table.row("its share of a core", f"{share:.0%}", "< 100 %", kept=share < 1)
    table.row("answered within, half of them (ms)", f"{usual:.1f}")
    table.row("answered within, 99 of 100 (ms)", f"{late:.1f}", "< 50", kept=late < 50, busy=share < IDLE)


async def live(url: str, pid: int) -> tuple[int, float, float, float]:
    """Fill the platform, then list all pods.

    Returns how many run, the server's share of a core in either, and how long the longest page took.
    """
    async with aiohttp.ClientSession() as session:
        client = Client(session, url)
        await client.upload(wide(WIDTH))
        begun, before = time.perf_counter(), cpu_s(pid)
        runs = LIVE_PODS // WIDTH + 10  # the last ones may still be starting when all are there
        for _ in range(runs):
            await client.submit()
        everything = runs * (1 + 2 * WIDTH)
        while time.perf_counter() < begun + 120:
            page = await client.list_pods(limit=1)
            if page["metadata"].get("remainingItemCount", 0) >= everything:
                break
            await asyncio.sleep(1.0)
        filling = (cpu_s(pid) - before) / (time.perf_counter() - begun)
        await asyncio.sleep(5.0)  # until the last ones have started
        begun, before, token, longest, count = time.perf_counter(), cpu_s(pid), "", 0.0, 0
        while token is not None:
            asked = time.perf_counter()
            page = await client.list_pods(token=token)
            longest = max(longest, time.perf_counter() - asked)
            count += sum(pod["status"]["phase"] == "Running" for pod in page["items"])
            token = page["metadata"].get("continue") or None
        return count, filling, (cpu_s(pid) - before) / (time.perf_counter() - begun), longest


def wide(steps: int) -> bytes:
    """So many steps that do not wait for each other."""
    spec = next(yaml.safe_load_all(PIPELINE))
    tasks = spec["root"]["dag"]["tasks"]
    first = tasks["prepare"]
    spec["root"]["dag"] = {"tasks": {f"step-{k}": first | {"taskInfo": {"name": f"step-{k}"}} for k in range(steps)}}
    return yaml.safe_dump(spec).encode()


def many_pods(table: Table) -> None:
    print(f"\nserved: {LIVE_PODS:,} pods at once on 1,000 nodes")
    with served(LIVE) as (url, pid, said):
        count, filling, listing, longest = asyncio.run(live(url, pid))
        late = "behind the wall clock" in said.read_text()
    table.row("pods that run, as listed", f"{count:,}", f"≥ {LIVE_PODS:,}", kept=count >= LIVE_PODS)
    table.row("its share of a core while they came", f"{filling:.0%}", "< 100 %", kept=filling < 1)
    table.row("its share of a core while a client lists all, 500 a page", f"{listing:.0%}")
    table.row("the longest page (ms)", f"{longest * 1e3:.0f}")
    table.row("said that it could not keep up", "yes" if late else "no", "no", kept=not late, busy=filling < IDLE)


# --- memory over many clients ---------------------------------------------------------------------------------------

ROUNDS, CLIENTS, CALLS = 6, 300, 3_000
READS = ("/api/v1/nodes", "/api/v1/pods?limit=5", "/metrics", "/apis/v2beta1/runs", "/apis/metrics.k8s.io/v1beta1/pods",
         "/apis/v2beta1/runs/none", "/apis/v2beta1/runs?filter=%7B", "/nothing", "/api/v1/pods/none", "/")  # fmt: skip


async def watch(session: aiohttp.ClientSession, url: str) -> None:
    async with session.get(url) as answer:
        async for _ in answer.content.iter_any():
            pass


async def come_and_go(url: str) -> None:
    """Watches that are opened and hung up on, and calls of every kind meanwhile.

    No runs: of those the platform keeps a history, the events of an hour and what becomes of a deleted run.
    """
    without_end, tasks = aiohttp.ClientTimeout(total=None), set[asyncio.Task[None]]()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=without_end) as watching:
        for kind in ("nodes", "pods", "events"):
            for _ in range(CLIENTS // 3):
                tasks.add(asyncio.create_task(watch(watching, f"{url}/api/v1/{kind}?watch=1")))
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as session:
            for number in range(CALLS):
                async with session.get(url + READS[number % len(READS)]) as answer:
                    await answer.read()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.sleep(3.0)  # nobody asks


def memory(table: Table) -> None:
    print(f"\nserved: {ROUNDS} times {CLIENTS} watches and {CALLS:,} calls, each on a connection of its own")
    sizes = []
    with served("pools: [{name: steps, cpu: 16, memory: 64Gi, initial: 20, min: 20, max: 20}]") as (url, pid, _said):
        for _ in range(ROUNDS):
            asyncio.run(come_and_go(url))
            pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
            sizes.append(pages * os.sysconf("SC_PAGE_SIZE") / 2**20)
    table.row("MB after each", " ".join(f"{size:.1f}" for size in sizes))
    grown = (sizes[-1] - sizes[1]) * 1024 / (ROUNDS - 2) / (CLIENTS + CALLS)
    table.row("KB more for each call, from the second time on", f"{grown:.2f}", "< 1", kept=grown < 1)


def cpu_s(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--long", action="store_true", help="also 1,000,000 pods")
    parser.add_argument("parts", nargs="*", metavar="PART", help="simpy, growth, command, load, pods, memory; or all")
    arguments = parser.parse_args()
    parts: dict[str, Callable[[Table], None]] = {
        "simpy": against_simpy,
        "growth": partial(growth, long=arguments.long),
        "command": as_a_command,
        "load": under_load,
        "pods": many_pods,
        "memory": memory,
    }
    unknown = set(arguments.parts) - parts.keys()
    if unknown:
        parser.error(f"there is no part {', '.join(unknown)}: give {', '.join(parts)}")
    table = Table()
    for name in arguments.parts or parts:
        parts[name](table)
    return int(table.missed)


if __name__ == "__main__":
    sys.exit(main())
