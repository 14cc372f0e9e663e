"""The options of commands that simulate many tests."""

import argparse
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from harness.model.arguments import count

if TYPE_CHECKING:
    from harness.planning.sweeps import DaskWorkers, SweepProgress, Workers


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--jobs", type=count, metavar="N", help="simulate in N processes (default: one per core)")
    parser.add_argument(
        "--scheduler", default="", metavar="tcp://HOST:PORT",
        help="simulate on the workers of this Dask scheduler, which have the same pipeswarm; choose one that you trust",
    )  # fmt: skip


def workers(
    arguments: argparse.Namespace, progress: "SweepProgress"
) -> "AbstractContextManager[Workers | DaskWorkers]":
    """What to simulate on; `progress` is called for every result."""
    from harness.planning.sweeps import open_workers, usable_cores

    return open_workers(arguments.jobs or usable_cores(), arguments.scheduler, progress)
