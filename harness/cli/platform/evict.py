"""``pipeswarm evict``: evict pods or nodes of a test at random, as a cloud does with spot machines."""

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from random import Random

from harness.cli import printing
from harness.collectors.kubernetes.evictions import EvictionApi
from harness.model.arguments import count_or_0, duration, duration_above_0, rate_above_0
from harness.model.errors import ConfigError, ExitCode
from harness.model.records import Submission
from harness.model.text.inert import for_output
from harness.model.units import counted, format_duration
from harness.planning.evictions import Attempt, Choice, Scope, Victim, choose_nodes, choose_pods, evict_at, instants
from harness.store.folder import RunFolder

_MOST_EVICTIONS = 10_000
_PODS = "workflows.argoproj.io/workflow"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    parser.epilog = (
        "Without --yes it only says what it would do. It evicts pods of runs, and nodes that hold nothing else besides "
        "DaemonSets; what else may be evicted has to be named by --allow."
    )
    parser.add_argument(
        "--selector", metavar="LABELS",
        help=f"which pods, or with --nodes which nodes (default of pods: {_PODS})",
    )  # fmt: skip
    parser.add_argument("--nodes", action="store_true", help="delete nodes instead of evicting pods")
    parser.add_argument("--rate", type=rate_above_0, default="6/h", help="evictions in all (default: 6/h)")
    parser.add_argument("--for", dest="for_s", type=duration_above_0, default="1h", help="how long (default: 1h)")
    parser.add_argument("--run", type=Path, metavar="FOLDER", help="only runs of this test, which may be in progress")
    parser.add_argument(
        "--allow", action="append", default=[], metavar="NAME",
        help="a pod or node that may be evicted although it is not the test's; may be repeated",
    )  # fmt: skip
    parser.add_argument("--namespace", default="kubeflow", help="namespace of the runs' pods (default: kubeflow)")
    parser.add_argument("--grace", type=count_or_0, metavar="SECONDS", help="grace period (default: each pod's own)")
    parser.add_argument(
        "--notice", type=duration, default="30s", help="from cordoning a node to deleting it (default: 30s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="the same seed draws the same instants (default: 0)")
    parser.add_argument("--kube-context", help="kubeconfig context (default: the current one)")
    parser.add_argument("--yes", action="store_true", help="do it")
    printing.configure(parser)


def run(arguments: argparse.Namespace) -> int:
    """Say what may be evicted; with ``--yes``, evict it at random instants."""
    if arguments.nodes and not arguments.selector:
        raise ConfigError("--nodes needs a --selector", "name labels of the nodes, such as agentpool=spot")
    if arguments.rate * arguments.for_s > _MOST_EVICTIONS:
        raise ConfigError(
            f"--rate times --for are more than {_MOST_EVICTIONS:,} evictions",
            "write the rate by hour, such as --rate 6/h",
        )
    cluster, random = EvictionApi(arguments.kube_context), Random(arguments.seed)
    due_s = instants(arguments.rate, arguments.for_s, random)
    choose, begun_s = _chooser(arguments, cluster), time.monotonic()
    now = choose()
    if arguments.nodes and not now.victims:
        raise ConfigError("no node may be evicted", _why_none(now))
    attempts: list[Attempt] = []
    if arguments.yes:
        evict = _evictor(arguments, cluster)
        for attempt in evict_at(due_s, choose, evict, lambda at_s: _wait_until(begun_s + at_s) - begun_s, random):
            attempts.append(attempt)
            print(for_output(_line(attempt)), file=sys.stderr, flush=True)
    printing.show(
        arguments, lambda: _text(arguments, now, len(due_s), attempts), lambda: _json(arguments, now, due_s, attempts)
    )
    return ExitCode.OK


def _chooser(arguments: argparse.Namespace, cluster: EvictionApi) -> Callable[[], Choice]:
    def choose() -> Choice:
        scope = _scope(arguments)
        if arguments.nodes:
            return choose_nodes(cluster.nodes(arguments.selector), cluster.pods(), scope)
        return choose_pods(cluster.pods(arguments.namespace, arguments.selector or _PODS), scope)

    return choose


def _scope(arguments: argparse.Namespace) -> Scope:
    """What is the test's now: a test in progress gets more runs."""
    if arguments.run is None:
        return Scope(arguments.namespace, allowed=arguments.allow)
    rows = RunFolder.open(arguments.run).records(Submission)
    return Scope(arguments.namespace, {row.run for row in rows if row.run is not None}, arguments.allow)


def _evictor(arguments: argparse.Namespace, cluster: EvictionApi) -> Callable[[Victim], str]:
    def evict(victim: Victim) -> str:
        if arguments.nodes:
            return cluster.delete_node(victim.name, lambda: time.sleep(arguments.notice))
        return cluster.evict_pod(victim.namespace, victim.name, arguments.grace)

    return evict


def _wait_until(instant_s: float) -> float:
    """Sleep until an instant of the monotonic clock; returns the present one."""
    time.sleep(max(0.0, instant_s - time.monotonic()))
    return time.monotonic()


def _why_none(choice: Choice) -> str:
    if not choice.refused:
        return "no node matches --selector: compare kubectl get nodes --show-labels"
    first = choice.refused[0]
    return f"{first.name} {first.reason}; to evict it all the same: --allow {first.name}"


def _line(attempt: Attempt) -> str:
    what = "" if attempt.victim is None else f"{attempt.victim}"
    said = f"evicted {what}" if not attempt.failure else f"not evicted: {what + ': ' if what else ''}{attempt.failure}"
    return f"{format_duration(attempt.at_s)}: {said}"


def _text(arguments: argparse.Namespace, now: Choice, due: int, attempts: list[Attempt]) -> str:
    kind = "node" if arguments.nodes else "pod"
    lines = [f"{counted(len(now.victims), kind)} may be evicted" + (", as of the start:" if now.victims else " now.")]
    lines += [f"  {victim}" for victim in now.victims]
    if now.refused:
        lines.append("Not evicted, unless named by --allow:")
        lines += [
            line
            for refused in now.refused
            for line in printing.wrapped(f"{refused.name} {refused.reason}", "  ", "    ")
        ]
    if arguments.yes:
        done = sum(not attempt.failure for attempt in attempts)
        lines.append(f"{counted(done, 'eviction')} of {due} in {format_duration(arguments.for_s)}.")
    else:
        planned = f"{counted(due, 'eviction')} in {format_duration(arguments.for_s)}"
        lines.append(f"Nothing was changed. With --yes: {planned}.")
    return "\n".join(lines)


def _json(arguments: argparse.Namespace, now: Choice, due_s: list[float], attempts: list[Attempt]) -> str:
    return json.dumps(
        {
            "dry_run": not arguments.yes,
            "due_s": due_s,
            "victims": [asdict(victim) for victim in now.victims],
            "refused": [asdict(refused) for refused in now.refused],
            "attempts": [asdict(attempt) for attempt in attempts],
        },
        indent=2,
    )
