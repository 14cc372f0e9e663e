"""What tests of several rooms share: fixtures, and which tests may run beside each other."""

import pytest
from hypothesis import settings

from tests.real_kubernetes import real_cluster

__all__ = ["real_cluster"]

# How long an example takes says how busy the machine is.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Groups for `make test`: a group stays in one process.

    Whole load tests mostly wait: two at a time, more would load each other. One real control plane serves all tests
    that need it; of the others each file is a group, so that its fixtures are made once. The long groups begin first.
    """
    order = {"whole-load-tests": 0, "documented-load-tests": 1, "real-kubernetes": 2}
    ranks = {}
    for item in items:
        if "real_cluster" in getattr(item, "fixturenames", ()):
            group = "real-kubernetes"
        elif item.path.name == "test_docs.py" or item.path.match("tests/e2e/test_hetida*.py"):
            group = "documented-load-tests"
        elif item.path.match("tests/e2e/*.py"):
            group = "whole-load-tests"
        else:
            group = item.nodeid.partition("::")[0]
        item.add_marker(pytest.mark.xdist_group(group))
        ranks[item] = order.get(group, len(order))
    items.sort(key=ranks.__getitem__)
