import pytest

from harness.analysis.bounds import bounds
from tests.detectors.planted import api_throttled, steady
from tests.timelines import burst


def test_a_queue_for_nodes_shows_what_the_nodes_can_carry(tmp_path):
    (nodes,) = bounds(burst(200).timeline(tmp_path))
    assert nodes.part == "nodes"
    assert nodes.servers == 16
    # By hand: the driver's 0.4 s and three steps of 0.3 + 0.2 + 3.0 s on a node; the lanes are empty in between.
    assert nodes.demand_s == pytest.approx(0.4 + 3 * 3.5)
    assert nodes.per_hour == pytest.approx(3600 * 16 / 10.9)
    assert 0.75 < nodes.utilisation < 1


def test_a_token_bucket_shows_the_apis_bound(tmp_path):
    found = {bound.part: bound for bound in bounds(api_throttled().timeline(tmp_path))}
    assert found["API server"].per_hour == pytest.approx(5 * 3600, rel=0.02)
    assert found["API server"].demand_s == pytest.approx(0.2, rel=0.02)


def test_parts_that_were_never_at_their_limit_have_no_bound(tmp_path):
    assert bounds(steady(40).timeline(tmp_path)) == ()
