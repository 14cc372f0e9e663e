from dataclasses import replace

import pytest

from harness.analysis.timeline import memory
from harness.analysis.timeline import timeline as module
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


@pytest.mark.parametrize(("least", "released"), [(2**20, 0), (10, 1)])
def test_only_of_a_large_test_memory_goes_back_to_the_system(tmp_path, monkeypatch, least, released):
    """Of a small one that takes a tenth of a diagnosis and more."""
    calls = []
    timeline = burst(5).timeline(tmp_path)
    monkeypatch.setattr(memory, "release", lambda: calls.append(1))
    monkeypatch.setattr(module, "_LARGE", least)
    count = remembered(lambda timeline: len(timeline.runs))
    assert (count(timeline), count(timeline)) == (5, 5)
    assert len(calls) == released
