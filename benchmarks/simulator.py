"""What a simulated pod costs: against the same platform on simpy, as it grows, as a command, and served in wall time.

    python benchmarks/simulator.py           # three minutes
    python benchmarks/simulator.py --long    # also 1,000,000 pods: some minutes more
    python benchmarks/simulator.py pods      # one part: simpy, growth, command, load, pods or memory
    python benchmarks/simulator.py against --tree ../old   # another checkout, or a compiled copy of this one

CPU seconds are of one process and one core, the best of a few tries, ours and simpy's in turn, so that other work on
the machine slows both alike. A server that is late without load shows that the machine was busy.

On simpy it is the platform of tests/support/on_simpy.py, which the tests hold against ours pod by pod. It keeps each
pod's instants too, but has no listeners, deletions, evictions or faults. The bound is for the obvious model, which
scans all nodes for each pod; the ranking of nodes is part of our core. The ratio with the same ranking on simpy is
printed beside it: a third of the work for a pod passes no time and is the same code in both.
"""

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.simulating.against import against
from benchmarks.simulating.fast import against_simpy, as_a_command, growth
from benchmarks.simulating.served import many_pods, memory, under_load
from tests.support.benchmarking import Table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--long", action="store_true", help="also 1,000,000 pods")
    parser.add_argument("parts", nargs="*", metavar="PART", help="simpy, growth, command, load, pods, memory; or all")
    parser.add_argument("--tree", action="append", type=Path, default=[], help="for `against`; may be repeated")
    arguments = parser.parse_args()
    parts: dict[str, Callable[[Table], None]] = {
        "against": partial(against, trees=[tree.resolve() for tree in arguments.tree]),
        "simpy": against_simpy,
        "growth": partial(growth, long=arguments.long),
        "command": as_a_command,
        "load": under_load,
        "pods": many_pods,
        "memory": memory,
    }
    unknown = set(arguments.parts) - parts.keys()
    if unknown:
        parser.error(f"unknown part {', '.join(unknown)}; parts: {', '.join(parts)}")
    table = Table()
    for name in arguments.parts or [name for name in parts if name != "against"]:
        parts[name](table)
    return int(table.failed)


if __name__ == "__main__":
    sys.exit(main())
