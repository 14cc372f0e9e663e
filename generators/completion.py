"""What a shell that completes ``generate-scenarios`` is offered: https://kislyuk.github.io/argcomplete/."""

import os
from typing import NoReturn

from harness.model.errors import ExitCode


def answer() -> NoReturn:
    """Answer the shell, and end the process."""
    import argcomplete

    from generators import scenarios_cli, workload_cli

    workload = os.environ["COMP_LINE"].split()[1:2] == ["workload"]
    if workload:
        os.environ["_ARGCOMPLETE"] = "2"  # the number of words that come before the options
    argcomplete.autocomplete(workload_cli.command_line() if workload else scenarios_cli.command_line())
    raise SystemExit(ExitCode.BUG)
