"""What the poller answers to each call: tables, without a platform."""

from collections.abc import Callable, Sequence

import pytest

from harness.collectors.collector import Activity
from harness.collectors.runs.known_runs import KnownRuns
from harness.collectors.runs.messages import AskPage, AskTasks, Command, Instant, Record, Wait
from harness.collectors.runs.poll_policy import PollPolicy
from harness.collectors.runs.poller import RunPoller
from harness.model import Outcome, Plan, Submission
from harness.model.phases import FAILED, REMOVED, SUCCEEDED
from harness.model.records import Event as EventRecord
from harness.targets.target import ListedRun, RunPage

T0 = 1_790_000_000 * 10**9
SLICE = Wait(0.25)


def poller(schedule: str = "burst", intended: int = 1, *, reads_tasks: bool = False) -> RunPoller:
    plan = Plan("kfp", "http://x", {"name": schedule}, intended, 0, False)
    policy = PollPolicy(share=0.05, min_s=1.0, calm_s=5.0, max_s=60.0)
    return RunPoller(plan, policy, KnownRuns(plan), now_s=0.0, reads_tasks=reads_tasks)


def now(s: float) -> Instant:
    return Instant(s, T0 + round(s * 1e9))


Call = Callable[[RunPoller], list[Command] | None]
stops: Call = RunPoller.stop


def starts(s: float) -> Call:
    return lambda machine: machine.start(now(s))


def tick(s: float) -> Call:
    return lambda machine: machine.tick(now(s))


def fails(s: float, backoff_s: float) -> Call:
    return lambda machine: machine.failed(now(s), backoff_s)


def grew(*runs: str, stage: str = "") -> Call:
    rows = [Submission(0, "1", "n", T0, T0, T0, Outcome.ACCEPTED, run, 0, 200, None) for run in runs]
    return lambda machine: machine.grew(rows, stage)


def shows(activity: Activity) -> Call:
    return lambda machine: machine.see_cluster(activity)


def listed(s: float, *runs: ListedRun, next_page: str = "") -> Call:
    return lambda machine: machine.listed(now(s), RunPage(runs, next_page), 0.1)


def run(name: str, state: str = "RUNNING", created_s: float = 0.0) -> ListedRun:
    return ListedRun(name, name, state, T0 + round(created_s * 1e9), None)


def requests(commands: Sequence[Command]) -> list[Command]:
    """The commands without the records."""
    return [command for command in commands if not isinstance(command, Record)]


DONE, GOING, OLD = run("a", SUCCEEDED), run("a"), run("old", created_s=-1000.0)


@pytest.mark.parametrize(
    ("schedule", "intended", "calls", "answer"),
    [
        # a load of ours: nothing can be listed yet; somebody else's: look at once
        ("burst", 1, [starts(0.0)], [SLICE]),
        ("", 0, [starts(0.0)], [AskPage("")]),
        # what has changed asks for nothing; time does
        ("burst", 1, [grew("a")], []),
        ("burst", 1, [shows(Activity(pods=0))], []),
        ("burst", 1, [tick(100.0)], [SLICE]),
        ("burst", 1, [grew("a"), tick(0.25), tick(3.0)], [SLICE]),
        ("burst", 1, [grew("a"), tick(0.25), tick(4.25)], [AskPage("")]),
        # arrivals that are still due share the budget: a single one affords no poll
        ("burst", 9, [grew("a"), tick(0.25), tick(4.25)], [SLICE]),
        ("burst", 9, [grew("a", stage="draining"), tick(0.25), tick(4.25)], [AskPage("")]),
        # a page is followed by the next one while open runs may be further down, at the shortest interval
        ("burst", 2, [grew("a", "b"), listed(5.0, GOING, next_page="p2")], [SLICE]),
        ("", 0, [listed(5.0, GOING, next_page="p2"), tick(5.5)], [SLICE]),
        ("", 0, [listed(5.0, GOING, next_page="p2"), tick(6.0)], [AskPage("p2")]),
        ("", 0, [listed(5.0, next_page="p2"), tick(65.0)], [AskPage("")]),
        # a platform that fails is left alone, and asked from the first page on
        ("", 0, [listed(5.0, GOING, next_page="p2"), fails(6.0, 8.0), tick(13.9)], [SLICE]),
        ("", 0, [listed(5.0, GOING, next_page="p2"), fails(6.0, 8.0), tick(14.0)], [AskPage("")]),
        # the cluster shows that the last run has ended
        (
            "burst", 1,
            [grew("a"), tick(0.25), shows(Activity(0, {"a"}, {"a": True})), tick(90.0), tick(91.0)],
            [AskPage("")],
        ),
        # nobody waits for a run that is over
        ("burst", 1, [grew("a"), listed(5.0, DONE), tick(500.0)], [SLICE]),
        # the end: one more sweep where something may be unseen, over all of its pages
        ("burst", 1, [grew("a"), stops], [AskPage("")]),
        ("burst", 1, [grew("a"), listed(5.0, GOING), stops], [AskPage("")]),
        ("burst", 1, [grew("a"), listed(5.0, DONE), stops], []),
        ("burst", 2, [grew("a", "old"), stops, listed(5.0, DONE, next_page="p2")], [AskPage("p2")]),
        ("burst", 2, [grew("a", "old"), stops, listed(5.0, DONE, next_page="p2"), listed(6.0, OLD)], []),
        ("burst", 1, [grew("a"), stops, fails(5.0, 1.0)], []),
    ],
)  # fmt: skip
def test_when_pages_are_requested(schedule: str, intended: int, calls: list[Call], answer: list[Command]) -> None:
    machine = poller(schedule, intended)
    *earlier, last = calls
    for call in earlier:
        call(machine)
    assert requests(last(machine) or []) == answer


def ends(commands: Sequence[Command]) -> list[tuple[str, str]]:
    """The ends of runs among the records."""
    records = [each.record for each in commands if isinstance(each, Record)]
    return [(each.object, each.reason) for each in records if isinstance(each, EventRecord) and each.kind == "Run"]


def test_a_run_that_vanishes_is_removed_only_at_the_end_of_the_listing() -> None:
    machine = poller("", 0)
    listed(1.0, run("a"), run("b"))(machine)
    machine.next_page()
    assert not ends(listed(2.0, run("b"), next_page="p2")(machine))
    assert ends(listed(3.0)(machine)) == [("a", REMOVED)]
    assert machine.going == {"b"}


def test_a_run_that_vanishes_after_the_cluster_showed_its_end_has_ended_so() -> None:
    machine = poller(intended=2)
    grew("a", "b")(machine)
    listed(1.0, run("a"), run("b"))(machine)
    shows(Activity(worked={"a", "b"}, persisted={"a": True}))(machine)
    assert ends(tick(2.0)(machine)) == [("a", SUCCEEDED)]
    machine.next_page()
    assert ends(listed(3.0, run("b"))(machine)) == []
    assert machine.going == {"b"}


def test_an_accepted_run_that_is_not_listed_for_90_seconds_was_removed_before() -> None:
    machine = poller()
    grew("a")(machine)
    for s in (5.0, 94.0):
        machine.next_page()
        assert not ends(listed(s)(machine))
    machine.next_page()
    assert ends(listed(95.0)(machine)) == [("a", REMOVED)]
    assert not machine.going


@pytest.mark.parametrize(("reads_tasks", "asked"), [(True, [AskTasks("b")]), (False, [])])
def test_the_tasks_of_one_run_are_read_at_least_of_a_failed_one_if_possible(
    reads_tasks: bool, asked: list[Command]
) -> None:
    machine = poller(reads_tasks=reads_tasks)
    stops(machine)
    assert requests(listed(1.0, run("a", SUCCEEDED), run("b", FAILED))(machine)) == asked


def test_after_a_failed_last_poll_no_tasks_are_read() -> None:
    machine = poller(reads_tasks=True, intended=9)
    grew("a", "b")(machine)
    stops(machine)
    listed(1.0, DONE, next_page="p2")(machine)
    assert fails(2.0, 1.0)(machine) == []


def test_ends_are_known_until_the_last_complete_listing_or_until_now_where_the_cluster_shows_them() -> None:
    machine = poller()
    machine.start(now(1.0))
    assert machine.counted_at == now(1.0).at
    grew("a", "b")(machine)
    listed(5.0, GOING, next_page="p2")(machine)
    assert machine.counted_at == now(1.0).at, "further pages may hold ends"
    listed(7.0, run("b"))(machine)
    tick(30.0)(machine)
    assert machine.counted_at == now(7.0).at
    shows(Activity(pods=1, worked={"a"}, persisted={"of another test": True}))(machine)
    tick(31.0)(machine)
    assert machine.counted_at == now(7.0).at, "this platform may not label its workflows"
    shows(Activity(pods=1, worked={"a"}, persisted={"a": True}))(machine)
    tick(32.0)(machine)
    assert machine.counted_at == now(32.0).at


def test_no_end_is_missing_while_the_cluster_shows_that_every_run_goes_on() -> None:
    machine = poller()
    machine.start(now(1.0))
    grew("a", "b")(machine)
    shows(Activity(persisted={}, unfinished={"a"}))(machine)
    tick(30.0)(machine)
    assert machine.counted_at == now(1.0).at, "of b nothing is known"
    shows(Activity(persisted={}, unfinished={"a", "b", "of another test"}))(machine)
    tick(31.0)(machine)
    assert machine.counted_at == now(31.0).at
    shows(Activity(persisted={}, unfinished={"b"}))(machine)
    tick(32.0)(machine)
    assert machine.counted_at == now(31.0).at, "the end of a may have been persisted"
