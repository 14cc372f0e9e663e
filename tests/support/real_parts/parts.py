"""The real parts that a rehearsal can use: which are at hand, and what those that are missing would show."""

import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest

from tests.support.object_store import object_store
from tests.support.prometheus_server import prometheus_program
from tests.support.real_kubernetes import RealCluster, start_cluster
from tests.support.situations.controller import program

REAL_KFP = "PIPESWARM_REAL_KFP"
T = TypeVar("T")


@dataclass(frozen=True)
class Part:
    """A part that was looked for.

    Attributes:
        name: of the part.
        shows: what is checked with it.
        missing: why it is not at hand; "" if it is.
    """

    name: str
    shows: str
    missing: str = ""


class Parts:
    """Starts parts, which live until `stack` is closed; their files are in `folder`.

    Attributes:
        found: every part that was looked for.
    """

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self._stack = stack
        self._folder = folder
        self.found: list[Part] = []

    def cluster(self) -> RealCluster | None:
        """A control plane that schedules pods and keeps quotas."""
        place = self._folder / "kubernetes"
        place.mkdir(parents=True)
        shows = "runs, pods, nodes and phases; full nodes, memory, quotas and rights as Kubernetes tells them"
        cluster = self._try("Kubernetes control plane", shows, lambda: start_cluster(self._stack, place))
        if cluster is None or (cluster.schedules and cluster.controls):
            return cluster
        lacking = "kube-scheduler" if not cluster.schedules else "kube-controller-manager"
        self.found[-1] = Part(self.found[-1].name, shows, f"there is no {lacking} beside the kube-apiserver")
        return None

    def controller(self) -> bool:
        """Whether Argo's is there."""
        return self._try("Argo's workflow controller", "the truth table: --table", program) is not None

    def prometheus(self) -> bool:
        """Whether the program is there."""
        return self._try("Prometheus", "platform metrics by way of Prometheus", prometheus_program) is not None

    def store(self) -> tuple[str, Path] | None:
        """Address of an S3 server, and the folder of its objects."""
        place = self._folder / "objects"
        place.mkdir(parents=True)
        shows = "the probe that tells a full store"
        address = self._try("S3 store (rclone)", shows, lambda: self._stack.enter_context(object_store(place)))
        return None if address is None else (address, place)

    def platform(self) -> str | None:
        """Address of a real KFP."""
        address = os.environ.get(REAL_KFP, "")
        missing = "" if address else f"{REAL_KFP} is not set: it is the address of a KFP API, as --host takes it"
        shows = "runs of a real Kubeflow Pipelines, in an experiment that is deleted again"
        self.found.append(Part("Kubeflow Pipelines", shows, missing))
        return address or None

    def _try(self, name: str, shows: str, start: Callable[[], T]) -> T | None:
        """What a part's fixture gives; it skips where the part is not installed."""
        try:
            started = start()
        except pytest.skip.Exception as skipped:
            self.found.append(Part(name, shows, str(skipped)))
            return None
        self.found.append(Part(name, shows))
        return started
