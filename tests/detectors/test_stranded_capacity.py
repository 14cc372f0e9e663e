"""Which resource the nodes lacked while pods waited, and whether smaller requests would have made room."""

import pytest

from harness.detectors import diagnose
from harness.detectors.detector import CannotJudgeError
from harness.detectors.nodes import stranded_capacity
from harness.model.phases import (
    NODE_MEMORY_BYTES,
    REQUESTED_CPU_CORES,
    REQUESTED_EPHEMERAL_BYTES,
    REQUESTED_GPUS,
    REQUESTED_MEMORY_BYTES,
)
from tests.support.injected.loads import NODES
from tests.support.injected.nodes import overstated
from tests.support.timelines import GIB

_LITTLE = {REQUESTED_CPU_CORES: 0.5}
_GPU = {REQUESTED_CPU_CORES: 0.5, REQUESTED_GPUS: 1.0}
_MEMORY = {REQUESTED_CPU_CORES: 0.5, REQUESTED_MEMORY_BYTES: 12.0 * GIB}


def names(story, place):
    return [finding.name for finding in diagnose(story.timeline(place)).findings]


@pytest.mark.parametrize(
    ("story", "full", "stranded"),
    [
        (overstated, True, True),
        (lambda: overstated(used=3.2), True, False),  # what is requested is used
        (lambda: overstated(held=_LITTLE), False, False),  # the nodes lacked nothing
        (lambda: overstated(wants=_GPU, held=_GPU), True, False),  # smaller requests bring no GPU
    ],
)
def test_capacity_is_stranded_where_nodes_lack_what_they_hardly_use(story, full, stranded, tmp_path):
    found = names(story(), tmp_path)
    assert ("nodes-exhausted" in found) is full
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


@pytest.mark.parametrize(("disk", "judged"), [(5, False), (1, True)])
def test_nodes_that_mostly_lack_local_disk_are_not_judged_by_their_cpu(disk, judged, tmp_path):
    story = overstated()
    for lack, count in (("ephemeral-storage", disk), ("cpu", 3)):
        message = f"0/6 nodes are available: 6 Insufficient {lack}."
        story.event(5.0, "Pod", "p", "FailedScheduling", message, count=count, type="Warning")
    diagnosis = diagnose(story.timeline(tmp_path))
    assert ("stranded-capacity" in [each.name for each in diagnosis.findings]) is judged
    reasons = {each.name: each.reason for each in diagnosis.not_judged}
    assert ("ephemeral storage" in reasons.get("stranded-capacity", "")) is not judged


def disk(wants: float, held: float, room: float = 100.0, cpu: float = 0.5):
    """Pods that request GiB of ephemeral storage, on nodes with `room` of it."""
    amounts = ({REQUESTED_CPU_CORES: cpu, REQUESTED_EPHEMERAL_BYTES: each * GIB} for each in (wants, held))
    return overstated(wants=next(amounts), held=next(amounts), ephemeral=room * GIB)


def test_ephemeral_storage_counts_by_requests(tmp_path):
    (found,) = stranded_capacity.detect(disk(wants=30, held=80).timeline(tmp_path))
    assert found.title == (
        "Capacity is stranded: pods waited for ephemeral storage while no more than 12% of the nodes' CPU was requested"
    )
    assert "80% of these nodes' ephemeral storage" in found.evidence[1].statement
    assert "ephemeral storage" in found.fix


@pytest.mark.parametrize(
    "story",
    [
        disk(wants=30, held=70),  # fits just so
        disk(wants=30, held=80, cpu=2.0),  # half of the CPU is requested
        disk(wants=30, held=80, room=0.0),  # recorded before ephemeral storage was
        overstated(
            wants=_GPU | {REQUESTED_EPHEMERAL_BYTES: 30.0 * GIB},
            held=_GPU | {REQUESTED_EPHEMERAL_BYTES: 80.0 * GIB},
            ephemeral=100.0 * GIB,
        ),  # smaller disks bring no GPU
    ],
)
def test_no_ephemeral_storage_is_stranded_where_there_is_enough_or_something_else_lacks(story, tmp_path):
    assert stranded_capacity.detect(story.timeline(tmp_path)) == []


def test_more_ephemeral_storage_than_any_node_has_is_too_much(tmp_path):
    (finding, *_) = diagnose(disk(wants=200, held=80).timeline(tmp_path)).findings
    assert "200.0 GiB of ephemeral storage, and no node has more than 100.0 GiB of ephemeral storage" in finding.title


def test_a_lack_of_local_disk_that_the_requests_show_is_judged(tmp_path):
    story = disk(wants=30, held=80)
    story.event(5.0, "Pod", "p", "FailedScheduling", "0/6 nodes are available: 6 Insufficient ephemeral-storage.")
    assert "stranded-capacity" in names(story, tmp_path)
