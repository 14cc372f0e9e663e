"""All that is needed to repeat a test: it goes into the run folder's manifest."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on what a test may do and how long it may wait."""

    drain_s: float = 600.0  # waits so long for the last runs after the last arrival
    max_in_flight: int = 10_000  # open requests per worker; what does not fit is missed
    connect_timeout_s: float = 10.0
    answer_timeout_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Plan:
    """Target, scenarios, schedule, limits: everything needed to repeat the test.

    `schedule` and `target_options` are plain values, so that the manifest can be read without Pipeswarm. `digests` are
    SHA-256 of the pipeline, the scenarios and the schedule; workers refuse a plan whose digests differ from theirs.
    """

    target: str
    host: str
    schedule: Mapping[str, object]
    intended: int
    seed: int
    simulated: bool
    target_options: Mapping[str, object] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    slos: tuple[str, ...] = ()
    digests: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = ()  # how to repeat the test
    started_at: int = 0
    workers: int = 1
    verify_tls: bool = True
    redact: tuple[str, ...] = ()  # parameters whose values are hidden in what is recorded
    redacted: tuple[str, ...] = ()  # files kept without these values; their digests are of what was given
