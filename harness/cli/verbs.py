"""The verbs of `pipeswarm`. `VERBS` is the table of contents: a verb, what it does, the module that does it.

A verb's module offers ``configure(parser)`` and ``run(arguments) -> int``. Only the module of the verb that was given
is imported, so that every start is quick.
"""

import argparse
import importlib
from collections.abc import Sequence
from importlib.metadata import version
from typing import Protocol, cast

VERBS: tuple[tuple[str, str, str], ...] = (
    ("options", "the options that a locustfile adds to Locust's own", "harness.cli.options"),
    ("report", "seal a run and write its reports again, from what was recorded", "harness.cli.report"),
    ("index", "one page that lists a folder's runs and how their figures move", "harness.cli.index"),
    (
        "observe",
        "record a platform under somebody else's load (beside ours it starts by itself)",
        "harness.cli.observe",
    ),
    ("diagnose", "say what holds a run back, also while it is going", "harness.cli.diagnose"),
    ("watch", "show in the terminal how a running test stands", "harness.cli.watch"),
    ("import", "make a run and its report from dumps: kubectl, runs, Prometheus", "harness.cli.import_"),
    ("capacity", "runs, time, nodes: two of them give the third, with an interval", "harness.cli.capacity"),
    ("compare", "variants against the first: change, interval, whether it may be chance", "harness.cli.compare"),
    ("resources", "what each step should request, and how many runs fit a node", "harness.cli.resources"),
    ("cleanup", "end, archive or delete the runs that a test created", "harness.cli.cleanup"),
    ("adapter", "a data adapter for hetida designer with planted limits: serve it", "harness.cli.adapter"),
    ("jobs-per-node", "how many runs one node takes, tried out, and what stops one more", "harness.cli.jobs_per_node"),
    ("experiment", "many tests over load, nodes and variants: a grid, or a search", "harness.cli.experiment"),
    ("simulate", "the simulated platform: serve it, run a test on it, list its profiles", "harness.cli.simulate"),
)


class Verb(Protocol):
    """What a verb's module offers."""

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Declare its arguments."""
        ...

    def run(self, arguments: argparse.Namespace) -> int:
        """Do it, and return the exit code."""
        ...


def run(given: Sequence[str]) -> int:
    """Run the verb that was given, and return its exit code."""
    verb, arguments = parse(given)
    return verb.run(arguments)


def parse(given: Sequence[str]) -> tuple[Verb, argparse.Namespace]:
    """The verb that was given, and its arguments; ends with 2 where they can't be understood."""
    parser = argparse.ArgumentParser(
        prog="pipeswarm",
        description="Load tests and capacity planning for ML pipeline platforms on Kubernetes.",
        epilog="Loads are started with locust -f locustfiles/kfp.py; scenarios are made with generate-scenarios.",
    )
    number = version("pipeswarm") if given[:1] == ["--version"] else ""  # looking it up takes a moment
    parser.add_argument("--version", action="version", version=f"pipeswarm {number}", help="print the version and end")
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    modules = {}
    for name, text, module in VERBS:
        added = verbs.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        if given[:1] == [name]:
            modules[name] = cast("Verb", importlib.import_module(module))
            modules[name].configure(added)
    arguments = parser.parse_args(given)
    return modules[given[0]], arguments
