import numpy as np
import pandas as pd
import pytest

from harness.analysis.cost.resources import Throttling, by_periods, by_use, use
from harness.model.phases import POD_CFS_PERIODS, POD_CFS_THROTTLED, POD_CPU_CORES
from tests.support.timelines import Story

TASKS = pd.Series({"a-0": "train", "a-1": "train", "b-0": "watch", "c-0": "idle", "d-0": "once", "e-0": "free"})


def test_the_periods_of_all_pods_of_a_task_count_together(tmp_path):
    """Of pods of the test; without a count of throttled periods none was throttled, without any period nothing is known."""
    story = Story(intended=1)
    periods = {"a-0": 30.0, "a-1": 10.0, "b-0": 20.0, "c-0": 0.0, "d-0": 1.0, "another": 5.0}
    for pod, count in periods.items():
        story.sample(20.0, POD_CFS_PERIODS, count, pod=pod)
    for pod, count in (("a-0", 3.0), ("a-1", 5.0), ("d-0", 1.0), ("another", 5.0)):
        story.sample(20.0, POD_CFS_THROTTLED, count, pod=pod)
    story.sample(20.0, POD_CFS_PERIODS, 7.0, node="n0")  # of no pod
    assert by_periods(story.timeline(tmp_path), TASKS) == {
        "train": Throttling(pytest.approx(8 / 40), by_periods=True),
        "watch": Throttling(0.0, by_periods=True),
        "once": Throttling(1.0, by_periods=True),
    }


def test_samples_come_with_pod_and_task(tmp_path):
    story = Story(intended=1)
    for at_s, pod, cores in ((1.0, "a-0", 0.5), (2.0, "other", 0.7), (3.0, "b-0", 0.9)):
        story.sample(at_s, POD_CPU_CORES, cores, pod=pod)
    timeline = story.timeline(tmp_path)
    assert use(timeline, POD_CPU_CORES, TASKS)[["pod", "task", "value"]].to_dict("records") == [
        {"pod": "a-0", "task": "train", "value": 0.5}, {"pod": "b-0", "task": "watch", "value": 0.9},
    ]  # fmt: skip
    assert use(timeline, POD_CFS_PERIODS, TASKS).empty
    assert by_periods(timeline, TASKS) == {}


@pytest.mark.parametrize(
    ("cores", "limit", "share"),
    [
        ([0.94, 0.95, 1.2, 0.1], 1.0, 0.5),
        ([1.9, 1.89], 2.0, 0.5),
        ([0.5], 0.0, None),
        ([0.5], None, None),
        ([], 1.0, None),
    ],
)
def test_without_periods_measurements_at_the_limit_count(cores, limit, share):
    found = by_use(np.array(cores), limit)
    assert found == (None if share is None else Throttling(share, by_periods=False))


@pytest.mark.parametrize(
    ("share", "periods", "much", "sentence"),
    [
        (0.25, True, False, "throttled in 25% of its CFS periods"),
        (0.26, True, True, "throttled in 26% of its CFS periods"),
        (0.05, False, False, "5% of the time"),
        (0.06, False, True, "6% of the time"),
    ],
)
def test_a_burst_of_threads_may_be_throttled_a_little(share, periods, much, sentence):
    found = Throttling(share, by_periods=periods)
    assert (found.much, found.sentence) == (much, sentence)
