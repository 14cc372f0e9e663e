"""``pipeswarm options kfp``: our options of a locustfile, which ``locust --help`` can't show.

Locust answers ``--help`` before it reads the locustfile, and so without the options that one adds.
"""

import argparse
import json

from harness.cli import printing
from harness.model.errors import ExitCode


def configure(parser: argparse.ArgumentParser) -> None:
    """The verb's options."""
    from harness.targets.target import names

    parser.add_argument("target", choices=names(), help="whose locustfile: locustfiles/<target>.py")
    printing.configure(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print name, default and meaning of every option, as Locust's parser would."""
    import configargparse  # Locust's own parser

    from harness.plan.options import register
    from harness.targets.target import find

    parser = configargparse.ArgumentParser(
        prog=f"locust -f locustfiles/{arguments.target}.py",
        add_help=False,
        usage="%(prog)s [Locust's options] [options below]",
        add_env_var_help=True,
        formatter_class=_Defaults,
    )
    platform = find(arguments.target)
    register(parser, platform.OPTIONS, platform.DEFAULTS)
    printing.show(arguments, parser.format_help, lambda: json.dumps(_document(parser), indent=2))
    return ExitCode.OK


class _Defaults(argparse.HelpFormatter):
    """Says the default of an option that has one."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        return f"{action.help} (default: %(default)s)" if action.default else action.help


def _document(parser: argparse.ArgumentParser) -> dict[str, object]:
    return {
        "options": [
            {"name": action.option_strings[-1], "default": action.default, "help": action.help}
            | ({"choices": list(action.choices)} if action.choices else {})
            for action in parser._actions  # noqa: SLF001  # argparse offers no other way to list them
            if action.option_strings
        ]
    }
