"""`pipeswarm`: the composition root; `harness.cli.verbs` is its table of contents."""

import errno
import os
import sys

# The machine refuses to write (or read) there: not an internal error.
_REFUSED = frozenset({
    errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENAMETOOLONG,
})  # fmt: skip

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def main(argv: list[str] | None = None) -> int:
    """Run one verb and return its exit code; an error meant for the user is printed without a traceback."""
    try:
        # Imported here so that a Ctrl-C during the imports is handled like any other.
        from harness.cli import verbs
        from harness.model.errors import ExitCode, PipeswarmError
        from harness.model.text.inert import for_output

        return verbs.run(sys.argv[1:] if argv is None else argv)
    except KeyboardInterrupt:
        return 130  # ExitCode.INTERRUPTED, which may not be imported yet
    except PipeswarmError as error:
        print(for_output(f"error: {error}"), file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        # The reader of our output (head, less) has exited: not an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OK
    except OSError as error:
        if error.errno not in _REFUSED:
            raise
        print(for_output(_told(error)), file=sys.stderr)
        return ExitCode.BAD_CONFIG


def _told(error: OSError) -> str:
    if error.errno in _FULL:
        where = f": {error.filename} can't be written" if error.filename else "; the result can't be written"
        return f"error: the disk is full{where}\n  → free some space, or write to another disk"
    what = error.filename or "the result"
    return f"error: {what} can't be used: {error.strerror}\n  → check its permissions and the free space"
