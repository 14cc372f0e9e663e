"""Locust's command without its second of imports: a process that has imported it forks for each start.

What runs is what the command `locust` runs, in a process and a session of its own.
"""

import atexit
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path


def run(
    arguments: Sequence[str], place: Path, environment: Mapping[str, str], timeout_s: float
) -> tuple[int, str, str]:
    """Run Locust to its end; returns exit code, output and errors.

    Raises:
        TimeoutError: it has not ended in time, and was killed.
    """
    out, errors = place / "stdout.txt", place / "stderr.txt"
    server = _server()
    order = [list(map(str, arguments)), str(place), dict(environment), str(out), str(errors)]
    server.stdin.write(json.dumps(order) + "\n")
    server.stdin.flush()
    pid = int(server.stdout.readline())
    if not select.select([server.stdout], [], [], timeout_s)[0]:
        os.killpg(pid, signal.SIGKILL)
        server.stdout.readline()
        raise TimeoutError(f"locust {' '.join(arguments)}: {errors.read_text()}")
    return int(server.stdout.readline()), out.read_text(), errors.read_text()


@cache
def _server() -> subprocess.Popen:
    """One for all tests of this process; it ends with its input."""
    server = subprocess.Popen(
        [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        cwd=Path(__file__).parents[2], start_new_session=True,
    )  # fmt: skip
    atexit.register(server.communicate)
    return server


def serve() -> None:
    """Start a Locust for each line of the input: print its process id at once, and its exit code when it has ended."""
    import gc

    import pipeswarm

    import locust.main

    assert pipeswarm.PipelineUser  # imported when it is first used
    gc.freeze()  # else the first collection of each child copies what is shared
    for line in sys.stdin:
        order = json.loads(line)
        if (pid := os.fork()) == 0:
            _become(*order)
            locust.main.main()
        print(pid, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


def _become(arguments: list[str], place: str, environment: dict[str, str], out: str, errors: str) -> None:
    """Make this process one that was started with these arguments."""
    os.setsid()
    os.chdir(place)
    os.environ.clear()
    os.environ.update(environment)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    for number, name, how in ((0, os.devnull, os.O_RDONLY), (1, out, flags), (2, errors, flags)):
        os.dup2(os.open(name, how), number)
    sys.argv = ["locust", *arguments]


if __name__ == "__main__":
    serve()
