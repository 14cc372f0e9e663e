"""File descriptors: each open request needs one, and their number per process is limited."""

import os
import resource
from collections.abc import Iterable
from contextlib import suppress

from harness.drive.dispatch.loop import most_at_once
from harness.model.errors import ConfigError
from harness.model.plan import Limits

# Of this process in addition to its requests: the run folder, pipes to the observer, the web UI, listening sockets.
_RESERVED = 64


def raise_limit() -> None:
    """Raise the soft limit on this process's open files to the hard one; a subprocess inherits it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # the system allows less than "unlimited"
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def open_requests(limits: Limits) -> int:
    """How many requests this process may have open at once: `limits`, or fewer for lack of descriptors."""
    return max(1, min(limits.max_in_flight, _limit() - _RESERVED))


def demand(offsets: Iterable[float], limits: Limits, workers: int) -> None:
    """Refuse a schedule whose densest moment needs more descriptors than a process may have.

    Args:
        offsets: when arrivals are due, s.
        limits: of the test.
        workers: processes that share the arrivals evenly; they are assumed to have this process's limit.

    Raises:
        ConfigError: naming the number needed.
    """
    at_once = min(-(-most_at_once(offsets) // max(workers, 1)), limits.max_in_flight)
    needed, allowed = at_once + _RESERVED, _limit()
    if needed > allowed:
        raise ConfigError(
            f"{at_once:,} requests at once need {needed:,} open files, and this process may have {allowed:,}",
            f"raise the limit (ulimit -n {needed}; LimitNOFILE= of a systemd unit), or spread the arrivals: more "
            "workers (--processes), or --schedule spread",
        )


def _limit() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return os.sysconf("SC_OPEN_MAX") if soft == resource.RLIM_INFINITY else soft
