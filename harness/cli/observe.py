"""``pipeswarm observe``: records a platform into a run folder until it is told to stop."""

import argparse
import os
import signal
import threading
from pathlib import Path

from harness.model.errors import ExitCode


def configure(parser: argparse.ArgumentParser) -> None:
    """The verb's options."""
    parser.add_argument("--run", type=Path, required=True, help="the run folder to record into")
    parser.add_argument("--kube-context", default="", help="context of the kubeconfig")
    parser.add_argument("--prometheus", default="", help="address of a Prometheus")
    parser.add_argument("--die-with-parent", action="store_true", help="end when the starting process is gone")


def run(arguments: argparse.Namespace) -> int:
    """Observe until SIGTERM or SIGINT. The platform's token comes from the environment (PIPESWARM_TOKEN)."""
    from harness.collectors.observer import ObserverSettings, observe
    from harness.store.folder import RunFolder
    from harness.targets.target import find

    folder = RunFolder.open(arguments.run)
    plan = folder.read_plan()
    target = find(plan.target).from_plan(plan)
    settings = ObserverSettings(
        host=plan.host,
        token=os.environ.get("PIPESWARM_TOKEN", ""),
        namespace=str(plan.target_options.get("namespace", "")),
        kube_context=arguments.kube_context or None,
        prometheus=arguments.prometheus or None,
    )
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    if arguments.die_with_parent:
        threading.Thread(target=_stop_with_parent, args=(stop,), daemon=True).start()
    observe(folder, target, settings, stop)
    return ExitCode.OK


def _stop_with_parent(stop: threading.Event) -> None:
    """Set `stop` once this process has been handed to another parent: whoever started it is gone."""
    parent = os.getppid()
    while not stop.wait(1.0):
        if os.getppid() != parent:
            stop.set()
