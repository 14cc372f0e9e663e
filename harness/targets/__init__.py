"""One file per platform: set up, submit one run, list runs in bulk.

A target does no I/O of its own: it is handed an `Exchange` that carries one request, once, over whatever the caller
uses (gevent in the load, urllib3 in the observer). So the same file serves both, and is tested with a function.

Built-ins are found by module name; third parties register a module or class under the entry-point group
``pipeswarm.targets``. Either offers what `Platform` says.
"""

from harness.targets.target import (
    CalledBack,
    CompletedRun,
    ListedRun,
    Listing,
    Platform,
    Prepared,
    RejectedError,
    RunPage,
    SetUp,
    Target,
    find,
    names,
)

__all__ = [
    "CalledBack",
    "CompletedRun",
    "ListedRun",
    "Listing",
    "Platform",
    "Prepared",
    "RejectedError",
    "RunPage",
    "SetUp",
    "Target",
    "find",
    "names",
]  # fmt: skip
