"""``pipeswarm completion SHELL``: what a shell needs to complete verbs, options and choices."""

import argparse
import os
import sys
from typing import NoReturn

from harness.model.errors import ExitCode

_COMMANDS = ["pipeswarm", "generate-scenarios"]
_SHELLS = ("bash", "zsh", "fish")
_EPILOG = """\
bash: add to ~/.bashrc:  eval "$(pipeswarm completion bash)"
zsh:  add to ~/.zshrc:   eval "$(pipeswarm completion zsh)"
fish: add to ~/.config/fish/config.fish:  pipeswarm completion fish | source
It completes generate-scenarios, too.
"""


def words() -> list[str]:
    """The command line that a shell asks to complete, without ``pipeswarm``; empty if none does.

    Shells ask through variables of bash (COMP_LINE): https://kislyuk.github.io/argcomplete/
    """
    return os.environ["COMP_LINE"].split()[1:] or [""] if "_ARGCOMPLETE" in os.environ else []


def answer(parser: argparse.ArgumentParser) -> NoReturn:
    """Answer the shell, and end the process."""
    import argcomplete

    argcomplete.autocomplete(parser)
    raise SystemExit(ExitCode.BUG)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EPILOG
    parser.add_argument("shell", choices=_SHELLS, help="the shell to complete in")


def run(arguments: argparse.Namespace) -> int:
    """Print the shell's code."""
    from argcomplete.shell_integration import shellcode

    sys.stdout.write(f"{shellcode(_COMMANDS, shell=arguments.shell)}\n")
    return ExitCode.OK
