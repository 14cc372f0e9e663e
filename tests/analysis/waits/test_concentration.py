"""Failures in one place are named, by an exact test."""

import pytest
from scipy.stats import fisher_exact

from harness.analysis.waits.concentration import concentration
from harness.detectors import diagnose
from tests.support.injected.loads import NODES, steady


def failing(where):
    """Runs are on the nodes in turn; a step fails where this says so of its number."""
    return steady(60, fails=lambda seq: "exit code 3: illegal instruction" if where(seq) else "")


def rows(timeline):
    return [row for row, state in enumerate(timeline.runs["state"]) if state == "FAILED"]


def test_failures_on_one_of_six_nodes_are_named_with_the_chance(tmp_path):
    timeline = failing(lambda seq: seq % len(NODES) == 2).timeline(tmp_path)
    found = concentration(timeline, rows(timeline))
    assert found is not None
    assert (found.kind, found.name, found.there, found.failed) == ("node", "node-2", 10, 10)
    assert found.sentence == "all 10 failures are of the node node-2, where 10 of 60 runs were"
    table = [[10, 0], [0, 50]]
    assert found.chance == pytest.approx(len(NODES) * fisher_exact(table, alternative="greater").pvalue)
    (finding,) = [each for each in diagnose(timeline).findings if each.name == "failures"]
    assert "on the node node-2" in finding.title
    assert finding.fix.startswith("Find out what is different about the node node-2")


@pytest.mark.parametrize("where", [lambda seq: seq % 4 == 0, lambda seq: seq == 2, lambda seq: True])
def test_failures_everywhere_few_or_all_are_not(where, tmp_path):
    timeline = failing(where).timeline(tmp_path)
    assert concentration(timeline, rows(timeline)) is None
