"""Which pods and nodes may be evicted, and when."""

from itertools import pairwise
from random import Random

import pytest

from harness.model.cluster import CandidateNode, CandidatePod
from harness.planning.evictions import (
    Attempt,
    Choice,
    Refused,
    Scope,
    Victim,
    choose_nodes,
    choose_pods,
    evict_at,
    instants,
)

OURS = Scope("kubeflow")


def pod(name, *, run="", namespace="kubeflow", node="n0", everywhere=False):
    return CandidatePod(name, namespace, node, run, everywhere)


@pytest.mark.parametrize(
    ("given", "scope", "reason"),
    [
        (pod("train", run="r1"), OURS, None),
        (pod("train", run="r1"), Scope("kubeflow", {"r1"}), None),
        (pod("train", run="r2"), Scope("kubeflow", {"r1"}), "works for a run that is not this test's"),
        (pod("train", run="r1"), Scope("kubeflow", set()), "works for a run that is not this test's"),
        (pod("mysql"), OURS, "works for no run"),
        (pod("mysql"), Scope("kubeflow", allowed=["mysql"]), None),
        (pod("train", run="r1", namespace="team"), OURS, "works for a run that is not this test's"),
    ],
)
def test_only_pods_of_the_tests_runs_may_be_evicted_unless_named(given, scope, reason):
    found = choose_pods([given], scope)
    assert [each.name for each in found.victims] == ([] if reason else [given.name])
    assert [each.reason for each in found.refused] == ([reason] if reason else [])


STEP = pod("train", run="r1")
MANY = "kubeflow/p0, kubeflow/p1, kubeflow/p2 and 2 more"


@pytest.mark.parametrize(
    ("there", "control_plane", "scope", "reason"),
    [
        ([], False, OURS, None),
        ([STEP], False, OURS, None),
        ([STEP, pod("proxy", namespace="kube-system", everywhere=True)], False, OURS, None),
        ([STEP, pod("elsewhere", node="n1")], False, OURS, None),
        ([STEP, pod("mysql")], False, OURS, "holds kubeflow/mysql, not of the test"),
        ([STEP, pod("web", namespace="shop")], False, OURS, "holds shop/web, not of the test"),
        ([STEP], False, Scope("kubeflow", {"r2"}), "holds kubeflow/train, not of the test"),
        ([pod(f"p{k}") for k in range(5)], False, OURS, f"holds {MANY}, not of the test"),
        ([STEP], True, OURS, "runs the cluster's control plane"),
        ([STEP, pod("mysql")], True, Scope("kubeflow", allowed=["n0"]), None),
        ([STEP, pod("mysql")], False, Scope("kubeflow", allowed=["mysql"]), "holds kubeflow/mysql, not of the test"),
    ],
)  # fmt: skip
def test_only_nodes_that_hold_nothing_else_may_be_evicted_unless_named(there, control_plane, scope, reason):
    found = choose_nodes([CandidateNode("n0", control_plane)], there, scope)
    assert found.refused == ((Refused("n0", reason),) if reason else ())
    assert [each.name for each in found.victims] == ([] if reason else ["n0"])


def test_a_node_says_how_many_pods_of_runs_it_holds():
    (found,) = choose_nodes([CandidateNode("n0", control_plane=False)], [STEP, pod("b", run="r2")], OURS).victims
    assert str(found) == "node n0 with 2 pods of runs"


def test_instants_are_a_poisson_process():
    """Over 1,000 hours at 6 an hour: 6,000 within four standard deviations, and gaps as variable as their mean."""
    found = instants(6 / 3600, 1000 * 3600.0, Random(1))
    gaps = [b - a for a, b in pairwise([0.0, *found])]
    mean = sum(gaps) / len(gaps)
    assert abs(len(found) - 6000) < 4 * 6000**0.5
    assert sum((gap - mean) ** 2 for gap in gaps) / len(gaps) == pytest.approx(mean**2, rel=0.1)
    assert max(found) < 1000 * 3600.0


def test_at_each_instant_one_victim_of_that_moment_is_evicted_and_a_refusal_ends_nothing():
    choices = iter([Choice((Victim("pod", "a"),), ()), Choice((), ()), Choice((Victim("pod", "b"),), ())])
    said = {"a": "disruption budget", "b": ""}
    found = [*evict_at([1.0, 2.0, 3.0], lambda: next(choices), lambda v: said[v.name], lambda at: at + 0.5, Random(0))]
    assert found == [
        Attempt(1.5, Victim("pod", "a"), "disruption budget"),
        Attempt(2.5, None, "nothing to evict"),
        Attempt(3.5, Victim("pod", "b"), ""),
    ]


def test_victims_are_drawn_evenly():
    victims = tuple(Victim("pod", name) for name in "abcd")
    found = [*evict_at([0.0] * 400, lambda: Choice(victims, ()), lambda _: "", lambda at: at, Random(3))]
    counts = [sum(each.victim == victim for each in found) for victim in victims]
    assert all(abs(count - 100) < 4 * (400 * 0.25 * 0.75) ** 0.5 for count in counts)
