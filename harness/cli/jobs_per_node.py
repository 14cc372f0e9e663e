"""``pipeswarm jobs-per-node``: how many runs one node of a pool takes, tried out, and what stops one more."""

import argparse
import json
import sys
from collections import defaultdict
from dataclasses import asdict
from graphlib import TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.cli import printing
from harness.model.arguments import count, duration, duration_above_0
from harness.model.errors import ConfigError, ExitCode
from harness.model.units import counted

if TYPE_CHECKING:
    from harness.planning.jobs_per_node import JobsPerNode, Room

_DRIVER = (0.1, 64 * 2**20)  # what KFP requests for a driver pod


def configure(parser: argparse.ArgumentParser) -> None:
    """The verb's options."""
    parser.epilog = (
        "The pool must be empty, with one node or none, and its autoscaler must be allowed to add a second one. "
        "The steps must go to this pool only (node selector)."
    )
    parser.add_argument("--host", help="address of Kubeflow Pipelines (default: KF_PIPELINES_ENDPOINT)")
    parser.add_argument("--pipeline", type=Path, help="compiled IR of the pipeline (default: the built-in example)")
    parser.add_argument("--namespace", default="kubeflow", help="of the runs' pods (default: kubeflow)")
    parser.add_argument("--kube-context", help="context of the kubeconfig (default: its current one)")
    parser.add_argument("--pool", default="", help="the node pool (default: the only one without taints)")
    parser.add_argument("--most", type=count, metavar="K", help="never more runs (default: four times the estimate)")
    parser.add_argument(
        "--repetitions", type=count, default=3, metavar="R", help="of the trials that decide (default: 3)"
    )
    parser.add_argument(
        "--trial", type=duration_above_0, default="1h", metavar="T", help="longest time for one trial (default: 1h)"
    )
    parser.add_argument("--token-file", default="", help="file with the bearer token (or environment PIPESWARM_TOKEN)")
    parser.add_argument(
        "--settle", type=duration, default="30m", metavar="T", help="longest wait for an empty pool (default: 30m)"
    )
    printing.configure(parser)


def run(arguments: argparse.Namespace) -> int:
    """Estimate, try, conclude."""
    from harness.plan.environment import bearer_token, platform_host
    from harness.planning import jobs_per_node as machine
    from harness.planning.node_pool_trial import ClusterPool, PoolSettings
    from harness.planning.search import Tally

    host = arguments.host or platform_host("KF_PIPELINES_ENDPOINT")
    if not host:
        raise ConfigError("there is no platform to try it on", "give --host, or set KF_PIPELINES_ENDPOINT")
    settings = PoolSettings(
        host, bearer_token(arguments.token_file), arguments.namespace, arguments.kube_context, arguments.pool,
        arguments.pipeline, arguments.trial, arguments.settle,
    )  # fmt: skip
    pool = ClusterPool(settings, lambda text: print(text, file=sys.stderr, flush=True))
    pool.settle()
    room, one = pool.room(), run_room(pool.package)
    estimated = machine.estimate(room, one) if room else None
    search = machine.search(arguments.most or 4 * max(estimated or 4, 4), estimated, arguments.repetitions)
    trials: list[machine.Trial] = []
    tallies: dict[int, Tally] = {}
    while (at := search.next(tallies)) is not None:
        pool.settle()
        trials.append(pool.trial(at + 1))
        tallies[at] = tallies.get(at, Tally()).after(passed=trials[-1].verdict.fits)
    found = machine.conclude(search, trials, estimated)
    printing.show(arguments, lambda: _text(pool.pool, found, search.count), lambda: _json(pool.pool, found, room, one))
    return ExitCode.OK


def run_room(package: bytes) -> "Room":
    """The most that one run of a compiled pipeline requests at once, by the levels of its task graph."""
    import yaml

    from harness.cli.resources import current_resources
    from harness.planning.jobs_per_node import Room

    spec = next(yaml.load_all(package, Loader=yaml.CSafeLoader))
    asked = current_resources(package)
    tasks: dict[str, Any] = spec.get("root", {}).get("dag", {}).get("tasks", {})
    before = {name: task.get("dependentTasks", ()) for name, task in tasks.items()}
    level: dict[str, int] = {}  # how many tasks have to be over, one after the other, before this one
    rows: defaultdict[int, list[tuple[float, float]]] = defaultdict(list)
    for name in TopologicalSorter(before).static_order():
        level[name] = 1 + max((level[other] for other in before[name]), default=-1)
        needs = asked.get(name)
        cpu, memory = (needs.cpu_request or 0.0, needs.memory_request or 0.0) if needs else (0.0, 0.0)
        rows[level[name]].append((max(cpu, _DRIVER[0]), max(memory, _DRIVER[1])))
    together = rows.values() or [[_DRIVER]]
    return Room(
        max(sum(cpu for cpu, _ in row) for row in together),
        max(sum(memory for _, memory in row) for row in together),
        max(map(len, together)),
    )


def _json(pool: str, found: "JobsPerNode", room: "Room | None", one: "Room") -> str:
    document = asdict(found) | {"pool": pool, "room": asdict(room) if room else None, "run": asdict(one)}
    return json.dumps(document, indent=2)


def _text(pool: str, found: "JobsPerNode", most: int) -> str:
    lines = [f"One node of pool '{pool}' takes {counted(found.jobs, 'run')} at a time."]
    if found.stopped_by:
        lines.append(f"  stopped by     {found.stopped_by}, with {found.jobs + 1}")
    elif found.jobs == most:
        lines.append(f"  stopped by     nothing: no more than {most} were allowed to be tried (--most)")
    lines.append(f"  estimate       {'none: the pool was empty' if found.estimate is None else found.estimate}")
    tried = ", ".join(f"{trial.jobs} {'yes' if trial.verdict.fits else 'no'}" for trial in found.trials)
    lines.append(f"  tried          {tried}")
    lines += [f"  warning        trials with {counted(jobs, 'run')} speak against it" for jobs in found.contradictions]
    return "\n".join(lines)
