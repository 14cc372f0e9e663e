"""A tenant whose load slows the others is told from one that is merely busy, or slow itself."""

from dataclasses import replace

import pytest

from harness.detectors.nodes import noisy_neighbour
from tests.support.injected.services import noisy_tenants
from tests.support.timelines import Story


def found(story: Story, tmp_path) -> list[str]:
    return [finding.title for finding in noisy_neighbour.detect(story.timeline(tmp_path))]


def test_the_tenant_whose_load_slows_the_others_is_named(tmp_path):
    (finding,) = noisy_neighbour.detect(noisy_tenants().timeline(tmp_path))
    assert finding.title.startswith("The load of tenant batch slows the others: their runs take 2.9 times as long")
    assert "100%" not in finding.evidence[1].statement, "the others have runs in flight, too"


@pytest.mark.parametrize("story", [
    noisy_tenants(slow=1.0),
    noisy_tenants(slow=1.2),
    noisy_tenants(batch=2),
    noisy_tenants(steady=12),
], ids=["no effect", "a small effect", "most of the load is the others' own", "too few runs to tell"])  # fmt: skip
def test_a_tenant_that_is_merely_there_is_not_blamed(story, tmp_path):
    assert not found(story, tmp_path)


def test_without_names_of_tenants_there_are_no_neighbours(tmp_path):
    told = noisy_tenants()
    told.records = [replace(each, tenant="") if hasattr(each, "tenant") else each for each in told.records]
    assert not found(told, tmp_path)


def test_larger_scenarios_are_not_taken_for_slower_runs(tmp_path):
    """While the batch runs, the others send larger work: each run takes as long as its scenario always does."""
    assert not found(noisy_tenants(slow=3.0, own_scenario=True), tmp_path)
