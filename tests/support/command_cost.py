"""What a command costs, measured from a small process.

    python tests/support/command_cost.py COMMAND ...

Prints its wall seconds, CPU seconds and peak memory in GB as JSON. Linux counts as a process's own peak what the one
that started it had in memory: a benchmark that draws data would find its own peak in every command.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence


def measured(command: Sequence[object]) -> tuple[float, float, float]:
    """Wall seconds, CPU seconds and peak memory in GB of a command, whose output is dropped.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    said = subprocess.run([sys.executable, __file__, *map(str, command)], check=True, stdout=subprocess.PIPE)
    seconds, cpu_s, gigabytes = json.loads(said.stdout)
    return seconds, cpu_s, gigabytes


def main(command: Sequence[str]) -> int:
    begun = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    taken = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    print(json.dumps([taken, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e9]))
    return process.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
