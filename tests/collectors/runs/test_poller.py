"""What the poller answers to each event: tables, without a platform."""

from collections.abc import Sequence

import pytest

from harness.collectors.collector import Activity
from harness.collectors.runs.known_runs import KnownRuns
from harness.collectors.runs.messages import (
    AskPage,
    AskTasks,
    ClusterHint,
    Command,
    Event,
    Instant,
    LedgerGrew,
    PageListed,
    PollFailed,
    Record,
    Started,
    Stopping,
    Tick,
    Wait,
)
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


def tick(s: float) -> Tick:
    return Tick(now(s))


def grew(*runs: str, stage: str = "") -> LedgerGrew:
    return LedgerGrew([Submission(0, "1", "n", T0, T0, T0, Outcome.ACCEPTED, run, 0, 200, None) for run in runs], stage)


def listed(s: float, *runs: ListedRun, next_page: str = "") -> PageListed:
    return PageListed(now(s), RunPage(runs, next_page), 0.1)


def run(name: str, state: str = "RUNNING", created_s: float = 0.0) -> ListedRun:
    return ListedRun(name, name, state, T0 + round(created_s * 1e9), None)


def requests(commands: Sequence[Command]) -> list[Command]:
    """The commands without the records."""
    return [command for command in commands if not isinstance(command, Record)]


DONE, GOING, OLD = run("a", SUCCEEDED), run("a"), run("old", created_s=-1000.0)


@pytest.mark.parametrize(
    ("schedule", "intended", "events", "answer"),
    [
        # a load of ours: nothing can be listed yet; somebody else's: look at once
        ("burst", 1, [Started(now(0.0))], [SLICE]),
        ("", 0, [Started(now(0.0))], [AskPage("")]),
        # what has changed asks for nothing; time does
        ("burst", 1, [grew("a")], []),
        ("burst", 1, [ClusterHint(Activity(pods=0))], []),
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
        ("", 0, [listed(5.0, GOING, next_page="p2"), PollFailed(now(6.0), 8.0), tick(13.9)], [SLICE]),
        ("", 0, [listed(5.0, GOING, next_page="p2"), PollFailed(now(6.0), 8.0), tick(14.0)], [AskPage("")]),
        # the cluster shows that the last run has ended
        (
            "burst", 1,
            [grew("a"), tick(0.25), ClusterHint(Activity(0, {"a"}, {"a": True})), tick(90.0), tick(91.0)],
            [AskPage("")],
        ),
        # nobody waits for a run that is over
        ("burst", 1, [grew("a"), listed(5.0, DONE), tick(500.0)], [SLICE]),
        # the end: one more sweep where something may be unseen, over all of its pages
        ("burst", 1, [grew("a"), Stopping()], [AskPage("")]),
        ("burst", 1, [grew("a"), listed(5.0, GOING), Stopping()], [AskPage("")]),
        ("burst", 1, [grew("a"), listed(5.0, DONE), Stopping()], []),
        ("burst", 2, [grew("a", "old"), Stopping(), listed(5.0, DONE, next_page="p2")], [AskPage("p2")]),
        ("burst", 2, [grew("a", "old"), Stopping(), listed(5.0, DONE, next_page="p2"), listed(6.0, OLD)], []),
        ("burst", 1, [grew("a"), Stopping(), PollFailed(now(5.0), 1.0)], []),
    ],
)  # fmt: skip
def test_when_pages_are_requested(schedule: str, intended: int, events: list[Event], answer: list[Command]) -> None:
    machine = poller(schedule, intended)
    *earlier, last = events
    for event in earlier:
        machine.on(event)
    assert requests(machine.on(last)) == answer


def ends(commands: Sequence[Command]) -> list[tuple[str, str]]:
    """The ends of runs among the records."""
    records = [each.record for each in commands if isinstance(each, Record)]
    return [(each.object, each.reason) for each in records if isinstance(each, EventRecord) and each.kind == "Run"]


def test_a_run_that_vanishes_is_removed_only_at_the_end_of_the_listing() -> None:
    machine = poller("", 0)
    machine.on(listed(1.0, run("a"), run("b")))
    machine.next_page()
    assert not ends(machine.on(listed(2.0, run("b"), next_page="p2")))
    assert ends(machine.on(listed(3.0))) == [("a", REMOVED)]
    assert machine.going == {"b"}


def test_a_run_that_vanishes_after_the_cluster_showed_its_end_has_ended_so() -> None:
    machine = poller(intended=2)
    machine.on(grew("a", "b"))
    machine.on(listed(1.0, run("a"), run("b")))
    machine.on(ClusterHint(Activity(worked={"a", "b"}, persisted={"a": True})))
    assert ends(machine.on(tick(2.0))) == [("a", SUCCEEDED)]
    machine.next_page()
    assert ends(machine.on(listed(3.0, run("b")))) == []
    assert machine.going == {"b"}


def test_an_accepted_run_that_is_not_listed_for_90_seconds_was_removed_before() -> None:
    machine = poller()
    machine.on(grew("a"))
    for s in (5.0, 94.0):
        machine.next_page()
        assert not ends(machine.on(listed(s)))
    machine.next_page()
    assert ends(machine.on(listed(95.0))) == [("a", REMOVED)]
    assert not machine.going


@pytest.mark.parametrize(("reads_tasks", "asked"), [(True, [AskTasks("b")]), (False, [])])
def test_the_tasks_of_one_run_are_read_at_least_of_a_failed_one_if_possible(
    reads_tasks: bool, asked: list[Command]
) -> None:
    machine = poller(reads_tasks=reads_tasks)
    machine.on(Stopping())
    assert requests(machine.on(listed(1.0, run("a", SUCCEEDED), run("b", FAILED)))) == asked


def test_after_a_failed_last_poll_no_tasks_are_read() -> None:
    machine = poller(reads_tasks=True, intended=9)
    machine.on(grew("a", "b"))
    machine.on(Stopping())
    machine.on(listed(1.0, DONE, next_page="p2"))
    assert machine.on(PollFailed(now(2.0), 1.0)) == []


def test_ends_are_known_until_the_last_complete_listing_or_until_now_where_the_cluster_shows_them() -> None:
    machine = poller()
    machine.on(Started(now(1.0)))
    assert machine.counted_at == now(1.0).at
    machine.on(grew("a", "b"))
    machine.on(listed(5.0, GOING, next_page="p2"))
    assert machine.counted_at == now(1.0).at, "further pages may hold ends"
    machine.on(listed(7.0, run("b")))
    machine.on(tick(30.0))
    assert machine.counted_at == now(7.0).at
    machine.on(ClusterHint(Activity(pods=1, worked={"a"}, persisted={"of another test": True})))
    machine.on(tick(31.0))
    assert machine.counted_at == now(7.0).at, "this platform may not label its workflows"
    machine.on(ClusterHint(Activity(pods=1, worked={"a"}, persisted={"a": True})))
    machine.on(tick(32.0))
    assert machine.counted_at == now(32.0).at


def test_no_end_is_missing_while_the_cluster_shows_that_every_run_goes_on() -> None:
    machine = poller()
    machine.on(Started(now(1.0)))
    machine.on(grew("a", "b"))
    machine.on(ClusterHint(Activity(persisted={}, unfinished={"a"})))
    machine.on(tick(30.0))
    assert machine.counted_at == now(1.0).at, "of b nothing is known"
    machine.on(ClusterHint(Activity(persisted={}, unfinished={"a", "b", "of another test"})))
    machine.on(tick(31.0))
    assert machine.counted_at == now(31.0).at
    machine.on(ClusterHint(Activity(persisted={}, unfinished={"b"})))
    machine.on(tick(32.0))
    assert machine.counted_at == now(31.0).at, "the end of a may have been persisted"
