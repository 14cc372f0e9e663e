"""`generate-scenarios`: dispatches to scenarios or a workload, and reports errors."""

import errno
import os
import signal
import sys
from types import FrameType
from typing import NoReturn


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return the exit code: 0 for success, 2 for bad input, 130 when interrupted."""
    arguments = sys.argv[1:] if argv is None else argv
    previous = signal.signal(signal.SIGTERM, _terminated)
    try:
        # Imported here, so that a Ctrl-C during the imports ends as quietly as any other.
        from harness.model.errors import ExitCode, PipeswarmError
        from harness.model.text.inert import for_output

        if "_ARGCOMPLETE" in os.environ:  # set by a shell that completes a command line
            _complete()
        if arguments[:1] == ["workload"]:
            from generators import workload_cli

            return workload_cli.run(arguments[1:])
        from generators import scenarios_cli

        return scenarios_cli.run(arguments)
    except KeyboardInterrupt:
        print("interrupted; no partial file was left behind", file=sys.stderr)
        return 130  # ExitCode.INTERRUPTED, which may not be imported yet
    except PipeswarmError as error:
        print(for_output(f"error: {error}"), file=sys.stderr)
        return int(error.exit_code)
    except OSError as error:
        if error.errno == errno.EPIPE:
            # The reader has closed the pipe, as `head` does. Python's flush at exit must not fail again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return int(ExitCode.OK)
        print(
            f"error: the output can't be written: {error.strerror or error}\n  → make room, or write elsewhere",
            file=sys.stderr,
        )
        return int(ExitCode.BAD_CONFIG)
    finally:
        signal.signal(signal.SIGTERM, previous)


def _terminated(number: int, frame: FrameType | None) -> None:  # noqa: ARG001  # a signal handler's signature
    raise SystemExit(128 + number)


# --- what a shell that completes ``generate-scenarios`` is offered: https://kislyuk.github.io/argcomplete/ -----------


def _complete() -> NoReturn:
    """Answer the shell, and end the process."""
    import argcomplete

    from generators import scenarios_cli, workload_cli
    from harness.model.errors import ExitCode

    workload = os.environ["COMP_LINE"].split()[1:2] == ["workload"]
    if workload:
        os.environ["_ARGCOMPLETE"] = "2"  # the number of words that come before the options
    argcomplete.autocomplete(workload_cli.command_line() if workload else scenarios_cli.command_line())
    raise SystemExit(ExitCode.BUG)
