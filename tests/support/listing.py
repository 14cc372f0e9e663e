"""A platform that lists its runs, and the collector that follows them, in time that a test passes."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.collectors.collector import Observation, ObserverSettings
from harness.collectors.journal import Journal
from harness.collectors.runs.listing import Runs
from harness.model import Event, Outcome, Plan, Scenario, Submission, TargetUnreachableError
from harness.model.http import Exchange, HttpAnswer, HttpRequest
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

    def __init__(
        self, path: Path, platform: Platform | None = None, *, schedule: str = "burst", intended: int = 1
    ) -> None:
        self.platform = platform or Platform()
        self.folder = RunFolder(path)
        self.now_s = self.answers_in_s = 0.0
        plan = Plan("kfp", "http://x", {"name": schedule}, intended, 0, False)
        self.observation = Observation(
            self.folder, plan, self.platform, ObserverSettings("http://x"),
            Journal(self.folder.recorder(), now=lambda: T0 + round(self.now_s * 1e9)),
        )  # fmt: skip
        self.runs = Runs(self.observation, self.platform, self._exchange, lambda: self.now_s)

    def _exchange(self, request: HttpRequest) -> HttpAnswer:
        self.now_s += self.answers_in_s
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

    def accept(self, *runs: str) -> None:
        """The load has submitted them."""
        self._book(runs, Outcome.ACCEPTED)

    def lose(self, count: int) -> None:
        """So many submissions got no answer."""
        self._book([None] * count, Outcome.REJECTED)

    def miss(self, count: int) -> None:
        """So many arrivals were never sent."""
        self._book([None] * count, Outcome.MISSED)

    def _book(self, runs: Sequence[str | None], outcome: Outcome) -> None:
        at = None if outcome is Outcome.MISSED else T0
        with self.folder.recorder() as recorder:
            for run in runs:
                recorder.write(Submission(0, "1", "n", T0, at, at, outcome, run, 0, 200 if run else None, None))

    def waits(self, at_most_s: float = 1000.0) -> float:
        """For how long it waits until the next poll, in seconds; `at_most_s` when there is none."""
        begun_s = self.now_s
        self.runs._wait(Clockwork(self, begun_s + at_most_s))
        return self.now_s - begun_s


class Clockwork(threading.Event):
    """Passes the scene's time instead of waiting; it is set at `end_s`. `happens` is told each time that passes."""

    def __init__(self, scene: Scene, end_s: float, happens: Callable[[float], None] = lambda _: None) -> None:
        super().__init__()
        self._scene, self.end_s, self._happens = scene, end_s, happens

    def is_set(self) -> bool:
        return self._scene.now_s >= self.end_s

    def wait(self, timeout: float | None = None) -> bool:
        self._scene.now_s += timeout or 0.0
        self._happens(self._scene.now_s)
        return self.is_set()
