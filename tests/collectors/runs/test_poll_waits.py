"""When the runs are listed as a test goes on, in simulated time."""

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness.collectors.runs.poll_policy import PollPolicy, budget
from harness.model import Span
from harness.model.phases import FAILED, SUCCEEDED
from tests.support.run_listing import T0, Platform, Scene, SimulatedStop

PAGE = 200
POLICY = PollPolicy(share=0.05, min_s=1.0, calm_s=5.0, max_s=60.0)


def started(path: Path, *names: str, intended: int = 0, schedule: str = "burst") -> Scene:
    """A test that has submitted all of its runs, unless more are `intended`."""
    scene = Scene(path, Platform(200), intended=intended or len(names), schedule=schedule)
    for name in names:
        scene.platform.put(name, "RUNNING", 0)
    scene.accept(*names)
    return scene


class TestWithoutACluster:
    def test_a_slow_platform_is_left_alone_after_its_response(self, tmp_path: Path) -> None:
        scene = started(tmp_path, *map(str, range(150)), intended=200)
        scene.answers_in_s = 30.0
        scene.poll()
        assert scene.waits() == 5.0

    def test_missed_arrivals_count_as_arrived(self, tmp_path: Path) -> None:
        scene = started(tmp_path, "a", intended=9)
        assert scene.waits() == 1000.0
        scene.miss(8)
        assert scene.waits() <= 4.0


class TestWithACluster:
    @pytest.mark.parametrize("schedule", ["burst", "concurrency"])
    def test_each_end_that_the_cluster_shows_is_reported_at_once_and_listed_when_affordable(
        self, tmp_path: Path, schedule: str
    ) -> None:
        scene = started(tmp_path, "a", "b", intended=9, schedule=schedule)
        activity = scene.observation.activity
        activity.worked, activity.persisted = {"a"}, {"a": False}
        assert scene.waits(100.0) == 100.0
        assert scene.ends() == [("a", FAILED)]
        scene.platform.put("a", "CANCELED", 0, 3)
        scene.sweep()
        assert scene.ends() == [("a", FAILED), ("a", "CANCELED")]  # the last one counts

    def test_a_restarted_observer_lists_runs_whose_end_was_only_hinted(self, tmp_path: Path) -> None:
        scene = started(tmp_path, "a", intended=9, schedule="concurrency")
        activity = scene.observation.activity
        activity.worked, activity.persisted = {"a"}, {"a": True}
        scene.waits(1.0)
        again = Scene(tmp_path, scene.platform, intended=9, schedule="concurrency")
        again.observation.activity.worked, again.observation.activity.persisted = {"a"}, {"a": True}
        again.waits(1.0)
        assert again.ends() == [("a", SUCCEEDED)], "which is reported once"
        scene.platform.put("a", SUCCEEDED, 0, 3)
        again.sweep()
        assert [span.ended_at for span in again.folder.records(Span)] == [T0 + 3 * 10**9]


class World:
    """The runs of a test: submitted every `every_s`, each ends after its length in seconds."""

    def __init__(
        self, path: Path, lengths: list[float], every_s: float = 0.0, *, cluster: bool = False, labels: bool = True
    ) -> None:
        self.scene = Scene(path, Platform(PAGE), intended=len(lengths))
        self._cluster, self._labels = cluster, labels
        self._due = [(k * every_s, k * every_s + length_s, f"r{k:04}") for k, length_s in enumerate(lengths)]
        self._going: list[tuple[float, str]] = []
        self.arrived_s = self._due[-1][0]
        self.over_s = max(end_s for _, end_s, _ in self._due)

    def observe(self, limit_s: float) -> float:
        """Observe until the last end is known, or until `limit_s`; returns when the observer was stopped."""
        self._stop = SimulatedStop(self.scene, limit_s, self._advance)
        self.scene.runs.collect(self._stop)
        return self.scene.now_s

    def _advance(self, now_s: float) -> None:
        while self._due and self._due[0][0] <= now_s:
            at_s, end_s, name = self._due.pop(0)
            self.scene.platform.put(name, "RUNNING", int(at_s))
            self.scene.accept(name)
            self._going.append((end_s, name))
        activity = self.scene.observation.activity
        if self._cluster:
            activity.persisted, activity.worked = dict(activity.persisted or {}), set(self.scene.platform.runs)
        for end_s, name in [each for each in self._going if each[0] <= now_s]:
            self._going.remove((end_s, name))
            created_s = (self.scene.platform.runs[name].created_at - T0) // 10**9
            self.scene.platform.put(name, SUCCEEDED, created_s, int(end_s))
            if activity.persisted is not None and self._labels:
                activity.persisted = {**activity.persisted, name: True}
        activity.pods = len(self._going) if self._cluster else None
        if now_s >= self.over_s and not self.scene.runs.poller.going:
            self._stop.end_s = now_s


LENGTHS = st.lists(st.floats(1, 300), min_size=1, max_size=8)


class TestWholeTests:
    @settings(max_examples=12, deadline=None)
    @given(LENGTHS, st.integers(1, 40), st.floats(0, 3), st.booleans(), st.booleans())
    @example([1.0, 1.0, 1.0, 1.0, 1.0, 78.0], 35, 0.0, False, False)
    @example([1.0, 1.0, 1.0, 1.0, 1.0, 121.0], 39, 0.5, False, False)  # sweeps get shorter
    def test_listings_stay_within_budget_and_floor_and_the_last_end_is_seen_in_time(
        self, tmp_path_factory: pytest.TempPathFactory, lengths: list[float], times: int, every_s: float,
        cluster: bool, labels: bool,
    ) -> None:  # fmt: skip
        lengths = lengths * times
        path = tmp_path_factory.mktemp("runs")
        world = World(path, lengths, every_s, cluster=cluster, labels=labels)
        ended_s = world.observe(limit_s=20_000.0)
        awaited_s = max(world.over_s - world.arrived_s, 0.0)
        assert len(set(world.scene.ends())) == len(lengths)
        pages = -(-len(lengths) // PAGE)
        floor = POLICY.floor(ended_s - world.arrived_s) * pages
        assert world.scene.platform.listed <= budget(len(lengths), 0.05) + floor + 2
        late_s = ended_s - world.over_s
        second_page_s = 1.25 * (pages - 1)
        told_s, unaided_s = max(2.0, 4.5 - awaited_s), min(max(0.5 * awaited_s, 4.0), 60.0) + 1.0 + second_page_s
        assert late_s <= (told_s if cluster and labels else unaided_s)

    @pytest.mark.parametrize("late", [(0,), (-1,), (0, -1)], ids=["the oldest", "the newest", "both"])
    @pytest.mark.parametrize("runs", [201, 1000])
    def test_late_runs_are_seen_in_time_on_whatever_page_they_are(
        self, tmp_path: Path, runs: int, late: tuple[int, ...]
    ) -> None:
        lengths = [7.0] * runs
        for place in late:
            lengths[place] = 104.0
        world = World(tmp_path, lengths)
        ended_s = world.observe(limit_s=2000.0)
        pages = -(-runs // PAGE) if len(late) > 1 else 1
        assert ended_s - world.over_s <= 0.5 * 104.0 + 1.0 + 1.25 * (pages - 1)
        assert world.scene.platform.listed <= budget(runs, 0.05) + POLICY.floor(ended_s) * pages + 2

    @pytest.mark.parametrize(("runs", "cluster"), [(40, True), (200, True), (200, False), (1000, True), (1000, False)])
    def test_bursts_of_usual_size_stay_within_five_percent(self, tmp_path: Path, runs: int, cluster: bool) -> None:
        world = World(tmp_path, [10.0 + k * 30.0 / 200 for k in range(runs)], cluster=cluster)
        world.observe(2000.0)
        own = world.scene.platform.listed
        assert own / (own + runs) <= 0.05
