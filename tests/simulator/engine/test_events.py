"""The event loop against the plainest one there is: of all that is due, the earliest, and of these the oldest."""

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from harness.simulator.engine.events import EventLoop

# Delays within a page of the calendar, of whole pages, across pages, of none, and into the past.
DELAYS = st.sampled_from([-1.0, 0.0, 1e-9, 0.001, 1 / 64, 0.1, 0.5, 1.0, 1.0, 7.3, 3600.0, 1e7])
# Each action schedules others when it runs: so long from then, and what these schedule in their turn.
TREES = st.recursive(
    st.just([]), lambda inner: st.lists(st.tuples(DELAYS, inner), max_size=3), max_leaves=30
)  # fmt: skip
Tree = list[tuple[float, "Tree"]]  # type: ignore[misc]


class Plain:
    """Looks through everything that is due."""

    def __init__(self) -> None:
        self.now, self.due, self.count = 0.0, [], 0

    def after(self, delay_s, action, *args):
        self.due.append((max(self.now, self.now + delay_s), self.count, action, args))
        self.count += 1

    def run(self, until=inf):
        while self.due and min(self.due)[0] <= until:
            first = min(self.due)
            self.due.remove(first)
            self.now = first[0]
            first[2](*first[3])
        if self.now < until < inf:
            self.now = until


def story(loop, tree: Tree, stops: list[float]) -> list[tuple[float, int]]:
    """Who ran when, numbered as they were scheduled, with stops at which time is let pass in parts."""
    ran, count = [], 0

    def schedule(subtree: Tree) -> None:
        nonlocal count
        for delay_s, inner in subtree:
            loop.after(delay_s, run, count, inner)
            count += 1

    def run(number: int, subtree: Tree) -> None:
        ran.append((loop.now, number))
        schedule(subtree)

    for stop in stops:
        schedule(tree)
        loop.run(stop)
        ran.append((loop.now, -1))
    loop.run()
    return [*ran, (loop.now, -1)]


@given(tree=TREES, stops=st.lists(DELAYS.filter(lambda delay: delay >= 0), min_size=1, max_size=4).map(sorted))
def test_everything_runs_when_it_is_due_and_in_the_order_of_scheduling(tree, stops):
    assert story(EventLoop(), tree, stops) == story(Plain(), tree, stops)


def test_next_at_is_the_time_of_the_next_action():
    loop, ran = EventLoop(), []
    assert (loop.next_at, loop.pending) == (inf, False)
    loop.at(5.0, ran.append, "later")
    loop.at(2.0, ran.append, "first")
    assert (loop.next_at, loop.pending) == (2.0, True)
    loop.run(3.0)
    assert (ran, loop.now, loop.next_at) == (["first"], 3.0, 5.0)
    loop.after(0.0, ran.append, "now")
    assert loop.next_at == 3.0
    loop.run(5.0)
    assert (ran, loop.pending, loop.scheduled) == (["first", "now", "later"], False, 3)
    loop.run(4.0)
    assert loop.now == 5.0  # time does not go back
