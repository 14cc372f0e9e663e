"""What Argo's workflow controller was told to do, from the arguments and variables of its pod."""

from collections.abc import Mapping
from contextlib import suppress

from harness.analysis.timeline import Timeline, remembered
from harness.model import ConfigError, parse_duration
from harness.model.phases import (
    ARGUMENTS,
    BURST,
    CLEANUP_WORKERS,
    PLATFORM,
    QPS,
    REQUEUE_TIME,
    WORKFLOW_CONTROLLER,
    WORKFLOW_WORKERS,
)

# Source: cmd/workflow-controller/main.go and workflow/controller of Argo Workflows, 3.4 to 4.0.
DEFAULTS: Mapping[str, float] = {QPS: 20, BURST: 30, WORKFLOW_WORKERS: 32, CLEANUP_WORKERS: 4, REQUEUE_TIME: 10}


@remembered
def settings(timeline: Timeline) -> Mapping[str, float]:
    """What the controller's last pod ran with, by argument or variable: numbers and seconds.

    Without what can't be read; none where no pod of the controller was seen.
    """
    events = timeline.events
    told = events[(events["kind"] == PLATFORM) & (events["object"] == WORKFLOW_CONTROLLER)]
    told = told[told["reason"] == ARGUMENTS]
    if not len(told):
        return {}
    found = dict(DEFAULTS)
    for name, _, value in (each.partition("=") for each in str(told["message"].iloc[-1]).split()):
        found.pop(name, None)
        with suppress(ConfigError):
            found[name] = parse_duration(value)
    return found


def as_good(timeline: Timeline, name: str, value: float) -> bool:
    """Whether a setting is known to be this value or a better one: more, but for the time until the next look."""
    present = settings(timeline).get(name)
    return present is not None and (present <= value if name == REQUEUE_TIME else present >= value)
