"""Rows of the KFP API server's database. Instants are seconds of simulated time."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.simulator.workflows.graph import Graph
from harness.simulator.workflows.workflow import Workflow

Spec = dict[str, Any]

PENDING, RUNNING, SUCCEEDED, FAILED = "PENDING", "RUNNING", "SUCCEEDED", "FAILED"
UNSTATED = ""  # the agent has reported a workflow that the controller has not taken up
CANCELING = "CANCELING"
AVAILABLE, ARCHIVED = "AVAILABLE", "ARCHIVED"
OVER = frozenset({SUCCEEDED, FAILED})


@dataclass(slots=True)
class Experiment:
    """A named group of runs."""

    id: str
    name: str
    created: float
    description: str = ""
    namespace: str = ""  # of several users' KFP, as in a pipeline
    storage_state: str = AVAILABLE
    last_run: float | None = None


@dataclass(slots=True)
class Pipeline:
    """A pipeline, which has versions."""

    id: str
    name: str
    created: float
    description: str = ""
    namespace: str = ""


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
    config: Spec = field(default_factory=dict)  # of the pipeline as a whole: `dsl.PipelineConfig`
    graph: Graph | None = None


@dataclass(slots=True)
class Run:
    """A run as known to the API server, which depends on the persistence agent's reports.

    `reports` are the instants of the reported workflow states; changes after the last one are not shown.
    """

    id: str
    number: int  # counts runs in the order of creation
    name: str
    experiment_id: str
    namespace: str  # of its experiment
    version: Version
    by_reference: bool
    parameters: Mapping[str, object]  # with the pipeline's defaults
    created: float
    given: Mapping[str, object]  # the parameters of the request
    description: str = ""
    service_account: str = ""
    pipeline_root: str = ""
    storage_state: str = AVAILABLE
    state: str = PENDING
    history: list[tuple[float, str]] = field(default_factory=list)
    finished: float | None = None
    workflow: Workflow | None = None
    reports: list[float] = field(default_factory=list)
    changes: int = 0  # counts changes of the row

    def enter(self, state: str, now: float) -> None:
        """Record a new state."""
        self.changes += 1
        self.state = state
        if not self.history or self.history[-1][1] != state:
            self.history.append((now, state))

    def cancel(self) -> None:
        """Show that the run is being terminated; its history shows that from the next report on."""
        self.changes += 1
        self.state = CANCELING
