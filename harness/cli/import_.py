"""``pipeswarm import FILE …``: a run folder and its report from dumps, without a cluster."""

import argparse
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli import printing
from harness.model.errors import ConfigError

if TYPE_CHECKING:
    from harness.model.plan import Plan
    from harness.store.folder import RunFolder


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
    """Record what the files hold, and write the report; no folder is left of files that make no run."""
    from harness.cli import observe, report

    plan = observe.plan_of(arguments, "", 0)
    folder = observe.new_folder(arguments, plan, "imported", len(arguments.files))
    try:
        counts = _record(folder, plan, arguments.files)
    except BaseException:
        shutil.rmtree(os.fspath(folder))
        raise
    found = ", ".join(f"{count:,} × {kind}" for kind, count in sorted(counts.items()))
    print(f"imported {found} into {folder.path}", file=sys.stderr)
    return report.write(folder, arguments)


def _record(folder: "RunFolder", plan: "Plan", files: Sequence[Path]) -> Mapping[str, int]:
    """Record the files' objects; how many there are of each kind.

    Raises:
        ConfigError: a file can't be understood, or none of them lists a run.
    """
    from harness.collectors.collector import Observation, ObserverSettings
    from harness.collectors.importing import import_files
    from harness.collectors.journal import Journal
    from harness.targets.target import find

    target = find(plan.target).from_plan(plan)
    with folder.recorder() as recorder:
        counts = import_files(Observation(folder, plan, target, ObserverSettings(""), Journal(recorder)), files)
    if not counts.get("Run"):
        raise ConfigError(
            f"no run is listed in {', '.join(map(str, files))}",
            "add what the platform's list of runs answers, as GET /apis/v2beta1/runs?page_size=200",
        )
    return counts
