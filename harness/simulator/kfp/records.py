"""Rows of the KFP API server's database. Instants are seconds of simulated time."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.simulator.kfp.graph import Graph
from harness.simulator.kfp.workflow import Workflow

Spec = dict[str, Any]

PENDING, RUNNING, SUCCEEDED, FAILED = "PENDING", "RUNNING", "SUCCEEDED", "FAILED"
CANCELING, CANCELED = "CANCELING", "CANCELED"
AVAILABLE, ARCHIVED = "AVAILABLE", "ARCHIVED"
OVER = frozenset({SUCCEEDED, FAILED, CANCELED})


@dataclass(slots=True)
class Experiment:
    """A named group of runs."""

    id: str
    name: str
    namespace: str
    created: float
    description: str = ""
    storage_state: str = AVAILABLE
    last_run: float | None = None


@dataclass(slots=True)
class Pipeline:
    """A pipeline, which has versions."""

    id: str
    name: str
    namespace: str
    created: float
    description: str = ""


@dataclass(slots=True)
class Version:
    """A compiled pipeline. `graph` is none if it depends on the run's parameters."""

    id: str
    pipeline_id: str
    name: str
    created: float
    spec: Spec
    platform: Spec
    description: str = ""
    graph: Graph | None = None


@dataclass(slots=True)
class Run:
    """A run as known to the API server, which depends on the persistence agent's reports.

    `reported` is the instant of the last reported workflow state; later changes are not shown.
    """

    id: str
    number: int  # counts runs in the order of creation
    name: str
    experiment_id: str
    namespace: str
    version: Version
    by_reference: bool
    parameters: Mapping[str, object]
    created: float
    description: str = ""
    service_account: str = ""
    pipeline_root: str = ""
    storage_state: str = AVAILABLE
    state: str = PENDING
    history: list[tuple[float, str]] = field(default_factory=list)
    finished: float | None = None
    workflow: Workflow | None = None
    reported: float | None = None
    changes: int = 0  # counts changes of the row

    def enter(self, state: str, now: float) -> None:
        """Record a new state."""
        self.changes += 1
        if state != self.state or not self.history:
            self.state = state
            if state != CANCELING:  # as the API server leaves it out
                self.history.append((now, state))
