"""``pipeswarm capacity jobs-per-node``: how many runs fit one node of a pool, by trial, and what limits it."""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from harness.cli import printing
from harness.collectors.http import Http, Timeouts
from harness.collectors.kubernetes.node_pools import NodePools
from harness.model.arguments import count, duration, duration_above_0
from harness.model.errors import ConfigError, ExitCode
from harness.model.text.inert import for_output
from harness.model.units import counted
from harness.plan.environment import credentials, platform_host
from harness.plan.options import CREDENTIALS
from harness.planning.jobs_per_node import JobsPerNode, NodeCapacity, RunRequests, estimate, find_jobs_per_node, search
from harness.planning.node_pool_trial import NodePoolTrials, TrialSettings
from harness.planning.pipeline_requests import run_requests
from harness.targets import kfp


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    parser.usage = "%(prog)s [options]"  # listed one by one they exceed 80 columns
    parser.epilog = (
        "The pool must be empty, with at most one node, and its autoscaler must be allowed to add a second one. "
        "A node selector must bind the steps to this pool; drivers may run elsewhere, as they do where it has a taint."
    )
    parser.add_argument("--host", help="address of Kubeflow Pipelines (default: KF_PIPELINES_ENDPOINT)")
    parser.add_argument("--pipeline", type=Path, help="compiled IR of the pipeline (default: the built-in example)")
    parser.add_argument("--namespace", default="kubeflow", help="namespace of the runs' pods (default: kubeflow)")
    parser.add_argument("--kube-context", help="kubeconfig context (default: the current one)")
    parser.add_argument("--pool", default="", help="the node pool (default: the only one without taints)")
    parser.add_argument("--most", type=count, metavar="K", help="try at most K runs (default: four times the estimate)")
    parser.add_argument(
        "--repetitions", type=count, default=3, metavar="R", help="repetitions of the deciding trials (default: 3)"
    )
    parser.add_argument(
        "--trial", type=duration_above_0, default="1h", metavar="T", help="time limit of one trial (default: 1h)"
    )
    for option in CREDENTIALS:
        option.add_to(parser)
    parser.add_argument(
        "--settle", type=duration, default="30m", metavar="T", help="longest wait for an empty pool (default: 30m)"
    )
    printing.configure(parser)


def run(arguments: argparse.Namespace) -> int:
    """Estimate how many runs fit on a node, try it out on the pool, and print the result."""
    host = arguments.host or platform_host("KF_PIPELINES_ENDPOINT")
    if not host:
        raise ConfigError("no platform is given", "give --host, or set KF_PIPELINES_ENDPOINT")
    given = credentials(arguments, kfp)
    cluster = NodePools(arguments.kube_context, arguments.namespace)
    exchange = Http("kfp", host, given, Timeouts(10.0, 60.0))
    settings = TrialSettings(arguments.pool, arguments.pipeline, arguments.trial, arguments.settle)
    trials = NodePoolTrials(
        settings, cluster, exchange, lambda text: print(for_output(text), file=sys.stderr, flush=True)
    )
    trials.settle()
    node, one = trials.node_capacity(), run_requests(trials.package, with_drivers=not trials.drives_elsewhere)
    estimated = estimate(node, one) if node else None
    most = arguments.most or 4 * max(estimated or 4, 4)
    jobs_per_node = find_jobs_per_node(search(most, estimated, arguments.repetitions), estimated, trials.trial)
    printing.show(
        arguments, lambda: _text(trials.pool, jobs_per_node, most), lambda: _json(trials.pool, jobs_per_node, node, one)
    )
    return ExitCode.OK


def _json(pool: str, found: JobsPerNode, node: NodeCapacity | None, one: RunRequests) -> str:
    more = {"pool": pool, "node_capacity": asdict(node) if node else None, "run_requests": asdict(one)}
    return json.dumps(asdict(found) | more, indent=2)


def _text(pool: str, found: JobsPerNode, most: int) -> str:
    lines = [f"One node of pool '{pool}' fits {counted(found.jobs, 'run')} at a time."]
    if found.stopped_by:
        lines.append(f"  limited by     {found.stopped_by}, with {counted(found.jobs + 1, 'run')}")
    elif found.jobs == most:
        lines.append(f"  limited by     --most: larger numbers than {most} were not tried")
    lines.append(f"  estimate       {'none: the pool was empty' if found.estimate is None else found.estimate}")
    tried = ", ".join(f"{trial.jobs} {'yes' if trial.verdict.fits else 'no'}" for trial in found.trials)
    lines.append(f"  tried          {tried}")
    lines += [f"  warning        trials with {counted(jobs, 'run')} contradict this" for jobs in found.contradictions]
    return "\n".join(lines)
