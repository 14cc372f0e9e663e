"""What tests of several rooms share: fixtures, and which tests may run beside each other."""

import gc
import os
import signal
from fnmatch import fnmatch
from functools import cache

import pytest
from hypothesis import settings

from tests.support.real_kubernetes import end_cluster, real_cluster

__all__ = ["real_cluster"]

# How long an example takes says how busy the machine is.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")
# Effects have tests of their own (tests/reports/test_effects.py), and cost more than most tests.
os.environ["PIPESWARM_NO_WHAT_IF"] = "true"

_USUAL, _POLITE = os.nice(0), 10
_LOADS = ("whole-load-tests", "more-load-tests", "further-load-tests")
_MORE = (  # a third of the time each
    "test_docs.py", "contracts/test_plugins.py", "e2e/test_hetida*.py", "e2e/test_closed.py", "e2e/test_interrupts.py",
)  # fmt: skip
_FURTHER = (
    "rehearse/test_situations.py", "e2e/test_demo.py", "e2e/test_recover.py", "e2e/test_web_*.py", "e2e/test_store.py",
    "e2e/test_token.py", "e2e/test_kill.py",
)  # fmt: skip


def pytest_configure() -> None:
    """A shell ignores SIGINT in what it starts in the background; the processes that tests interrupt would inherit it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Groups for `make test`: a group stays in one process.

    Whole load tests mostly wait: three at a time, more would load each other. One real control plane serves all tests
    that need it; of the others each file is a group, so that its fixtures are made once. The long groups begin first.
    """
    order = {name: rank for rank, name in enumerate((*_LOADS, "real-kubernetes"))}
    ranks = {}
    for item in items:
        file = item.nodeid.partition("::")[0]
        group = "real-kubernetes" if "real_cluster" in getattr(item, "fixturenames", ()) else _group_of(file)
        item.add_marker(pytest.mark.xdist_group(group))
        ranks[item] = order.get(group, len(order))
    items.sort(key=ranks.__getitem__)


@cache
def _group_of(file: str) -> str:
    for group, names in ((_LOADS[1], _MORE), (_LOADS[2], _FURTHER), (_LOADS[0], ("e2e/*.py",))):
        if any(fnmatch(file, f"tests/{name}") for name in names):
            return group
    return file


def pytest_make_parametrize_id(val: object) -> str | None:
    """Names of tests go from each worker to xdist's controller: a megabyte of input is no name."""
    return repr(val[:40]) if isinstance(val, str | bytes) and len(val) > 80 else None


def pytest_collection_finish():
    """What was imported and collected stays: each full collection of a test's garbage would look through all of it."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)  # when the test's own fixtures are gone
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """The control plane ends with its group, where each group stays in one process."""
    this, following = ("real_cluster" in getattr(each, "fixturenames", ()) for each in (item, nextitem))
    if "PYTEST_XDIST_WORKER" in os.environ and this and not following:
        end_cluster()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Beside load tests the others give way: on a busy machine arrivals would be late, which is not what is tested."""
    group = next(item.iter_markers("xdist_group")).args[0]
    if "PYTEST_XDIST_WORKER" in os.environ and group not in _LOADS and os.nice(0) == _USUAL:
        os.nice(_POLITE)
