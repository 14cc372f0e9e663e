"""The verbs of `pipeswarm`. `GROUPS` is the table of contents: by job, each verb with its purpose and its module.

A verb's module has ``configure(parser)`` and ``run(arguments) -> int``. Only the module of the given verb is imported,
which keeps start-up fast.
"""

import argparse
import importlib
import re
from collections.abc import Sequence
from importlib.metadata import version
from itertools import chain
from typing import NoReturn, Protocol, cast

from harness.cli.keep import completion
from harness.model.errors import suggestion

_CHOICE, _QUOTED = re.compile(r"invalid choice: .*"), re.compile(r"'([^']*)'")

Row = tuple[str, str, str]
GROUPS: dict[str, tuple[Row, ...]] = {
    "start": (
        ("init", "write the files that a load test begins from", "harness.cli.start.init"),
        ("doctor", "check platform, cluster and metrics before a test", "harness.cli.start.doctor"),
        ("prepare", "make a pipeline ready for load; list what spoils it", "harness.cli.start.prepare"),
    ),
    "load": (
        ("load", "start Locust with a packaged locustfile", "harness.cli.loading.load"),
        ("run-in-cluster", "run a test as a Kubernetes Job; fetch its folder", "harness.cli.loading.run_in_cluster"),
        ("watch", "follow a running test in the terminal", "harness.cli.loading.watch"),
    ),
    "look": (
        ("report", "rebuild a run's reports; list a folder of runs", "harness.cli.look.report"),
        ("compare", "compare variants with the first, with significance", "harness.cli.look.compare"),
        ("observe", "record a platform that something else loads", "harness.cli.look.observe"),
        ("explain", "why a past batch was slow, by cluster and Prometheus", "harness.cli.look.explain"),
        ("import", "turn dumps (kubectl, Prometheus) into a run folder", "harness.cli.look.import_"),
    ),
    "decide": (
        ("capacity", "runs, time, nodes: give two and get the third", "harness.cli.decide.capacity"),
        ("what-if", "predict what a fix or another setting brings", "harness.cli.decide.what_if"),
        ("resources", "recommend requests per step; count runs per node", "harness.cli.decide.resources"),
        ("experiment", "test many loads, nodes and variants: grid or search", "harness.cli.decide.experiment"),
    ),
    "platform": (
        ("simulate", "serve a simulated platform, or run a test in seconds", "harness.cli.platform.simulate"),
        ("evict", "evict pods or nodes of a test, as spot machines do", "harness.cli.platform.evict"),
    ),
    "keep": (("cleanup", "terminate, archive or delete the runs of a test", "harness.cli.keep.cleanup"),),
}
# Rarely needed: not on the first screen.
MORE: tuple[Row, ...] = (
    ("orchestrate", "let a KFP pipeline of one step start a run for each scenario", "harness.cli.loading.orchestrate"),
    ("recover", "add what workers recorded without their master to its run", "harness.cli.keep.recover"),
    ("completion", "print what bash, zsh or fish need to complete this command", "harness.cli.keep.completion"),
)
VERBS = (*chain.from_iterable(GROUPS.values()), *MORE)


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
    parser = _Parser(prog="pipeswarm", usage="pipeswarm VERB …  (pipeswarm VERB --help lists its options)")
    completed = completion.words()
    given = completed or given
    number = version("pipeswarm") if given[:1] == ["--version"] else ""  # looking it up is slow
    parser.add_argument("--version", action="version", version=f"pipeswarm {number}", help="print the version and exit")
    parser.format_help = lambda: _first_screen(parser.format_usage())  # type: ignore[method-assign]
    verbs = parser.add_subparsers(required=True, metavar="VERB", prog="pipeswarm")
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


def _first_screen(usage: str) -> str:
    """The verbs by job: at most 24 lines of 80 columns."""
    width = max(len(verb) for rows in GROUPS.values() for verb, _, _ in rows)
    lines = [
        f"{group if place == 0 else '':<10}{verb:<{width}}  {text}"
        for group, rows in GROUPS.items()
        for place, (verb, text, _) in enumerate(rows)
    ]
    more = ", ".join(verb for verb, _, _ in MORE)
    return "\n".join([usage, *lines, f"\nalso: {more}, --version; scenarios: generate-scenarios", ""])


class _Parser(argparse.ArgumentParser):
    """Asks whether the nearest choice was meant; the verbs' parsers are of this class, too."""

    def error(self, message: str) -> NoReturn:
        """Exit with 2."""
        if match := _CHOICE.search(message):
            given, *choices = _QUOTED.findall(match[0])
            message += f"; {suggestion(given, choices).strip()}" if suggestion(given, choices) else ""
        super().error(message)


def _unknown(verb: str) -> str:
    import difflib

    near = difflib.get_close_matches(verb, [name for name, _, _ in VERBS], n=1)
    hint = f"did you mean {near[0]}?" if near else "pipeswarm --help lists the verbs"
    return f"there is no verb {verb!r}: {hint}"
