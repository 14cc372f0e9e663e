"""Tests whose own records or load generator are in doubt."""

from harness.model import Event, Outcome
from harness.model.phases import CONNECT_S, GENERATOR_CPU, RUNNING, RUNS_IN_FLIGHT
from tests.support.injected.loads import NODES, steady
from tests.support.timelines import T0, Story


def generator_lag() -> Story:
    story = steady(lag=2.0, service=lambda _: 2.03)
    story.sample(30.0, GENERATOR_CPU, 0.97, worker="0")
    return story


def slow_accepts() -> Story:
    story = steady(service=lambda seq: 3.03 if seq % 2 else 0.03)
    for seq in range(1, 80, 2):
        story.sample(2.0 * seq + 3.0, CONNECT_S, 3.0, worker="0")
    return story


def limited(status: int = 429, error: str = "too many requests; Retry-After: 2") -> Story:
    """Of one submission a second, every third is let through for a while."""
    story = steady()
    story.intended = 200
    for seq in range(80, 200):
        outcome = Outcome.REJECTED if seq % 3 else Outcome.ACCEPTED
        run = story.submit(
            seq, due=80.0 + seq, outcome=outcome, status=status if seq % 3 else 200, error=error if seq % 3 else None
        )
        if not seq % 3:
            story.run(run, 80.0 + seq, 100.0 + seq)
    return story


def missed() -> Story:
    story = steady()
    story.intended = 100
    for seq in range(80, 100):
        story.submit(
            seq, due=170.0, lag=None, outcome=Outcome.MISSED, status=None, error="100 requests were in flight already"
        )
    return story


def unauthorized() -> Story:
    story = steady()
    story.intended = 100
    story.records.append(Event(T0, "Test", "test", "TokenExpires", "2026-01-01 12:00 UTC"))
    for seq in range(80, 100):
        story.submit(seq, due=160.0 + seq, outcome=Outcome.REJECTED, status=401, error="token has expired")
    return story


def censored() -> Story:
    story = steady()
    story.intended = 90
    for seq in range(80, 90):
        run = story.submit(seq, due=160.0)
        story.pod(run, "train", NODES[0], (RUNNING, 160.5, None))
    story.event(400.0, "Test", "test", "DrainTimedOut")
    return story


def observer_gaps() -> Story:
    story = steady()
    story.event(40.0, "Observer", "kubernetes", "Gap", "no answer for 31 s")
    return story


def miscounted() -> Story:
    """Five runs are in flight by their timestamps, twelve by the listing."""
    story = steady(80, every=4.0)
    for second in range(10, 300, 10):
        story.sample(float(second), RUNS_IN_FLIGHT, 12.0)
    return story
