from dataclasses import replace

from harness.analysis.timeline.memory import remembered
from tests.support.timelines import burst


def test_a_result_is_computed_once_per_timeline_and_forgotten_with_it(tmp_path):
    asked = []

    @remembered
    def count(timeline):
        """Number of runs."""
        asked.append(timeline)
        return len(timeline.runs)

    timeline = burst(5).timeline(tmp_path)
    assert (count(timeline), count(timeline)) == (5, 5)
    other = replace(timeline, runs=timeline.runs[:3])
    assert (count(other), count(timeline)) == (3, 5)
    assert [id(each) for each in asked] == [id(timeline), id(other)]
    assert count.__doc__ == "Number of runs."
