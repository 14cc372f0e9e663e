"""One tenant's session with an ephemeral Dask cluster, as a process that reports its phases as lines of JSON."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager

from harness.targets.dask_tenants.phases import CLOSE, COMPUTE, FOR_ALL, FOR_FIRST, FOR_SCHEDULER
from harness.targets.dask_tenants.stage import arguments, lengths, work


@contextmanager
def timed(phase: str) -> Iterator[None]:
    """Report how long this phase took."""
    began_s = time.perf_counter()
    yield
    print(json.dumps({"phase": phase, "seconds": time.perf_counter() - began_s}), flush=True)


def main() -> None:
    """Start a cluster, scale it, compute, and close it."""
    given = arguments(__doc__)
    from distributed import Client, LocalCluster

    with timed(FOR_SCHEDULER):
        cluster = LocalCluster(
            n_workers=0, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
        )
        client = Client(cluster)
    cluster.scale(given.width)
    with timed(FOR_FIRST):
        client.wait_for_workers(1)
    with timed(FOR_ALL):
        client.wait_for_workers(given.width)
    present = set(client.scheduler_info()["workers"])
    with timed(COMPUTE):
        seconds = lengths(given.tasks, given.task_s, given.variation)
        client.gather(client.map(work, seconds, pure=False))
    lost = len(present - set(client.scheduler_info()["workers"]))
    if lost:
        print(json.dumps({"remark": f"{lost} of {given.width} workers died while they computed"}), flush=True)
    with timed(CLOSE):
        client.close()
        cluster.close()


if __name__ == "__main__":
    main()
