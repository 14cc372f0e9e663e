"""A stage of work on a Dask cluster: a number of tasks of CPU time, which its workers share.

This file is also sent as text to the pod that carries out a stage on Kubernetes: it imports nothing of this project.
"""

import argparse
import random
import sys
import time

_SEED = 7


def work(cpu_s: float) -> float:
    """Use a core for so long: on a machine with fewer cores than workers it takes longer."""
    until_s = time.thread_time() + cpu_s
    while time.thread_time() < until_s:
        pass
    return cpu_s


def lengths(tasks: int, mean_s: float, variation: float) -> list[float]:
    """The CPU time of each task: evenly random within `variation` (a share) around the mean, the same for each call."""
    drawn = random.Random(_SEED)
    return [mean_s * (1 + variation * drawn.uniform(-1.0, 1.0)) for _ in range(tasks)]


def arguments(description: str | None) -> argparse.Namespace:
    """The width of the cluster and the tasks of the stage, from the command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--width", type=int, required=True, help="workers")
    parser.add_argument("--tasks", type=int, required=True, help="tasks, which the workers share")
    parser.add_argument("--task-s", type=float, required=True, help="mean CPU seconds of a task")
    parser.add_argument("--variation", type=float, required=True, help="of a task, as a share of its mean")
    given = parser.parse_args()
    if given.width < 1 or given.tasks < 1:
        sys.exit("width and tasks are whole numbers from 1 on")
    if not (given.task_s >= 0 and 0 <= given.variation <= 1):
        sys.exit("task_s is at least 0, variation from 0 to 1")
    return given


def main() -> None:
    """Compute on the cluster that DASK_SCHEDULER_ADDRESS names, which Dask itself reads."""
    given = arguments("A stage of work on a Dask cluster.")
    from distributed import Client

    with Client() as client:
        client.wait_for_workers(given.width)
        seconds = lengths(given.tasks, given.task_s, given.variation)
        client.gather(client.map(work, seconds, pure=False))


if __name__ == "__main__":
    main()
