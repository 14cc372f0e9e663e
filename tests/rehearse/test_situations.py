"""The short form of the truth table: made on real parts, and named first."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.real_kubernetes import RealCluster
from tests.support.situations.account import line, page
from tests.support.situations.perform import Outcome, Told, perform
from tests.support.situations.rehearsing import quick_cluster
from tests.support.situations.situation import Situation
from tests.support.situations.table import SITUATIONS

SHORT = [each for each in SITUATIONS if each.short]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    with ExitStack() as stack:
        yield quick_cluster(stack, tmp_path_factory.mktemp("kubernetes"))


@pytest.mark.parametrize("situation", SHORT, ids=[each.name for each in SHORT])
def test_what_limits_a_real_controller_is_named_first(
    situation: Situation, cluster: RealCluster, tmp_path: Path
) -> None:
    outcome = perform(situation, cluster, tmp_path)
    assert not outcome.errors
    assert [check for check in outcome.checks if not check.met] == [], "the records are what the kubelet did"
    for told in outcome.told:
        assert told.is_right(situation), told
        assert told.false(situation) == []


TAINT = next(each for each in SITUATIONS if each.name == "taint")
NONE = next(each for each in SITUATIONS if each.name == "none")


@pytest.mark.parametrize(
    ("situation", "findings", "right", "false"),
    [
        (TAINT, [("untolerated-taint", 0.9, "Nodes have a taint")], True, []),
        (TAINT, [("claim-unbound", 0.9, "A claim is unbound")], False, ["claim-unbound"]),
        (TAINT, [("nodes-exhausted", 0.9, "taint"), ("untolerated-taint", 0.9, "taint")], False, ["nodes-exhausted"]),
        (TAINT, [], False, []),
        (NONE, [], True, []),
        (NONE, [("store-slow", 0.5, "The store is slow")], True, []),
        (NONE, [("store-slow", 0.8, "The store is slow")], False, ["store-slow"]),
        (NONE, [("too-few-samples", 0.8, "Too few runs ended")], True, []),
    ],
)
def test_a_report_is_judged_by_its_first_finding_and_by_what_is_false_at_80_percent(
    situation: Situation, findings: list[tuple[str, float, str]], right: bool, false: list[str]
) -> None:
    told = Told(tuple(findings), "VALID", "")
    assert told.is_right(situation) is right
    assert told.false(situation) == false


def test_the_page_marks_what_is_wrong_and_counts_what_is_right() -> None:
    good = Told((("untolerated-taint", 0.95, "Nodes | have a taint"),), "VALID", "12 in flight")
    bad = Told((("store-slow", 0.9, "The store is slow"),), "VALID", "30 succeeded; 10 s a run")
    outcomes = [
        Outcome(TAINT, None, good, good),
        Outcome(NONE, None, bad, bad),
        Outcome(TAINT, None, None, None, ("no node",)),
    ]
    text = page(outcomes)
    assert "First right: 1 of 3 with Prometheus (33%), 1 of 3 without (33%). False at 80 % or more: 1." in text
    assert "| `untolerated-taint` 95%: Nodes \\| have a taint | `untolerated-taint` 95%:" in text
    assert "| `store-slow` 90% **✗**: The store is slow; false: store-slow |" in text
    assert "not performed: no node" in text
    assert [line(each)[:5] for each in outcomes] == ["right", "WRONG", "taint"]


def test_situations_have_names_of_their_own_that_a_namespace_may_have() -> None:
    names = [each.name for each in SITUATIONS]
    assert len(set(names)) == len(names)
    assert all(name.replace("-", "").isalnum() and name == name.lower() for name in names)
