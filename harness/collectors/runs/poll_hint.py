"""What the cluster suggests that a poll of the runs would show now. The hint says when to poll; the listing decides."""

from collections.abc import Set as AbstractSet
from enum import Enum, auto

from harness.collectors.collector import Activity


class PollHint(Enum):
    """What a poll would show."""

    NOTHING = auto()  # no run has started, or none has ended since the last poll
    CHANGES = auto()  # state changes that are not awaited
    POSSIBLE_END = auto()  # an awaited end may have happened; the cluster cannot tell
    END = auto()  # an awaited end has happened


class Load(Enum):
    """Who waits for the ends of runs."""

    EXTERNAL = auto()  # the load is not ours: unknown
    ARRIVING = auto()  # nobody: more arrivals are due
    ARRIVED = auto()  # the test, for the last end
    CLOSED = auto()  # each next arrival, for an end; ends that the cluster shows are reported at once


def poll_hint(activity: Activity, *, going: AbstractSet[str], load: Load, worked: bool, labelled: bool) -> PollHint:
    """What a poll would show.

    Args:
        activity: what the cluster shows.
        going: the test's runs that were not seen to end.
        load: who waits for their ends.
        worked: a pod has worked for one of the test's runs: until then the cluster may be another one.
        labelled: one of their workflows was labelled as persisted: older platforms never do that.
    """
    if load is Load.EXTERNAL:
        return PollHint.POSSIBLE_END
    if not going:
        return PollHint.NOTHING
    # Without a living pod the platform is about to report the end.
    idle = worked and load is Load.ARRIVED and activity.pods == 0
    if activity.persisted is None or not worked:
        if idle:
            return PollHint.END
        return PollHint.CHANGES if load is Load.ARRIVING else PollHint.POSSIBLE_END
    if not labelled and (idle or load is Load.CLOSED):
        return PollHint.POSSIBLE_END
    ended = sum(run in activity.persisted for run in going)
    if load is Load.ARRIVED and ended == len(going):
        return PollHint.END
    return PollHint.CHANGES if ended else PollHint.NOTHING
