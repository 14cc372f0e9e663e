"""When arrivals are due: one kind of schedule per module, with its options and its parser."""

from harness.model.schedules.burst import Burst
from harness.model.schedules.concurrency import Concurrency, Level
from harness.model.schedules.constant import Constant
from harness.model.schedules.poisson import Poisson
from harness.model.schedules.ramp import Ramp
from harness.model.schedules.registry import (
    DEFAULT,
    Kind,
    find_kind,
    from_mapping,
    in_words,
    kinds,
    schedule_options,
    to_mapping,
)
from harness.model.schedules.replay import Replay
from harness.model.schedules.schedule import MOST_ARRIVALS, Document, Schedule, due_times
from harness.model.schedules.spread import Spread
from harness.model.schedules.stages import Stages

__all__ = [
    "DEFAULT",
    "MOST_ARRIVALS",
    "Burst",
    "Concurrency",
    "Constant",
    "Document",
    "Kind",
    "Level",
    "Poisson",
    "Ramp",
    "Replay",
    "Schedule",
    "Spread",
    "Stages",
    "due_times",
    "find_kind",
    "from_mapping",
    "in_words",
    "kinds",
    "schedule_options",
    "to_mapping",
]
