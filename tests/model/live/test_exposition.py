"""Pages of metrics in Prometheus' text format."""

import pytest

from harness.model.live.exposition import Histogram, written


def test_a_page_has_help_type_and_one_line_per_series():
    page = written(
        [
            ("runs", "gauge", "Runs there are.", [({}, 3.0), ({"state": "a", "zone": 'x"y\\z\nw'}, 0.5)]),
            ("none", "gauge", "Not shown.", []),
        ]
    )
    assert page == (
        '# HELP runs Runs there are.\n# TYPE runs gauge\nruns 3\nruns{state="a",zone="x\\"y\\\\z\\nw"} 0.5\n'
    )


def test_a_histogram_has_cumulative_buckets_sum_and_count():
    took = Histogram((0.5, 1.0))
    for value in (0.25, 0.5, 0.75, 7.0):
        took.observe(value)
    took.observe(1.0, times=2)
    assert written([("took", "histogram", "Seconds.", [({"verb": "GET"}, took)])]).splitlines()[2:] == [
        'took_bucket{verb="GET",le="0.5"} 2',
        'took_bucket{verb="GET",le="1"} 5',
        'took_bucket{verb="GET",le="+Inf"} 6',
        'took_sum{verb="GET"} 10.5',
        'took_count{verb="GET"} 6',
    ]


@pytest.mark.parametrize(("value", "bound"), [(0.005, "0.005"), (0.006, "0.01"), (300.0, "300"), (301.0, "+Inf")])
def test_without_bounds_those_of_requests_are_taken(value, bound):
    took = Histogram()
    took.observe(value)
    assert next(name for name, count in took.buckets() if count) == bound
