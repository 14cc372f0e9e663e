"""``pipeswarm import FILE …``: make a run folder and its report from dumps, without a cluster."""

import argparse
import os
import shutil
import sys
import time
from pathlib import Path

from harness.cli import printing
from harness.cli.look import observe, rebuilding
from harness.collectors.collector import Observation, ObserverSettings
from harness.collectors.importing import count_runs, import_files, latest_at, read_files, statuses_in
from harness.collectors.journal import Journal
from harness.collectors.runs.run_watch import OFFLOADED
from harness.model.argo.nodes import is_offloaded
from harness.model.errors import ConfigError
from harness.store.folder import KINDS, RunFolder
from harness.targets.discovery import find


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``import``."""
    parser.add_argument(
        "files", type=Path, nargs="+", metavar="FILE",
        help="JSON from kubectl get nodes,pods,events,pvc,workflows -A -o json, GET /runs, or Prometheus' query_range",
    )  # fmt: skip
    observe.configure_folder(parser)
    printing.configure_effects(parser)
    printing.configure(parser)


def _check(folder: RunFolder) -> None:
    """Read what was recorded once: a file may hold values that are none in a record.

    Raises:
        ConfigError: a record can't be read.
    """
    try:
        for kind in KINDS:
            folder.records(kind)
    except ConfigError as error:
        value = error.message.removeprefix(f"{folder.path}{os.sep}")
        raise ConfigError(
            f"the files hold a value that can't be recorded: {value}", "give unchanged responses"
        ) from error


def run(arguments: argparse.Namespace) -> int:
    """Record the files and write the report; files without a run leave no folder behind."""
    plan = observe.plan_of(arguments, "", 0)
    dumps = read_files(arguments.files)
    target = find(plan.target).from_plan(plan)
    if not count_runs(dumps, target):
        raise ConfigError(
            f"no run is listed in {', '.join(map(str, arguments.files))}",
            "add the platform's list of runs, as from GET /apis/v2beta1/runs?page_size=200; "
            "for workflows of Argo's own give --target argo",
        )
    folder = observe.new_folder(arguments, plan, "imported", len(dumps))
    try:
        shown_at = latest_at(dumps)
        with folder.recorder() as recorder:
            journal = Journal(recorder, now=(lambda: shown_at) if shown_at else time.time_ns)
            settings = ObserverSettings(host="")
            counts = import_files(
                Observation(folder=folder, plan=plan, target=target, settings=settings, journal=journal), dumps
            )
        _check(folder)
    except BaseException:
        shutil.rmtree(os.fspath(folder))
        raise
    if lost := sum(map(is_offloaded, statuses_in(dumps))):
        print(f"warning: {lost:,} workflows without their nodes. {OFFLOADED}", file=sys.stderr)
    found = ", ".join(f"{count:,} × {kind}" for kind, count in sorted(counts.items()))
    print(f"imported {found} into {folder.path}", file=sys.stderr)
    return rebuilding.write(folder, arguments)
