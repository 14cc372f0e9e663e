"""Which resource the nodes lacked while pods waited, and whether smaller requests would have made room."""

import pytest

from harness.detectors import diagnose, stranded_capacity
from harness.detectors.detector import CannotJudgeError
from harness.model.phases import NODE_MEMORY_BYTES, REQUESTED_CPU_CORES, REQUESTED_GPUS, REQUESTED_MEMORY_BYTES
from tests.support.injected import NODES, overstated
from tests.support.timelines import GIB

_LITTLE = {REQUESTED_CPU_CORES: 0.5}
_GPU = {REQUESTED_CPU_CORES: 0.5, REQUESTED_GPUS: 1.0}
_MEMORY = {REQUESTED_CPU_CORES: 0.5, REQUESTED_MEMORY_BYTES: 12.0 * GIB}


def names(story, place):
    return [finding.name for finding in diagnose(story.timeline(place)).findings]


@pytest.mark.parametrize(
    ("story", "stranded"),
    [
        (overstated, True),
        (lambda: overstated(used=3.2), False),  # what is requested is used
        (lambda: overstated(held=_LITTLE), False),  # the nodes lacked nothing
        (lambda: overstated(wants=_GPU, held=_GPU), False),  # smaller requests bring no GPU
    ],
)
def test_capacity_is_stranded_where_nodes_lack_what_they_hardly_use(story, stranded, tmp_path):
    found = names(story(), tmp_path)
    assert "nodes-exhausted" in found
    assert ("stranded-capacity" in found) is stranded


def test_adding_nodes_comes_first_as_smaller_requests_gain_less(tmp_path):
    found = names(overstated(used=1.5), tmp_path)
    assert found.index("nodes-exhausted") < found.index("stranded-capacity")


@pytest.mark.parametrize(("used", "found"), [(2.0 * GIB, 1), (11.0 * GIB, 0)])
def test_memory_counts_by_how_much_of_it_is_used(used, found, tmp_path):
    story = overstated(used=3.9, wants=_MEMORY, held=_MEMORY)
    for second in range(0, 60, 5):
        for name in NODES:
            story.sample(second, NODE_MEMORY_BYTES, used, node=name)
    titles = [each.title for each in stranded_capacity.detect(story.timeline(tmp_path))]
    assert len(titles) == found
    assert all("memory" in title for title in titles)


def test_memory_whose_use_was_not_observed_is_not_judged(tmp_path):
    with pytest.raises(CannotJudgeError, match="lacked memory"):
        stranded_capacity.detect(overstated(wants=_MEMORY, held=_MEMORY).timeline(tmp_path))


def test_a_pod_that_fits_on_no_node_is_no_matter_of_more_nodes(tmp_path):
    (finding, *others) = diagnose(overstated(wants={REQUESTED_CPU_CORES: 6.0}).timeline(tmp_path)).findings
    assert finding.title == (
        "Pods of prepare fit on no node, however many there are: they request 6 cores, and no node has more than "
        "4 cores"
    )
    assert "nodes-exhausted" not in [each.name for each in others]
