"""``pipeswarm import FILE …``: a run folder and its report from dumps, without a cluster."""

import argparse
import os
import shutil
import sys
from pathlib import Path

from harness.cli import printing
from harness.model.errors import PipeswarmError


def configure(parser: argparse.ArgumentParser) -> None:
    """The verb's options."""
    from harness.cli import observe

    parser.add_argument(
        "files", type=Path, nargs="+", metavar="FILE",
        help="JSON: kubectl get nodes,pods,events,pvc,workflows -A -o json, GET /runs, Prometheus' answers",
    )  # fmt: skip
    observe.configure_folder(parser)
    printing.configure(parser)


def run(arguments: argparse.Namespace) -> int:
    """Record what the files hold, and write the report; no folder is left when a file can't be understood."""
    from harness.cli import observe, report
    from harness.collectors.collector import Observation, ObserverSettings
    from harness.collectors.importing import import_files
    from harness.collectors.journal import Journal
    from harness.targets.target import find

    plan = observe.plan_of(arguments, "", 0)
    target = find(arguments.target).from_plan(plan)
    folder = observe.new_folder(arguments, plan, "imported", len(arguments.files))
    try:
        with folder.recorder() as recorder:
            journal = Journal(recorder)
            counts = import_files(Observation(folder, plan, target, ObserverSettings(""), journal), arguments.files)
    except PipeswarmError:
        shutil.rmtree(os.fspath(folder))
        raise
    found = ", ".join(f"{count:,} × {kind}" for kind, count in sorted(counts.items())) or "nothing"
    print(f"imported {found} into {folder.path}", file=sys.stderr)
    return report.write(folder, arguments)
