"""A platform that lists its runs, and the collector that follows them, in simulated time."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.collectors.journal import Journal
from harness.collectors.runs.listing import RunListing
from harness.collectors.runs.messages import AskPage, Command, Record, Wait
from harness.model import Event, Outcome, Plan, Sample, Scenario, Submission, TargetUnreachableError
from harness.model.http import Exchange, HttpAnswer, HttpRequest
from harness.model.phases import RUNS_IN_FLIGHT
from harness.store import RunFolder
from harness.targets.target import ListedRun, RunPage, SetUp
from tests.support.observations import observation as observed_by

T0 = 1_790_000_000 * 10**9
NEVER = threading.Event()


class Platform:
    """A platform that lists its runs newest first, a few per page, by keyset as KFP does."""

    def __init__(self, page_size: int = 3) -> None:
        self.page_size = page_size
        self.runs: dict[str, ListedRun] = {}
        self.listed = 0
        self.down = False

    def put(self, name: str, state: str, created: int = 0, ended: int | None = None, *, error: str = "") -> None:
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
    """A run folder, a platform, and the collector between them; polls happen on request."""

    def __init__(
        self, path: Path, platform: Platform | None = None, *, schedule: str = "burst", intended: int = 1
    ) -> None:
        self.platform = platform or Platform()
        self.folder = RunFolder(path)
        self.now_s = self.answers_in_s = 0.0
        self.observation = observed_by(
            self.folder,
            Journal(self.folder.recorder(), now=lambda: T0 + round(self.now_s * 1e9)),
            plan=Plan("kfp", "http://x", {"name": schedule}, intended, 0, False),
            target=self.platform,
        )
        self.backoff_s = 0.0
        self._due: list[Command] = []
        self.runs = RunListing(self.observation, self.platform, self._exchange, lambda: self.now_s)

    def _exchange(self, request: HttpRequest) -> HttpAnswer:
        self.now_s += self.answers_in_s
        if self.platform.down:
            raise TargetUnreachableError("refused")
        return HttpAnswer(200, b"{}")

    def poll(self) -> bool:
        """Make one request: the one that was waited for, else one whatever the policy says.

        Returns whether its sweep goes on; `backoff_s` is how long a platform that did not respond is left alone.
        """
        answer = self.runs.perform(self._due or [self.runs.poller.next_page()], NEVER)
        assert answer is not None
        self._due = []
        *commands, following = answer()
        self.backoff_s = self.runs.poller._backoff_s
        assert isinstance(following, Wait)
        self.runs.perform(commands, NEVER)
        samples = [command.record for command in commands if isinstance(command, Record)]
        ended = any(isinstance(sample, Sample) and sample.metric == RUNS_IN_FLIGHT for sample in samples)
        return not self.backoff_s and not ended

    def sweep(self) -> int:
        """Poll to the end of a sweep; how many requests it took."""
        before = self.platform.listed
        while True:
            polled = self.platform.listed
            goes_on = self.poll()
            assert self.platform.listed == polled + 1, "a poll is one request"
            if not goes_on:
                return self.platform.listed - before

    def ends(self) -> list[tuple[str, str]]:
        return [(event.object, event.reason) for event in self.folder.records(Event) if event.kind == "Run"]

    def accept(self, *runs: str) -> None:
        """The load has submitted them."""
        self._book(runs, Outcome.ACCEPTED)

    def lose(self, count: int) -> None:
        """So many submissions got no response."""
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
        """Seconds until the next poll; `at_most_s` when there is none."""
        begun_s, stop = self.now_s, SimulatedStop(self, self.now_s + at_most_s)
        commands: list[Command] = [Wait(0.25)]
        while (answer := self.runs.perform(commands, stop)) and not stop.is_set():
            commands = answer()
            if isinstance(commands[-1], AskPage):
                self._due = commands
                break
        return self.now_s - begun_s


class SimulatedStop(threading.Event):
    """Passes the scene's time instead of waiting; set from `end_s` on. `on_time` is called with the new time."""

    def __init__(self, scene: Scene, end_s: float, on_time: Callable[[float], None] = lambda _: None) -> None:
        super().__init__()
        self._scene, self.end_s, self._on_time = scene, end_s, on_time

    def is_set(self) -> bool:
        return self._scene.now_s >= self.end_s

    def wait(self, timeout: float | None = None) -> bool:
        self._scene.now_s += timeout or 0.0
        self._on_time(self._scene.now_s)
        return self.is_set()
