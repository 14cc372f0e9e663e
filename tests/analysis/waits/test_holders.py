"""What pods do with what others wait for, by how much they hold and how many wait meanwhile."""

import numpy as np
import pytest

from harness.analysis.waits.holders import holders
from harness.model.phases import PULLING, REQUESTED_CPU_CORES, RUNNING
from tests.support.timelines import Story

_WAIT = (np.array([0.0]), np.array([20.0]))


def held(*pods, requests=(), place):
    """The holders' timeline: pods as (task, (phase, start, end), …)."""
    story = Story(intended=1)
    run = story.submit(0, due=0.0)
    for task, *phases in pods:
        story.pod(run, task, "node-0", *phases)
    for task, cores in requests:
        story.sample(0.0, REQUESTED_CPU_CORES, cores, task=task)
    story.run(run, 0.0, 100.0)
    return story.timeline(place)


@pytest.mark.parametrize(
    ("pods", "requests", "waits", "pulling"),
    [
        ([("step", (PULLING, 0.0, 5.0), (RUNNING, 5.0, 20.0))], (), _WAIT, 0.25),
        ([("step", (PULLING, 0.0, 5.0), (RUNNING, 5.0, 100.0))], (), _WAIT, 0.25),  # nobody waits after 20 s
        ([("step", (PULLING, 0.0, 5.0), (RUNNING, 5.0, 20.0))], (), (np.array([10.0]), np.array([20.0])), 0.0),
        # Two wait in the first half, and one in the second.
        (
            [("step", (PULLING, 0.0, 10.0), (RUNNING, 10.0, 20.0))],
            (),
            (np.array([0.0, 0.0]), np.array([20.0, 10.0])),
            2 / 3,
        ),
        # A small driver pulls while a large step runs.
        (
            [("driver", (PULLING, 0.0, 20.0)), ("step", (RUNNING, 0.0, 20.0))],
            (("driver", 0.1), ("step", 1.9)),
            _WAIT,
            0.05,
        ),
        ([("driver", (PULLING, 0.0, 20.0)), ("step", (RUNNING, 0.0, 20.0))], (), _WAIT, 0.5),
        ([("step", (PULLING, 0.0, 5.0), (RUNNING, 5.0, 100.0))], (), (np.array([0.0]), np.array([np.nan])), 0.05),
        ([("step", (PULLING, 0.0, 5.0))], (), (np.zeros(0), np.zeros(0)), 0.0),
    ],
)
def test_each_counts_by_what_it_holds_while_others_wait(pods, requests, waits, pulling, tmp_path):
    found = holders(held(*pods, requests=requests, place=tmp_path), *waits, "cpu")
    assert found.pulling == pytest.approx(pulling, abs=1e-6)
    assert found.working == pytest.approx(1 - pulling, abs=1e-6)
