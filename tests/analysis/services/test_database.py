import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.analysis.capacity.bounds import bounds
from harness.analysis.services.database import Work, database_work
from harness.analysis.throughput import throughput
from harness.model.phases import MYSQL_CONNECTIONS, MYSQL_MOST_CONNECTIONS, MYSQL_QUERIES, MYSQL_THREADS
from harness.simulator.kfp.records import Run
from harness.simulator.platform import Platform
from harness.simulator.profile.file import parse_profile
from tests.support.platforms import UNCACHED, upload
from tests.support.timelines import Story

SECONDS, EVERY = 300, 2


def story_of(threads, queries):
    """A test of 100 runs over all the time; `threads` (the exporter's own among them) and `queries` are what each scrape tells."""
    story = Story(intended=100)
    for k, (running, asked) in enumerate(zip(threads, queries, strict=True)):
        story.sample(float(EVERY * k), MYSQL_THREADS, float(running))
        story.sample(float(EVERY * k), MYSQL_QUERIES, float(asked))
    for seq in range(100):
        at = SECONDS / 100 * seq
        story.run(story.submit(seq, due=at), at, at + 10)
    return story


def database(timeline):
    return next((bound for bound in bounds(timeline) if bound.part == "database"), None)


def simulated(parallel: int, place):
    """More and more submissions, 0.4 s each at the database alone, which works on so many at once without slowing."""
    profile = parse_profile(
        f"api: {{qps: 10000, burst: 10000, latency: 0.4s}}\ndatabase: {{parallel: {parallel}}}\n"
        "pools: [{name: steps, cpu: 4, memory: 16Gi, initial: 1, max: 1}]", "test", "test",
    )  # fmt: skip
    platform, story, ended = Platform(profile, 1), Story(intended=0), []
    version = upload(platform, UNCACHED)
    due = (np.sqrt(1 + 0.1 * np.arange(2400)) - 1) / 0.05  # 1/s, growing by 0.05/s each second: 16/s at the end

    def submit(at: float) -> None:
        seq = len(story.records)
        run = platform.server.prepare_run(f"run-{seq}", "", version, {}, by_reference=True)
        platform.server.start_run(run, lambda answer: ended.append((at, platform.loop.now, isinstance(answer, Run))))

    for at in due[due < SECONDS].tolist():
        platform.loop.at(at, submit, at)
    answered = 0
    for second in range(0, SECONDS, EVERY):
        platform.loop.run(float(second))
        told = platform.server.database
        story.sample(float(second), MYSQL_THREADS, told.held + 1.0)
        story.sample(float(second), MYSQL_QUERIES, (told.answered - answered) / EVERY)
        answered = told.answered
    assert all(good for _, _, good in ended)
    for seq, (at, over, _) in enumerate(ended):
        story.run(story.submit(seq, due=at, service=over - at), at, over)
    story.intended = len(ended)
    return story.timeline(place)


@pytest.mark.parametrize("parallel", [2, 4])
def test_the_bound_of_a_simulated_database_is_its_capacity(parallel, tmp_path):
    bound = database(simulated(parallel, tmp_path))
    assert bound.per_hour == pytest.approx(3600 * parallel / 0.4, rel=0.1)
    assert bound.demand_s == pytest.approx(0.4 / parallel, rel=0.1)
    assert 0.3 < bound.utilisation < 1.05


def test_a_database_with_room_to_spare_has_no_bound(tmp_path):
    timeline = simulated(32, tmp_path)
    assert isinstance(database_work(timeline), Work)
    assert database(timeline) is None


def test_the_numbers_are_those_of_littles_law(tmp_path):
    """By hand: 2 threads do 20/s, 0.1 s each; with 40 threads 50/s, 0.8 s each; half of the time each, 100 runs."""
    half = SECONDS // EVERY // 2
    timeline = story_of([3] * half + [41] * half, [20] * half + [50] * half).timeline(tmp_path)
    work = database_work(timeline)
    assert (work.alone_s, work.crowded_s, work.most) == pytest.approx((0.1, 0.8, 50.0))
    bound, a_run = database(timeline), 35 * (SECONDS - EVERY) / 100
    assert bound.per_hour == pytest.approx(3600 * 50 / a_run, rel=1e-6)
    assert bound.demand_s == pytest.approx(a_run / 50)
    assert (bound.servers, bound.utilisation) == (1.0, throughput(timeline).over_per_hour / bound.per_hour)
    assert bound.how == (
        "at most 50 queries/s: with 40 active threads a query took 8.0 times as long as with few, and a run needs 104.3"
    )


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), mean=st.floats(1.0, 30.0))
def test_noise_is_not_taken_for_a_limit(seed, mean, tmp_path_factory):
    """A steady load: threads at work vary by themselves, as those of a queue with room for all do (Poisson)."""
    random = np.random.default_rng(seed)
    scrapes = SECONDS // EVERY
    story = story_of(1 + random.poisson(mean, scrapes), random.poisson(10 * mean * EVERY, scrapes) / EVERY)
    assert database(story.timeline(tmp_path_factory.mktemp("runs"))) is None


def test_insufficient_measurements_give_a_reason(tmp_path):
    assert "mysqld_exporter" in database_work(story_of([], []).timeline(tmp_path / "none"))
    assert "fewer than" in database_work(story_of([2] * 10, [5] * 10).timeline(tmp_path / "few"))
    assert "did not vary enough" in database_work(story_of([2] * 100, [5] * 100).timeline(tmp_path / "steady"))


@pytest.mark.parametrize(("used", "binds"), [(150.0, True), (80.0, False)])
def test_connections_bind_where_they_ran_out(used, binds, tmp_path):
    story = story_of([], [])
    measured = throughput(story.timeline(tmp_path / "before")).over_per_hour
    for second in range(0, 101, 5):
        story.sample(float(second), MYSQL_MOST_CONNECTIONS, 151.0)
        story.sample(float(second), MYSQL_CONNECTIONS, used)
    found = next((b for b in bounds(story.timeline(tmp_path)) if b.part == "database connections"), None)
    assert (found is not None) is binds
    if found is not None:
        assert found.servers == 151.0
        assert found.demand_s == pytest.approx(150.0)  # 150 open for 100 s, and 100 runs
        assert found.per_hour == pytest.approx(3600 * 151 / 150)
        assert found.utilisation == pytest.approx(measured / found.per_hour)
        assert found.how == "nearly all of 151 connections were open"
