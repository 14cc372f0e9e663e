"""Makes situations one after the other, on one control plane or on their own."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.real_kubernetes import Options, RealCluster, start_cluster
from tests.support.situations.controller import program
from tests.support.situations.perform import Outcome, perform
from tests.support.situations.situation import Situation

# The pods of a lost node are given up soon; the periods of an installation are 50 s and 300 s.
_QUICKLY = Options(
    api=("--default-not-ready-toleration-seconds=5", "--default-unreachable-toleration-seconds=5"),
    controllers=("--node-monitor-grace-period=40s",),
)


def quick_cluster(stack: ExitStack, folder: Path, etcd: tuple[str, ...] = ()) -> RealCluster:
    """A control plane that gives lost nodes up soon; skips where a part is missing."""
    program()
    folder.mkdir(parents=True, exist_ok=True)
    return start_cluster(stack, folder, Options(etcd, _QUICKLY.api, _QUICKLY.controllers))


def made(situations: Iterable[Situation], folder: Path, record: Path | None = None) -> Iterator[Outcome]:
    """Each situation's outcome; run folders are kept in `record`."""
    with ExitStack() as stack:
        shared = quick_cluster(stack, folder / "kubernetes")
        for each in situations:
            with ExitStack() as own:
                cluster = quick_cluster(own, folder / f"kubernetes-{each.name}", each.etcd) if each.etcd else shared
                try:
                    yield perform(each, cluster, folder / each.name, keep=record)
                except (Exception, pytest.skip.Exception) as error:  # noqa: BLE001  # the others are still to be made
                    yield Outcome(each, None, None, None, (repr(error),))
