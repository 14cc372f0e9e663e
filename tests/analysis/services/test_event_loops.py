"""Replayed executions against what was measured on a real service, a queue's recursion, and the simulated service."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.analysis.services.replay import Work, durations
from harness.simulator.engine.events import EventLoop
from harness.simulator.hetida import Service
from harness.simulator.hetida.execution import HANDLING
from harness.simulator.hetida.execution import Work as Needs
from harness.simulator.profile import DataAdapter, Execution, Hetida, Runtime


def work(came, loading=0.0, computing=0.0, sending=0.0, replica=0):
    came = np.asarray(came, dtype=float)
    each = (np.broadcast_to(np.asarray(value, dtype=float), came.shape) for value in (loading, computing, sending))
    return Work(came, *each, np.broadcast_to(np.asarray(replica), came.shape))


def test_six_at_once_come_one_after_the_other_where_loading_blocks_the_only_worker():
    """Measured: 4.5 s for six requests behind an adapter of half a second, with one worker."""
    took = durations(work(np.zeros(6), loading=0.64, computing=0.10), 1)
    assert took.max() == pytest.approx(4.5, rel=0.05)


def test_three_workers_take_less_than_one_and_more_than_a_third_of_it():
    """Measured: 2.9 s."""
    spans = [durations(work(np.arange(6) * 1e-3, loading=0.64, computing=0.10), 3, seed).max() for seed in range(40)]
    assert min(spans) >= 6 * 0.74 / 3 - 0.01
    assert 2.0 < np.mean(spans) < 3.3


def test_a_worker_serves_what_became_ready_first():
    """Whatever is accepted together loads before any of it computes, and what waits meanwhile is not accepted yet."""
    took = durations(work([0.0, 0.5, 0.6, 3.5], loading=1.0, computing=2.0), 1)
    # The first one loads to 1 and computes to 3; two are accepted at 1, load to 4 and 5, and compute to 7 and 9. The
    # last one is accepted at 4, which is handled at 7: it loads from 9 to 10, and computes to 12.
    assert took.tolist() == [3.0, 6.5, 8.4, 8.5]


def test_sending_does_not_block_and_is_noticed_when_the_worker_is_free():
    took = durations(work([0.0, 0.1], computing=[1.0, 4.0], sending=[2.0, 0.0]), 1)
    assert took.tolist() == pytest.approx([5.0, 4.9])  # sent at 3, while the other one computes from 1 to 5


def test_the_first_free_worker_accepts_all_that_wait():
    took = durations(work([0.0, 0.1, 0.2, 0.3], computing=[1.0, 5.0, 2.0, 2.0]), 2)
    assert took == pytest.approx([1.0, 5.0, 2.8, 4.7])


def test_replicas_do_not_help_each_other():
    took = durations(work(np.zeros(4), computing=1.0, replica=[0, 0, 0, 1]), 1)
    assert sorted(took[:3].tolist()) == [1.0, 2.0, 3.0]
    assert took[3] == 1.0


@given(st.lists(st.tuples(st.floats(0, 50), st.floats(0.01, 9)), min_size=1, max_size=30, unique_by=lambda row: row[0]))
def test_a_worker_that_only_computes_is_a_queue(rows):
    """Lindley's recursion: the next wait is the last one, plus its service, less the time between the arrivals."""
    came, takes = np.array(sorted(rows)).T
    waits = [0.0]
    for k in range(1, came.size):
        waits.append(max(0.0, waits[-1] + takes[k - 1] - (came[k] - came[k - 1])))
    assert durations(work(came, computing=takes), 1) == pytest.approx(np.array(waits) + takes)


@given(
    st.lists(
        st.tuples(st.floats(0, 20), st.floats(0.01, 3), st.floats(0.01, 3), st.floats(0, 3), st.integers(0, 2)),
        min_size=1,
        max_size=25,
    ),
    st.integers(1, 4),
    st.randoms(use_true_random=False),
)
def test_none_takes_less_than_it_needs_and_the_order_in_which_they_are_given_does_not_matter(rows, workers, random):
    columns = np.array(rows).T
    rows = work(columns[0], *columns[1:4], replica=columns[4].astype(int))
    took = durations(rows, workers)
    assert (took >= columns[1:4].sum(axis=0) - 1e-9).all()
    if np.unique(columns[0]).size == columns[0].size:
        order = np.array(random.sample(range(took.size), took.size))
        shuffled = work(columns[0][order], *columns[1:4, order], replica=columns[4].astype(int)[order])
        assert durations(shuffled, workers) == pytest.approx(took[order])


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.floats(0, 30), st.floats(0.01, 3), st.floats(0.01, 3), st.floats(0.01, 3)),
        min_size=1,
        max_size=40,
        unique_by=lambda row: row[0],
    )
)
def test_one_worker_serves_as_the_simulated_service_does(rows):
    """Two implementations of one model, each without the other's code; which of two at one instant is first, is open."""
    apart = np.sqrt([2.0, 3.0, 5.0, 7.0])  # no sum of theirs is another one's
    rows = sorted((np.array(row) * apart).tolist() for row in rows)
    loop = EventLoop()
    runtime = Runtime(nodes=1, cores=16.0, replicas=1, workers=1, parse_s=0.0)
    service = Service(loop, Hetida(runtime=runtime, adapters=(DataAdapter("plants"),), executions=(Execution(),)), "7")
    jobs = []
    for at, load_s, compute_s, send_s in rows:
        needs = Needs(loads=(("plants", load_s),), compute_s=compute_s, sends=(("plants", send_s),))
        loop.at(at, lambda needs=needs: jobs.append(service.run(needs, lambda job: None)))
    loop.run(1e6)
    columns = np.array(rows).T
    assert columns[0] + durations(work(*columns), 1) == pytest.approx([job.ended[HANDLING] for job in jobs])
