"""The records of a test: one JSON line each while it runs, one Parquet row when sealed.

Instants are UTC nanoseconds. `source` names the clock of a timestamp ("harness", "kfp", "kubernetes", …) and
`resolution_s` its resolution: timestamps of KFP and Kubernetes are whole seconds.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Outcome(StrEnum):
    """The outcome of an arrival, as the load generator knows it."""

    ACCEPTED = "accepted"  # the platform responded with a run
    REJECTED = "rejected"  # the platform responded with an error, or not at all
    MISSED = "missed"  # never sent: too many in flight, or the test was stopped


@dataclass(frozen=True, slots=True)
class Submission:
    """One row of the ledger: one arrival of the schedule. Latency is `answered_at - due_at`, in ns.

    `tenant` is on whose behalf it was sent; "" if that was not said.
    """

    seq: int
    scenario_id: str
    run_name: str
    due_at: int
    sent_at: int | None
    answered_at: int | None
    outcome: Outcome
    run: str | None  # the platform's id of the run
    worker: int
    status: int | None  # of the HTTP response; None without a response
    error: str | None
    tenant: str = ""


@dataclass(frozen=True, slots=True)
class Span:
    """An interval of a run or of one of its steps; it has not ended while `ended_at` is None.

    A span is written again when more is known; of the records with the same (run, step, phase, attempt) the last one
    counts. `step` is "" for the run as a whole, otherwise the pod's name; `task` is the step's name in the pipeline (a
    retried task has several steps). `attempt` counts the intervals of one phase within a step, from 0: a pod pulls one
    image, starts a container, and pulls the next. `reason` is what the cluster stated while it lasted, as
    ``SOURCE/REASON: MESSAGE`` (`harness.reasons.catalogue.stated`); "" where it stated nothing.
    """

    run: str
    step: str
    phase: str
    started_at: int
    ended_at: int | None
    task: str = ""
    attempt: int = 0
    node: str | None = None
    source: str = "harness"
    resolution_s: float = 0.0
    reason: str = ""


@dataclass(slots=True)
class PodSpans:
    """The spans of one pod's phases as one record: each phase begins when the one before it ends.

    `bounds` are the instants at which the phases begin and the last one ends, so one more than `phases`; the last one
    is None while the pod is in its last phase. A simulation makes millions: objects for each span would cost too much.
    `reasons` are what was stated in some of the phases, by their position.
    """

    run: str
    step: str
    task: str
    node: str | None
    source: str
    phases: list[str]
    bounds: list[int | None]
    reasons: Mapping[int, str] = field(default_factory=dict)

    def spans(self) -> Iterator[Span]:
        """The same as spans, in the order of time."""
        for k, (phase, begun_at, ended_at) in enumerate(zip(self.phases, self.bounds, self.bounds[1:], strict=False)):
            assert begun_at is not None
            reason = self.reasons.get(k, "")
            yield Span(
                self.run, self.step, phase, begun_at, ended_at, self.task, 0, self.node, self.source, reason=reason
            )


@dataclass(frozen=True, slots=True)
class Sample:
    """A measured value: `metric` with `labels` was `value` at `at`."""

    metric: str
    at: int
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened: a Kubernetes event, a run's end, a gap in the observation, a retry by the observer.

    `kind` is the object's kind ("Pod", "Node", "Run", "Observer", …), `object` its name, `reason` a single word,
    `run` the run it belongs to if known, `count` the number of times it was reported, `namespace` that of a Kubernetes
    object.
    """

    at: int
    kind: str
    object: str
    reason: str
    message: str = ""
    source: str = "harness"
    run: str | None = None
    count: int = 1
    type: str = "Normal"
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the cluster. Written again when it changes; the last record of a name counts."""

    name: str
    pool: str
    created_at: int
    ready_at: int | None
    gone_at: int | None
    cpu: float  # allocatable cores
    memory: float  # allocatable bytes
    gpu: float = 0.0
    pods: int = 110
    spot: bool = False
    price: float | None = None  # per hour
    source: str = "kubernetes"
    gpus_at: int | None = None  # when its GPUs could be allocated, where the observer saw that; by its own clock
    virtual: bool = False  # no machine: a cloud runs, and charges, each of its pods by itself
    machine: str = ""  # the cloud's name of its type, such as Standard_D4s_v5; "" where unknown
    ephemeral: float = 0.0  # allocatable bytes of ephemeral storage; 0 where unknown
