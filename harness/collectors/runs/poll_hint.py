"""What a poll of the runs would show now, as far as the cluster tells: it says when to ask, the listing says what."""

from collections.abc import Set as AbstractSet
from enum import Enum, auto

from harness.collectors.collector import Activity


class Expected(Enum):
    """What is to be seen."""

    NOTHING = auto()  # no run has begun, or none has ended since the last poll
    CHANGES = auto()  # something that nobody waits for
    PERHAPS = auto()  # what somebody waits for may have happened: nobody tells
    ENDS = auto()  # it has happened


class Load(Enum):
    """Who waits for the ends of runs."""

    OTHERS = auto()  # whoever observes, without a load of ours
    ARRIVING = auto()  # nobody: more arrivals are to come
    ARRIVED = auto()  # the test, for the last one
    CLOSED = auto()  # the next arrival, for every one: it is told of those that the cluster shows


def expected(activity: Activity, runs: AbstractSet[str], going: AbstractSet[str], load: Load) -> Expected:
    """What a poll would show.

    Args:
        activity: what the cluster shows; it is trusted once a pod has worked for one of the runs.
        runs: all of the test.
        going: those that were not seen to end.
        load: where the load is.
    """
    if load is Load.OTHERS:
        return Expected.PERHAPS
    if not going:
        return Expected.NOTHING
    ours = not runs.isdisjoint(activity.worked or ())
    # Without a pod that lives the platform is about to say that it is over.
    quiet = ours and load is Load.ARRIVED and activity.pods == 0
    if activity.kept is None or not ours:
        return Expected.ENDS if quiet else Expected.CHANGES if load is Load.ARRIVING else Expected.PERHAPS
    if runs.isdisjoint(activity.kept) and (quiet or load is Load.CLOSED):
        return Expected.PERHAPS  # older platforms do not label a workflow then
    ended = sum(run in activity.kept for run in going)
    if load is Load.ARRIVED and ended == len(going):
        return Expected.ENDS
    return Expected.CHANGES if ended else Expected.NOTHING
