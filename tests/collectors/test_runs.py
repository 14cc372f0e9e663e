"""Following runs through a bulk listing."""

import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.collectors.collector import Observation, ObserverSettings
from harness.collectors.journal import Journal
from harness.collectors.pace import Pace
from harness.collectors.runs import Runs
from harness.model import Event, Outcome, Plan, Sample, Scenario, Span, Submission, TargetUnreachableError
from harness.model.http import Exchange, HttpAnswer, HttpRequest
from harness.model.phases import FAILED, GAP, LIST_SECONDS, RUNS_IN_FLIGHT, SUCCEEDED, TERMINAL_STATES, WRONG_CLUSTER
from harness.store import RunFolder
from harness.targets.target import ListedRun, RunPage, SetUp

T0 = 1_790_000_000 * 10**9


class Platform:
    """A platform that lists its runs newest first, a few a page, by keyset as KFP does."""

    def __init__(self, page_size: int = 3) -> None:
        self.page_size = page_size
        self.runs: dict[str, ListedRun] = {}
        self.listed = 0
        self.down = False

    def put(self, name: str, state: str, created: int = 0, ended: int | None = None, error: str = "") -> None:
        ended_at = None if ended is None else T0 + ended * 10**9
        self.runs[name] = ListedRun(name, f"name-{name}", state, T0 + created * 10**9, ended_at, error)

    def set_up(self, exchange: Exchange) -> SetUp:
        raise AssertionError("the observer only lists runs")

    def submit(self, scenario: Scenario, exchange: Exchange) -> str:
        raise AssertionError("the observer only lists runs")

    def list_runs(self, exchange: Exchange, page: str = "") -> RunPage:
        exchange(HttpRequest("GET", "/runs"))
        self.listed += 1
        newest = sorted(self.runs.values(), key=lambda run: (run.created_at, run.id), reverse=True)
        if page:
            newest = [run for run in newest if f"{run.created_at:020d} {run.id}" <= page]
        found, rest = newest[: self.page_size], newest[self.page_size :]
        return RunPage(tuple(found), f"{rest[0].created_at:020d} {rest[0].id}" if rest else "")


class Scene:
    """A run folder, a platform, and the collector between them; a poll happens when told."""

    def __init__(self, path: Path, platform: Platform | None = None, schedule: str = "burst") -> None:
        self.platform = platform or Platform()
        self.folder = RunFolder(path)
        self.observation = Observation(
            self.folder, Plan("kfp", "http://x", {"name": schedule}, 1, 0, False), self.platform, ObserverSettings("http://x"),
            Journal(self.folder.recorder(), now=lambda: T0),
        )  # fmt: skip
        self.runs = Runs(self.observation, self.observation.target, self._exchange)

    def _exchange(self, request: HttpRequest) -> HttpAnswer:
        if self.platform.down:
            raise TargetUnreachableError("refused")
        return HttpAnswer(200, b"{}")

    def sweep(self) -> int:
        """Poll until the listing is begun anew; how many requests it took."""
        before = self.platform.listed
        while True:
            polled = self.platform.listed
            self.runs._poll()
            assert self.platform.listed == polled + 1, "a poll is one request"
            if not self.runs._page:
                return self.platform.listed - before

    def ends(self) -> list[tuple[str, str]]:
        return [(event.object, event.reason) for event in self.folder.records(Event) if event.kind == "Run"]


def accept(scene: Scene, run: str) -> None:
    """The load has submitted a run."""
    with scene.folder.recorder() as recorder:
        recorder.write(Submission(0, "1", "n", T0, T0, T0, Outcome.ACCEPTED, run, 0, 200, None))


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


class TestFollowing:
    def test_a_run_is_recorded_when_first_seen_and_when_over(self, scene: Scene) -> None:
        scene.platform.put("a", "PENDING", 5)
        scene.sweep()
        assert scene.folder.records(Span) == [Span("a", "", "run", T0 + 5 * 10**9, None, "name-a", 0, None, "kfp", 1.0)]
        scene.platform.put("a", "RUNNING", 5)
        scene.sweep()
        scene.platform.put("a", FAILED, 5, 65, "no space left")
        scene.sweep()
        scene.sweep()
        assert scene.folder.records(Span)[1:] == [
            Span("a", "", "run", T0 + 5 * 10**9, T0 + 65 * 10**9, "name-a", 0, None, "kfp", 1.0)
        ]
        assert scene.folder.records(Event) == [
            Event(T0 + 65 * 10**9, "Run", "a", FAILED, "no space left", "kfp", "a", type="Warning")
        ]

    def test_a_run_that_was_over_when_first_seen_is_recorded_once(self, scene: Scene) -> None:
        scene.platform.put("a", SUCCEEDED, 5, 6)
        scene.sweep()
        scene.sweep()
        assert len(scene.folder.records(Span)) == len(scene.ends()) == 1

    def test_cancelling_is_not_the_end(self, scene: Scene) -> None:
        scene.platform.put("a", "CANCELING", 0)
        scene.sweep()
        assert not scene.ends()
        assert scene.runs.live() == {"runs": {"CANCELING": 1}}

    def test_an_end_without_a_stamp_is_stamped_when_it_was_seen(self, scene: Scene) -> None:
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
        scene.sweep()
        assert scene.runs.live() == {"runs": {SUCCEEDED: 12, "RUNNING": 1}}

    def test_a_run_that_is_not_listed_any_more_is_told_and_given_up(self, scene: Scene) -> None:
        scene.platform.put("a", "RUNNING", 0)
        scene.platform.put("b", "RUNNING", 1)
        scene.sweep()
        del scene.platform.runs["a"]
        scene.sweep()
        assert [(e.reason, e.object) for e in scene.folder.records(Event)] == [("RunVanished", "a")]
        assert scene.runs.live() == {"runs": {"RUNNING": 1}}

    def test_runs_in_flight_are_sampled(self, scene: Scene) -> None:
        scene.platform.put("a", "RUNNING", 0)
        scene.platform.put("b", SUCCEEDED, 1, 2)
        scene.sweep()
        samples = scene.folder.records(Sample)
        assert [s.value for s in samples if s.metric == RUNS_IN_FLIGHT] == [1.0]
        (took,) = (s for s in samples if s.metric == LIST_SECONDS)
        assert took.value > 0
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
            elif before.state not in TERMINAL_STATES:
                scene.platform.put(name, state, (before.created_at - T0) // 10**9)
            if poll:
                scene.runs._poll()
        scene.runs._page = ""
        scene.sweep()
        over = {(run.id, run.state) for run in scene.platform.runs.values() if run.state in TERMINAL_STATES}
        assert Counter(scene.ends()) == Counter(over)
        assert {span.run for span in scene.folder.records(Span)} == set(scene.platform.runs)


class TestReliability:
    def test_an_observer_that_is_started_again_goes_on(self, tmp_path: Path) -> None:
        first = Scene(tmp_path)
        first.platform.put("a", SUCCEEDED, 0, 9)
        first.platform.put("b", "RUNNING", 1)
        first.sweep()
        second = Scene(tmp_path, first.platform)
        assert second.runs._open.keys() == {"b"}
        first.platform.put("b", SUCCEEDED, 1, 12)
        second.sweep()
        assert second.ends() == [("a", SUCCEEDED), ("b", SUCCEEDED)]

    def test_a_platform_that_is_away_for_a_while_leaves_a_gap_and_nothing_is_lost(self, scene: Scene) -> None:
        scene.platform.put("a", "RUNNING", 0)
        scene.runs._try()
        scene.platform.down = True
        assert scene.runs._try() == 1.0
        assert scene.runs._try() == 2.0
        scene.platform.down = False
        scene.platform.put("a", SUCCEEDED, 0, 9)
        scene.runs._try()
        assert scene.ends() == [("a", SUCCEEDED)]
        assert [e.reason for e in scene.folder.records(Event) if e.kind == "Observer"] == ["Retry", "Retry", GAP]

    def test_told_to_stop_it_looks_once_more(self, scene: Scene) -> None:
        stop = threading.Event()
        stop.set()
        for k in range(7):
            scene.platform.put(f"r{k}", SUCCEEDED, k, k + 1)
        scene.runs.collect(stop)
        assert len(scene.ends()) == 7

    def test_at_the_end_runs_of_the_ledger_that_were_overlooked_are_looked_for(self, scene: Scene) -> None:
        stop = threading.Event()
        stop.set()
        for k in range(12):
            scene.platform.put(f"r{k:02d}", SUCCEEDED, 1000 * k, 1000 * k + 1)
        scene.sweep()
        scene.platform.put("old", SUCCEEDED, 1, 2)
        accept(scene, "old")
        scene.runs.collect(stop)
        assert ("old", SUCCEEDED) in scene.ends()


class TestWrongCluster:
    def test_runs_that_end_well_without_a_pod_make_the_cluster_doubtful_once(self, scene: Scene) -> None:
        scene.observation.activity.worked = {"of another platform"}
        for k in range(3):
            scene.platform.put(f"r{k}", SUCCEEDED, k, k + 9)
            scene.sweep()
        scene.sweep()
        (event,) = (event for event in scene.folder.records(Event) if event.reason == WRONG_CLUSTER)
        assert event.message.startswith("3 of the runs at http://x ended well, and none of the pods")

    def test_one_run_is_enough_at_the_end(self, scene: Scene) -> None:
        stop = threading.Event()
        stop.set()
        scene.observation.activity.worked = set()
        scene.platform.put("a", SUCCEEDED, 0, 9)
        scene.runs.collect(stop)
        assert any(event.reason == WRONG_CLUSTER for event in scene.folder.records(Event))

    @pytest.mark.parametrize(("worked", "state"), [(None, SUCCEEDED), ({"r1"}, SUCCEEDED), (set(), FAILED)])
    def test_pods_not_seen_a_pod_of_any_run_and_runs_refused_by_the_cluster_say_nothing(
        self, scene: Scene, worked: set[str] | None, state: str
    ) -> None:
        scene.observation.activity.worked = worked
        for k in range(5):
            scene.platform.put(f"r{k}", state, k, k + 9)
        scene.sweep()
        assert not any(event.reason == WRONG_CLUSTER for event in scene.folder.records(Event))


class TestPace:
    def test_waits_grow_with_the_time_that_runs_have_been_going(self) -> None:
        pace = Pace(1.0, 15.0, 5.0, 0.05)
        waits = [pace.after(1, served=1000, going_s=going_s) for going_s in (0.0, 2.0, 4.0, 10.0, 14.0, 300.0)]
        assert waits == pytest.approx([1.0, 1.0, 1.6, 4.0, 5.0, 5.0])

    def test_beyond_its_share_it_slows_down_to_its_bound_and_recovers(self) -> None:
        pace = Pace(1.0, 15.0, 5.0, 0.05)
        assert [pace.after(3 + k, 0, 100.0) for k in range(4)] == [7.5, 11.25, 15.0, 15.0]
        assert pace.after(10, served=400, going_s=100.0) == 5.0

    def test_it_is_there_when_the_last_run_is_expected_to_end(self) -> None:
        pace = Pace(1.0, 15.0, 5.0, 0.05)
        assert pace.after(1, 1000, 100.0, left_s=3.0) == 3.0
        assert pace.after(1, 1000, 100.0, left_s=0.2) == 1.0
        assert pace.after(100, 1000, 100.0, left_s=0.2) == 7.5

    @pytest.mark.parametrize(("schedule", "wait_s"), [("concurrency", 1.0), ("spread", 5.0)])
    def test_in_the_closed_model_an_end_is_seen_soon_since_the_next_run_waits_for_it(
        self, tmp_path: Path, schedule: str, wait_s: float
    ) -> None:
        scene = Scene(tmp_path, schedule=schedule)
        assert scene.runs._pace.after(4, 100, 100.0) == wait_s

    @pytest.mark.parametrize(("schedule", "wait_s"), [("concurrency", 5.0), ("spread", 60.0)])
    def test_the_closed_model_is_looked_after_even_where_that_costs_more_than_its_share(
        self, tmp_path: Path, schedule: str, wait_s: float
    ) -> None:
        scene = Scene(tmp_path, schedule=schedule)
        assert max(scene.runs._pace.after(100 + k, 100, 1000.0) for k in range(20)) == wait_s

    def test_idle_waits_grow_until_pods_live_again(self) -> None:
        pace = Pace(1.0, 2.0, 5.0, 0.05)
        assert [pace.while_idle() for _ in range(4)] == [1.0, 1.5, 2.0, 2.0]
        pace.busy()
        assert pace.while_idle() == 1.0

    @pytest.mark.parametrize(
        ("runs", "minutes"), [(200, 2.0), (300, 5.0), (1000, 10.0), (3000, 60.0), (10_000, 30.0)]
    )  # fmt: skip
    def test_a_test_of_minutes_costs_at_most_five_percent_but_for_a_few_polls(self, runs: int, minutes: float) -> None:
        pace, own, now_s, length_s = Pace(1.0, 60.0, 5.0, 0.05), 0, 0.0, minutes * 60
        while now_s < length_s:
            own += 1
            now_s += pace.after(own, int(runs * now_s / length_s), now_s)
        assert own <= max(0.05 * runs + 4, length_s / 60 + 9)


class TestWaiting:
    def waits(self, scene: Scene, seconds: float) -> float:
        """For how long it waits, in time that a stop event counts instead of passing it."""

        class Stop(threading.Event):
            waited_s = 0.0

            def wait(self, timeout: float | None = None) -> bool:
                self.waited_s += timeout or 0.0
                return False

        stop = Stop()
        scene.runs._wait(seconds, stop)
        return stop.waited_s

    def test_it_looks_soon_when_the_last_pod_is_over(self, scene: Scene) -> None:
        scene.platform.put("a", "RUNNING", 0)
        scene.sweep()
        scene.observation.activity.pods = 0
        assert [self.waits(scene, 10.0) for _ in range(3)] == [1.0, 1.5, 2.25]
        scene.observation.activity.pods = 3
        assert self.waits(scene, 10.0) == 10.0
        scene.observation.activity.pods = 0
        assert self.waits(scene, 10.0) == 1.0

    def test_it_waits_on_when_pods_are_not_seen_or_no_run_is_open(self, scene: Scene) -> None:
        scene.platform.put("a", "RUNNING", 0)
        scene.sweep()
        assert self.waits(scene, 10.0) == 10.0
        scene.observation.activity.pods = 0
        scene.platform.put("a", SUCCEEDED, 0, 3)
        scene.sweep()
        assert self.waits(scene, 10.0) == 10.0

    def test_while_the_cluster_shows_no_end_it_is_listed_seldom(self, scene: Scene) -> None:
        scene.runs._observation = replace(scene.observation, plan=replace(scene.observation.plan, intended=2))
        activity = scene.observation.activity
        activity.kept = set()
        for name in ("a", "b"):
            scene.platform.put(name, "RUNNING", 0)
            accept(scene, name)
        scene.sweep()
        assert self.waits(scene, 3.0) == 15.0
        assert self.waits(scene, 20.0) == 20.0
        activity.kept = {"a", "of another test"}
        assert self.waits(scene, 3.0) == 3.0
        activity.kept = {"a", "b"}
        assert [self.waits(scene, 3.0) for _ in range(3)] == [1.0, 1.5, 2.25]
        scene.platform.put("a", SUCCEEDED, 0, 3)
        scene.sweep()
        activity.kept = {"a"}
        assert self.waits(scene, 3.0) == 15.0

    def test_nothing_is_listed_before_something_was_submitted(self, scene: Scene) -> None:
        plan = replace(scene.observation.plan, intended=2)
        scene.runs._observation = replace(scene.observation, plan=plan)

        class Stop(threading.Event):
            """The test accepts a run after a minute."""

            waited_s = 0.0

            def wait(self, timeout: float | None = None) -> bool:
                self.waited_s += timeout or 0.0
                if self.waited_s == 60.0:
                    accept(scene, "a")
                return False

        stop = Stop()
        scene.runs._wait(0.0, stop)
        assert stop.waited_s == 60.0

    def test_in_the_closed_model_each_end_is_looked_for_at_once(self, tmp_path: Path) -> None:
        scene = Scene(tmp_path, schedule="concurrency")
        scene.runs._observation = replace(scene.observation, plan=replace(scene.observation.plan, intended=9))
        scene.platform.put("a", "RUNNING", 0)
        scene.platform.put("b", "RUNNING", 0)
        scene.sweep()
        scene.observation.activity.kept = {"a"}
        assert self.waits(scene, 5.0) == 1.0

    def test_it_waits_on_while_arrivals_are_to_come(self, scene: Scene) -> None:
        scene.observation.activity.pods = 0
        scene.platform.put("a", "RUNNING", 0)
        scene.runs._observation = replace(scene.observation, plan=replace(scene.observation.plan, intended=2))
        scene.sweep()
        assert self.waits(scene, 10.0) == 10.0
        scene.platform.put("b", "RUNNING", 1)
        scene.sweep()
        assert self.waits(scene, 10.0) == 1.0
