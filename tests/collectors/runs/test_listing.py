"""Runs followed through a bulk listing."""

import threading
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model import Event, Sample, Span
from harness.model.phases import (
    FAILED,
    GAP,
    LIST_SECONDS,
    REMOVED,
    RUNS_IN_FLIGHT,
    SUCCEEDED,
    TERMINAL_STATES,
    WRONG_CLUSTER,
)
from tests.support.run_listing import T0, Platform, Scene


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path, intended=0)


class TestFollowing:
    def test_a_run_is_recorded_when_first_seen_and_when_over(self, scene: Scene) -> None:
        scene.platform.put("a", "PENDING", 5)
        scene.sweep()
        assert scene.folder.records(Span) == [Span("a", "", "run", T0 + 5 * 10**9, None, "name-a", 0, None, "kfp", 1.0)]
        scene.platform.put("a", "RUNNING", 5)
        scene.sweep()
        scene.platform.put("a", FAILED, 5, 65, error="no space left")
        scene.sweep()
        scene.sweep()
        assert scene.folder.records(Span)[1:] == [
            Span("a", "", "run", T0 + 5 * 10**9, T0 + 65 * 10**9, "name-a", 0, None, "kfp", 1.0)
        ]
        assert scene.folder.records(Event) == [
            Event(T0 + 65 * 10**9, "Run", "a", FAILED, "no space left", "kfp", "a", type="Warning")
        ]

    def test_cancelling_is_not_the_end(self, scene: Scene) -> None:
        scene.platform.put("a", "CANCELING", 0)
        scene.sweep()
        assert not scene.ends()
        assert scene.runs.live().runs == {"CANCELING": 1}

    def test_an_end_without_a_stamp_is_dated_when_it_was_seen(self, scene: Scene) -> None:
        scene.platform.put("a", "CANCELED", 0)
        scene.sweep()
        assert scene.folder.records(Span)[0].ended_at is None
        assert scene.folder.records(Event)[0].at == T0

    def test_pages_of_runs_that_are_over_are_not_listed_again(self, scene: Scene) -> None:
        for k in range(12):
            scene.platform.put(f"r{k:02d}", SUCCEEDED, 100 * k, 100 * k + 1)
        assert scene.sweep() == 4
        assert scene.sweep() == 1
        scene.platform.put("r12", "RUNNING", 1200)
        assert scene.sweep() == 1

    def test_a_sweep_goes_down_to_the_oldest_open_run_and_no_further(self, scene: Scene) -> None:
        for k in range(12):
            scene.platform.put(
                f"r{k:02d}", SUCCEEDED if k != 5 else "RUNNING", 100 * k, 100 * k + 1 if k != 5 else None
            )
        scene.sweep()
        assert scene.sweep() == 3  # r11…r09, r08…r06, r05…r03

    def test_a_run_that_is_listed_late_below_known_ones_is_found(self, scene: Scene) -> None:
        for k in range(12):
            scene.platform.put(f"r{k:02d}", SUCCEEDED, 10 * k, 10 * k + 1)
        scene.sweep()
        scene.platform.put("late", "RUNNING", 55)
        scene.accept(*scene.platform.runs)
        scene.sweep()
        assert scene.runs.live().runs == {SUCCEEDED: 12, "RUNNING": 1}

    def test_further_pages_are_read_only_for_runs_of_the_load(self, tmp_path: Path) -> None:
        scene = Scene(tmp_path, intended=12)
        for k in range(12):
            scene.platform.put(f"r{k:02d}", SUCCEEDED, 10 * k, 10 * k + 1)
        scene.accept("r11", "r10")
        assert scene.sweep() == 1
        scene.accept("r00")
        assert scene.sweep() == 4

    def test_a_run_whose_response_was_lost_is_searched_for(self, tmp_path: Path) -> None:
        scene = Scene(tmp_path, intended=4)
        for k in range(4):
            scene.platform.put(f"r{k}", SUCCEEDED, k, k + 1)
        scene.accept("r3", "r2", "r1")
        scene.lose(1)
        assert scene.sweep() == 2
        assert scene.sweep() == 1

    def test_runs_in_flight_are_sampled(self, scene: Scene) -> None:
        scene.platform.put("a", "RUNNING", 0)
        scene.platform.put("b", SUCCEEDED, 1, 2)
        scene.answers_in_s = 0.5
        scene.sweep()
        samples = scene.folder.records(Sample)
        assert [s.value for s in samples if s.metric == RUNS_IN_FLIGHT] == [1.0]
        (took,) = (s for s in samples if s.metric == LIST_SECONDS)
        assert took.value == 0.5
        assert took.labels == {"endpoint": "ListRuns"}

    @settings(max_examples=60, deadline=None)
    @given(
        st.integers(1, 4),
        st.lists(
            st.tuples(
                st.integers(0, 14),
                st.integers(0, 9),
                st.sampled_from(["RUNNING", *sorted(TERMINAL_STATES)]),
                st.booleans(),
            ),
            max_size=40,
        ),
    )
    def test_every_end_is_recorded_exactly_once_however_polls_and_changes_interleave(
        self, tmp_path_factory: pytest.TempPathFactory, page_size: int, changes: list[tuple[int, int, str, bool]]
    ) -> None:
        scene = Scene(tmp_path_factory.mktemp("runs"), Platform(page_size))
        created = 0
        for k, step, state, poll in changes:
            name, before = f"r{k}", scene.platform.runs.get(f"r{k}")
            if before is None:
                created += step  # runs are created in the order of time, several within a second
                scene.platform.put(name, state, created)
                scene.accept(name)
            elif before.state not in TERMINAL_STATES:
                scene.platform.put(name, state, (before.created_at - T0) // 10**9)
            if poll:
                scene.poll()
        scene.sweep()  # to the end of the present one
        scene.sweep()
        over = {(run.id, run.state) for run in scene.platform.runs.values() if run.state in TERMINAL_STATES}
        assert Counter(scene.ends()) == Counter(over)
        assert {span.run for span in scene.folder.records(Span)} == set(scene.platform.runs)


class TestReliability:
    def test_a_restarted_observer_resumes(self, tmp_path: Path) -> None:
        first = Scene(tmp_path)
        first.platform.put("a", SUCCEEDED, 0, 9)
        first.platform.put("b", "RUNNING", 1)
        first.sweep()
        second = Scene(tmp_path, first.platform)
        assert second.runs.poller.going == {"b"}
        first.platform.put("b", SUCCEEDED, 1, 12)
        second.sweep()
        assert second.ends() == [("a", SUCCEEDED), ("b", SUCCEEDED)]

    def test_a_restarted_observer_does_not_wait_for_removed_runs(self, tmp_path: Path) -> None:
        first = Scene(tmp_path)
        first.platform.put("a", "RUNNING", 0)
        first.sweep()
        del first.platform.runs["a"]
        first.sweep()
        assert first.ends() == [("a", REMOVED)]
        assert first.runs.live().runs == {}
        assert not Scene(tmp_path, first.platform).runs.poller.going

    def test_a_platform_that_is_temporarily_unreachable_leaves_a_gap_and_loses_nothing(self, scene: Scene) -> None:
        scene.platform.put("a", "RUNNING", 0)
        scene.poll()
        scene.platform.down = True
        for backoff_s in (1.0, 2.0):
            scene.poll()
            assert scene.backoff_s == backoff_s
        scene.platform.down = False
        scene.platform.put("a", SUCCEEDED, 0, 9)
        scene.poll()
        assert scene.ends() == [("a", SUCCEEDED)]
        assert [e.reason for e in scene.folder.records(Event) if e.kind == "Observer"] == ["Retry", "Retry", GAP]

    def test_after_stop_there_is_one_last_sweep(self, scene: Scene) -> None:
        stop = threading.Event()
        stop.set()
        for k in range(7):
            scene.platform.put(f"r{k}", SUCCEEDED, k, k + 1)
        scene.runs.collect(stop)
        assert len(scene.ends()) == 7

    def test_the_last_sweep_searches_for_overlooked_runs_of_the_ledger(self, scene: Scene) -> None:
        stop = threading.Event()
        stop.set()
        for k in range(12):
            scene.platform.put(f"r{k:02d}", SUCCEEDED, 1000 * k, 1000 * k + 1)
        scene.sweep()
        scene.platform.put("old", SUCCEEDED, 1, 2)
        scene.accept("old")
        scene.runs.collect(stop)
        assert ("old", SUCCEEDED) in scene.ends()


class TestWrongCluster:
    def test_runs_that_succeed_without_a_pod_are_reported_as_a_mismatch_once(self, scene: Scene) -> None:
        scene.observation.activity.worked = {"of another platform"}
        for k in range(3):
            scene.platform.put(f"r{k}", SUCCEEDED, k, k + 9)
            scene.sweep()
        scene.sweep()
        (event,) = (event for event in scene.folder.records(Event) if event.reason == WRONG_CLUSTER)
        assert event.message.startswith("3 of the runs at http://x succeeded, but no observed pod")

    def test_one_run_is_enough_at_the_end(self, scene: Scene) -> None:
        stop = threading.Event()
        stop.set()
        scene.observation.activity.worked = set()
        scene.platform.put("a", SUCCEEDED, 0, 9)
        scene.runs.collect(stop)
        assert any(event.reason == WRONG_CLUSTER for event in scene.folder.records(Event))

    @pytest.mark.parametrize(("worked", "state"), [(None, SUCCEEDED), ({"r1"}, SUCCEEDED), (set(), FAILED)])
    def test_unobserved_pods_a_pod_of_any_run_and_failed_runs_are_no_mismatch(
        self, scene: Scene, worked: set[str] | None, state: str
    ) -> None:
        scene.observation.activity.worked = worked
        for k in range(5):
            scene.platform.put(f"r{k}", state, k, k + 9)
        scene.sweep()
        assert not any(event.reason == WRONG_CLUSTER for event in scene.folder.records(Event))
