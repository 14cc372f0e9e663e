"""The verbs of `pipeswarm`. `VERBS` is the table of contents: a verb, its purpose, its module.

A verb's module has ``configure(parser)`` and ``run(arguments) -> int``. Only the module of the given verb is imported,
which keeps start-up fast.
"""

import argparse
import importlib
import re
from collections.abc import Sequence
from importlib.metadata import version
from typing import NoReturn, Protocol, cast

from harness.cli import completion
from harness.model.errors import suggestion

_CHOICE, _QUOTED = re.compile(r"invalid choice: .*"), re.compile(r"'([^']*)'")

VERBS: tuple[tuple[str, str, str], ...] = (
    ("init", "write the files that a load test of your own begins from", "harness.cli.init"),
    ("load", "start Locust with a packaged locustfile", "harness.cli.load"),
    ("run-in-cluster", "run a load test as a Kubernetes Job and fetch its folder", "harness.cli.run_in_cluster"),
    ("orchestrate", "let a KFP pipeline of one step start a run for each scenario", "harness.cli.orchestrate"),
    ("doctor", "check machine, platform, cluster and metrics before a test", "harness.cli.doctor"),
    ("options", "list the options that a locustfile adds to Locust's own", "harness.cli.options"),
    ("simulate", "simulate a platform: serve it, or run a whole test in seconds", "harness.cli.simulate"),
    ("prepare", "make a pipeline ready for load, or list what would spoil it", "harness.cli.prepare"),
    ("adapter", "serve a data adapter for hetida designer with injected limits", "harness.cli.adapter"),
    ("observe", "record a platform that something else loads", "harness.cli.observe"),
    ("import", "turn dumps (kubectl, runs, Prometheus) into a run folder", "harness.cli.import_"),
    ("watch", "follow a running test in the terminal", "harness.cli.watch"),
    ("diagnose", "find what limits a run, even while it is in progress", "harness.cli.diagnose"),
    ("report", "rebuild a run's reports from its records", "harness.cli.report"),
    ("index", "list a folder's runs and their trends on one page", "harness.cli.index"),
    ("compare", "compare variants with the first one, with significance", "harness.cli.compare"),
    ("capacity", "runs, time, nodes: give two and get the third", "harness.cli.capacity"),
    ("resources", "recommend each step's requests; count the runs per node", "harness.cli.resources"),
    ("jobs-per-node", "find by trial how many runs fit one node", "harness.cli.jobs_per_node"),
    ("experiment", "test many loads, nodes and variants: grid or search", "harness.cli.experiment"),
    ("evict", "evict pods or nodes of a test at random, as with spot machines", "harness.cli.evict"),
    ("recover", "add what workers recorded without their master to its run", "harness.cli.recover"),
    ("completion", "print what bash, zsh or fish need to complete this command", "harness.cli.completion"),
    ("cleanup", "terminate, archive or delete the runs that a test created", "harness.cli.cleanup"),
)


class Verb(Protocol):
    """The interface of a verb's module."""

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Declare the verb's arguments."""
        ...

    def run(self, arguments: argparse.Namespace) -> int:
        """Run the verb and return the exit code."""
        ...


def run(given: Sequence[str]) -> int:
    """Run the verb in `given` (the command line without ``pipeswarm``) and return its exit code."""
    verb, arguments = parse(given)
    return verb.run(arguments)


def parse(given: Sequence[str]) -> tuple[Verb, argparse.Namespace]:
    """The verb in `given` and its arguments; exits with 2 if they are invalid."""
    parser = _Parser(
        prog="pipeswarm",
        description="Load tests and capacity planning for ML pipeline platforms on Kubernetes.",
        epilog="Scenarios: generate-scenarios. Load: pipeswarm load kfp, or locust -f LOCUSTFILE.",
    )
    completed = completion.words()
    given = completed or given
    number = version("pipeswarm") if given[:1] == ["--version"] else ""  # looking it up is slow
    parser.add_argument("--version", action="version", version=f"pipeswarm {number}", help="print the version and exit")
    verbs = parser.add_subparsers(title="verbs", required=True, metavar="VERB")
    modules = {}
    for name, text, module in VERBS:
        added = verbs.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        if given[:1] == [name]:
            modules[name] = cast("Verb", importlib.import_module(module))
            modules[name].configure(added)
    if completed:
        completion.answer(parser)
    if given and not given[0].startswith("-") and given[0] not in modules:
        parser.error(_unknown(given[0]))
    arguments = parser.parse_args(given)
    return modules[given[0]], arguments


class _Parser(argparse.ArgumentParser):
    """Asks whether the nearest choice was meant; the verbs' parsers are of this class, too."""

    def error(self, message: str) -> NoReturn:
        """Exit with 2."""
        if found := _CHOICE.search(message):
            given, *choices = _QUOTED.findall(found[0])
            message += f"; {suggestion(given, choices).strip()}" if suggestion(given, choices) else ""
        super().error(message)


def _unknown(verb: str) -> str:
    import difflib

    near = difflib.get_close_matches(verb, [name for name, _, _ in VERBS], n=1)
    hint = f"did you mean {near[0]}?" if near else "pipeswarm --help lists the verbs"
    return f"there is no verb {verb!r}: {hint}"
