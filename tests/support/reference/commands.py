"""The command lines of `pipeswarm` and `generate-scenarios`, and the exit codes."""

import argparse
import importlib
from collections.abc import Iterable, Iterator

from generators import scenarios_cli, workload_cli
from harness.cli.verbs import VERBS
from harness.model.errors import ExitCode
from tests.support.reference.markdown import code, table
from tests.support.reference.markdown import page as whole

_INTRODUCTION = (
    "`pipeswarm VERB --help` prints the same. The options of a load test are on a page of their own: "
    "[Options](../options.md)."
)
_REPEATED = {"?": "[{}]", "*": "[{} …]", "+": "{} …", argparse.REMAINDER: "…"}
_COLUMNS = ("argument", "default", "meaning")


def page() -> str:
    """The page of commands."""
    lines: list[str] = []
    for name, text, module in VERBS:
        parser = argparse.ArgumentParser(prog=f"pipeswarm {name}")
        importlib.import_module(module).configure(parser)
        lines += _command(parser, f"{text[0].upper()}{text[1:]}.")
    lines += _command(scenarios_cli.command_line(), "Generate scenarios.")
    lines += _command(workload_cli.command_line(), "Generate the arrivals of a day, with the scenarios of its tenants.")
    codes = table(("code", "meaning"), [(str(int(each)), each.meaning) for each in ExitCode])
    return whole("Commands", _INTRODUCTION, [*lines, "## Exit codes", "", *codes])


def _command(parser: argparse.ArgumentParser, purpose: str, level: str = "##") -> list[str]:
    rows = [_row(parser, each) for each in _arguments(parser)]
    lines = [f"{level} {parser.prog}", "", purpose, "", *(table(_COLUMNS, rows) if rows else ())]
    for verbs in _subparsers(parser):
        for each in verbs._choices_actions:
            lines += _command(verbs.choices[each.dest], f"{each.help[0].upper()}{each.help[1:]}.", "###")
    return lines


def _arguments(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    kinds = (argparse._HelpAction, argparse._SubParsersAction)
    return (each for each in parser._actions if not isinstance(each, kinds) and each.help != argparse.SUPPRESS)


def _subparsers(parser: argparse.ArgumentParser) -> Iterable[argparse._SubParsersAction]:
    return (each for each in parser._actions if isinstance(each, argparse._SubParsersAction))


def _row(parser: argparse.ArgumentParser, action: argparse.Action) -> tuple[str, str, str]:
    meaning = parser._get_formatter()._expand_help(action) if action.help else ""
    unnamed = [str(each) for each in action.choices or () if str(each) not in meaning]
    if unnamed:
        meaning += f"; one of {', '.join(code(each) for each in action.choices)}"
    return code(_written(action)), _default(action), meaning


def _written(action: argparse.Action) -> str:
    """The argument as it is written on the command line."""
    value = action.metavar or (action.dest.upper() if action.option_strings else action.dest)
    value = " ".join(value) if isinstance(value, tuple) else value
    value = _REPEATED.get(action.nargs, "{}").format(value)
    names = ", ".join(action.option_strings)
    return f"{names} {value}".rstrip() if names and action.nargs != 0 else names or value


def _default(action: argparse.Action) -> str:
    if action.nargs == 0 or action.default in (None, argparse.SUPPRESS):
        return ""
    given = action.default if isinstance(action.default, (list, tuple)) else (action.default,)
    return code(" ".join(map(str, given)))
