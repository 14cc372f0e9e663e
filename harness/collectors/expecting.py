"""What a poll of the runs would show now, as far as the cluster tells: it says when to ask, the listing says what."""

from collections.abc import Set as AbstractSet
from enum import Enum, auto

from harness.collectors.collector import Activity


class Expected(Enum):
    """What is to be seen."""

    NOTHING = auto()  # no run has begun, or none has ended since the last poll
    CHANGES = auto()  # ends of runs, or it can't be known
    ENDS = auto()  # those that a test or its next arrivals wait for


def expected(
    activity: Activity, going: AbstractSet[str], *, listed: bool, over: int, intended: int, closed: bool
) -> Expected:
    """What a poll would show.

    Args:
        activity: what the cluster shows.
        going: runs that were started and were not seen to end.
        listed: some of them were seen in the listing.
        over: how many runs were seen to end.
        intended: how many there will be in all, 0 where nobody knows.
        closed: arrivals wait for ends.
    """
    known = len(going) + over
    if intended and not known:
        return Expected.NOTHING
    whole = bool(going) and known >= intended > 0
    # Without a pod that lives the platform is about to say that it is over; older ones do not label a workflow then.
    quiet = whole and activity.pods == 0 and listed
    if activity.kept is None or not (intended or closed):
        return Expected.ENDS if quiet else Expected.CHANGES
    ended = sum(run in activity.kept for run in going)
    if ended and (closed or (whole and ended == len(going))):
        return Expected.ENDS
    return Expected.CHANGES if ended or quiet or not intended else Expected.NOTHING
