"""A full runtime, told from slow adapters, uneven load and a slow worker by what executions report."""

from dataclasses import replace
from itertools import count

import numpy as np
import pytest

from harness.analysis.services.contention import Contention
from harness.analysis.services.saturation import Saturation, saturation
from harness.detectors import diagnose
from harness.detectors.services import runtime_saturated
from harness.model.phases import POD_CPU_CORES, REPLICA_WORKERS
from tests.support.injected.loads import executed
from tests.support.injection.case import Case, profile_of, records, simulated
from tests.support.injection.installations import draw
from tests.support.injection.judging import outcomes

_REPLICAS = frozenset({"replicas"})  # what Kubernetes shows of them
_BURST = Case(runs=80, over_s=1.0, profile="hetida-least-connections", schedule="burst")


def with_runtime(case, **settings):
    profile = profile_of(case)
    return replace(profile, hetida=replace(profile.hetida, runtime=replace(profile.hetida.runtime, **settings)))


def names(timeline):
    return [finding.name for finding in diagnose(timeline).findings]


@pytest.mark.parametrize("replicas", [2, 8])
def test_an_overloaded_runtime_is_full_and_more_workers_would_help(replicas):
    here, more = (with_runtime(_BURST, replicas=n, nodes=n, workers=1) for n in (replicas, 4 * replicas))
    assert names(simulated(_BURST, 1.0, 3, here))[0] == "runtime-saturated"
    slow, quick = (outcomes(records(_BURST, 1.0, 3, each)).mean_s for each in (here, more))
    assert slow > 2 * quick


def test_a_runtime_with_idle_workers_is_not_full():
    assert names(simulated(replace(_BURST, schedule="spread", over_s=60.0), 1.0, 3)) == []


def test_adapters_that_block_the_workers_come_before_the_workers():
    found = names(simulated(replace(_BURST, faults=("adapter-slow@0s",)), 2.0, 3))
    assert found[0] == "adapter-slow"


def test_a_slow_one_of_two_replicas_is_found(tmp_path):
    timeline = executed(replica=lambda seq: seq % 2, computing=lambda place: 3.0 if place else 0.5).timeline(tmp_path)
    assert names(timeline)[0] == "slow-worker"


@pytest.mark.parametrize(("few", "found"), [(3, True), (2, False)])
def test_a_slow_replica_is_found_by_the_three_executions_that_it_gets(few, found, tmp_path):
    longer = count(1.0, 0.001)
    story = executed(60, replica=lambda seq: int(seq % 15 != 7) if seq < 15 * few else 1,
                     computing=lambda place: (0.5 if place else 3.0) * next(longer))  # fmt: skip
    assert ("slow-worker" in names(story.timeline(tmp_path))) is found


def test_the_slowest_of_equal_replicas_is_not_slow(tmp_path):
    for seed in range(20):
        takes = np.random.default_rng(seed).lognormal(0.0, 1.0, 48).tolist()
        story = executed(48, replica=lambda seq: seq % 8, computing=lambda _, takes=takes: takes.pop())
        assert "slow-worker" not in names(story.timeline(tmp_path / str(seed)))


def test_uneven_load_comes_before_a_full_runtime_where_even_load_would_leave_no_waits():
    """One of seven replicas got a third of the executions."""
    drawn = draw(859424, 187)
    found = names(simulated(drawn.case, drawn.strength, drawn.seed, drawn.profile))
    assert found[:2] == ["lb-imbalance", "runtime-saturated"]


@pytest.mark.parametrize(
    ("without", "confidence", "says"),
    [
        (frozenset(), 0.9, "runtime-0 used 5.0 times an equal share of the replicas' CPU time"),
        (frozenset({"replica cpu"}), 0.85, "computed at once in busy times; 10 workers in 5 replicas could have"),
    ],
)
def test_what_kubernetes_shows_of_the_replicas_tells_that_one_did_all_the_work(without, confidence, says):
    """All executions go to the first of five replicas from the start, and no answer names it."""
    case = Case(("lb-imbalance@0s",), runs=150, over_s=60.0, profile="hetida-least-connections", without=without)
    profile = with_runtime(case, names_replicas=False, replicas=5, nodes=5, workers=2)
    timeline = simulated(case, 2.0, 3, profile)
    found = diagnose(timeline).findings
    assert (found[0].name, found[0].confidence) == ("lb-imbalance", confidence)
    assert says in found[0].evidence[0].statement
    assert saturation(timeline).in_one
    assert "runtime-saturated" not in [each.name for each in found], "more replicas would be idle, too"


@pytest.mark.parametrize(
    ("replica", "shown", "in_one"),
    [(lambda _: 0, 2, True), (lambda _: 0, 1, False), (lambda _: 0, 0, False), (lambda seq: seq % 2, 2, False)],
)
def test_one_of_several_replicas_did_all_the_work_if_it_alone_is_named(replica, shown, in_one, tmp_path):
    story = executed(replica=replica, queue=lambda _: 9.0, computing=lambda _: 2.5)
    for k in range(shown):
        story.sample(0.5, REPLICA_WORKERS, 4.0, pod=f"runtime-{k}")
    timeline = story.timeline(tmp_path)
    assert saturation(timeline).in_one is in_one
    assert ("runtime-saturated" in names(timeline)) is not in_one


@pytest.mark.parametrize(("other", "in_one"), [(0.1, True), (1.5, False)])
def test_one_name_in_all_answers_may_be_a_load_balancers_and_cpu_time_tells(other, in_one, tmp_path):
    story = executed(replica=lambda _: 0, queue=lambda _: 9.0, computing=lambda _: 2.5)
    for second in range(0, 130, 10):
        for pod, cores in (("runtime-0", 2.0), ("runtime-1", other)):
            story.sample(0.5 + second, REPLICA_WORKERS, 4.0, pod=pod)
            story.sample(0.5 + second, POD_CPU_CORES, cores, pod=pod)
    timeline = story.timeline(tmp_path)
    assert saturation(timeline).in_one is in_one
    assert ("runtime-saturated" in names(timeline)) is not in_one


def test_where_workers_mostly_load_few_compute_at_once_though_all_have_work():
    """No more at once than one of two replicas has workers: of four that load for most of their time, that is usual."""
    case = Case(("adapter-slow@0s",), runs=60, over_s=1.0, profile="hetida-least-connections", schedule="burst")
    profile = with_runtime(case, names_replicas=False, replicas=2, nodes=2, workers=2)
    found = saturation(simulated(replace(case, without=frozenset({"replica cpu"})), 2.0, 3, profile))
    assert found.computing < 0.5
    assert not found.in_one


def test_idle_replicas_show_only_with_their_number():
    """The same, where Kubernetes is not observed: two workers are as busy as those of the only replica."""
    case = Case(("lb-imbalance@0s",), runs=150, over_s=60.0, profile="hetida-least-connections", without=_REPLICAS)
    profile = with_runtime(case, names_replicas=False, replicas=5, nodes=5, workers=2)
    full = diagnose(simulated(case, 2.0, 3, profile)).findings[0]
    assert full.name == "runtime-saturated"
    assert "First see whether all of its replicas have work" in full.fix


def test_replicas_that_share_the_work_are_full_whatever_kubernetes_shows():
    case = Case(runs=150, over_s=6.0, profile="hetida-least-connections")
    profile = with_runtime(case, names_replicas=False, replicas=5, nodes=5, workers=1)
    (full,) = diagnose(simulated(case, 2.0, 3, profile)).findings
    assert full.name == "runtime-saturated"
    assert "First see" not in full.fix


def test_idle_workers_of_the_only_replica_make_uneven_load_likelier():
    """All went to one replica, of which one of four workers computed."""
    drawn = draw(859424, 200)
    timeline = simulated(replace(drawn.case, without=_REPLICAS), drawn.strength, drawn.seed, drawn.profile)
    (uneven,) = [each for each in diagnose(timeline).findings if each.name == "lb-imbalance"]
    assert uneven.confidence == 0.9
    assert "runtime-0 is the only replica that answered" in uneven.evidence[0].statement


def test_a_single_worker_is_full_though_steps_of_its_executions_overlap_for_a_moment():
    drawn = draw(859424, 97)
    assert names(simulated(drawn.case, drawn.strength, drawn.seed, drawn.profile)) == ["runtime-saturated"]


def test_where_one_replica_did_everything_both_explanations_are_given(tmp_path):
    story = executed(replica=lambda _: 0, queue=lambda _: 9.0, computing=lambda _: 2.5)
    full, uneven = diagnose(story.timeline(tmp_path)).findings[:2]
    assert (full.name, uneven.name) == ("runtime-saturated", "lb-imbalance")
    assert "the load balancer does not use them" in full.fix
    assert uneven.confidence < 0.5 < full.confidence


@pytest.mark.parametrize(("queue", "waiting"), [(0.01, 0.0), (9.0, 0.8)])
def test_waiting_is_the_time_beyond_what_an_execution_takes(queue, waiting, tmp_path):
    found = saturation(executed(queue=lambda _: queue).timeline(tmp_path))
    assert found.waiting == pytest.approx(waiting, abs=0.15)
    assert found.computing == pytest.approx(0.5 / 0.7, abs=0.1)


@pytest.mark.parametrize(("favoured", "first"), [((), "runtime-saturated"), (("lb-imbalance@30s",), "lb-imbalance")])
def test_idle_workers_show_without_names_once_more_have_computed(favoured, first):
    """From 30 s on, one of five single workers gets everything; before, several computed at once."""
    case = Case(
        favoured, runs=200 if favoured else 130, over_s=100.0 if favoured else 10.0, profile="hetida-least-connections",
        without=_REPLICAS,
    )  # fmt: skip
    profile = with_runtime(case, names_replicas=False, replicas=5, nodes=5, workers=1)
    timeline = simulated(case, 2.0, 3, profile)
    assert names(timeline)[0] == first
    assert (saturation(timeline).used < 0.6) is bool(favoured)


def test_where_some_workers_are_idle_by_chance_more_workers_come_before_even_load():
    """Even load would use the idle ones, and shorten the wait by their share only."""
    drawn = draw(555, 394)
    timeline = simulated(drawn.case, drawn.strength, drawn.seed, drawn.profile)
    assert names(timeline)[:2] == ["runtime-saturated", "lb-imbalance"]
    assert 0.25 < saturation(timeline).used < 0.6


@pytest.mark.parametrize(("queue", "loading"), [(4.0, 0.2), (0.02, 4.0)])
def test_an_uneven_load_costs_all_waits_at_the_busiest_replica_in_the_queue_or_between_steps(queue, loading, tmp_path):
    """Half of the executions go to one of four replicas, and take four of five seconds longer there."""
    timeline = executed(
        replica=lambda seq: 0 if seq % 2 else 1 + seq // 2 % 3,
        queue=lambda place: queue if place == 0 else 0.01,
        loading=lambda seq: loading if seq % 2 else 0.2,
    ).timeline(tmp_path)
    (finding,) = [each for each in diagnose(timeline).findings if each.name == "lb-imbalance"]
    assert 0.3 < finding.severity < 0.45


def test_an_overloaded_runtime_is_full_though_one_replica_got_more_than_its_share():
    """Of two replicas with one worker each: even load would leave most of the waits."""
    drawn = draw(90125, 26)
    timeline = simulated(drawn.case, drawn.strength, drawn.seed, drawn.profile)
    assert saturation(timeline).balanced > 0.5 * saturation(timeline).waiting
    assert names(timeline)[0] == "runtime-saturated"


_CROWDED = replace(_BURST, schedule="constant", over_s=40.0)


def test_workers_that_share_too_few_cores_are_found_and_more_nodes_would_help():
    """48 workers on one core: nobody waits for a worker, but all of them for the core."""
    here, more = (with_runtime(_CROWDED, replicas=8, nodes=n, workers=6, cores=1.0) for n in (1, 4))
    timeline = simulated(_CROWDED, 1.0, 3, here)
    assert saturation(timeline).waiting < 0.02
    (finding,) = diagnose(timeline).findings
    slow, quick = (outcomes(records(_CROWDED, 1.0, 3, each)).mean_s for each in (here, more))
    assert (finding.name, finding.title[:22]) == ("runtime-saturated", "The runtime lacks CPU:")
    assert finding.severity == pytest.approx(0.5 * (1 - quick / slow), abs=0.05)
    assert "as if they shared 1.0 cores (p < 0.001" in finding.evidence[0].statement
    assert "More workers on the same nodes would share the same cores." in finding.fix


def test_the_same_workers_on_cores_for_all_of_them_lack_none():
    assert names(simulated(_CROWDED, 1.0, 3, with_runtime(_CROWDED, replicas=8, nodes=8, workers=6, cores=8.0))) == []


def test_what_the_lack_of_cores_costs_adds_to_the_wait_for_workers():
    timeline = simulated(_BURST, 1.0, 3, with_runtime(_BURST, replicas=2, nodes=1, workers=4, cores=1.0))
    finding = diagnose(timeline).findings[0]
    assert "The runtime is full" in finding.title
    assert finding.severity > 0.45 * saturation(timeline).waiting + 0.005


def test_workers_that_mostly_load_are_counted_by_how_seldom_many_of_them_compute():
    """Eight compute for a tenth of their time: two at once is usual."""
    case = replace(_BURST, runs=160, faults=("adapter-slow@0s",))
    found = saturation(simulated(case, 2.0, 3, with_runtime(case, replicas=8, nodes=8, workers=1)))
    assert 6 <= found.workers <= 8


@pytest.mark.parametrize(("p", "found"), [(2e-3, []), (5e-4, ["runtime-saturated"])])
def test_computing_times_that_chance_explains_name_no_lack_of_cores(p, found, tmp_path, monkeypatch):
    monkeypatch.setattr(runtime_saturated, "contention", lambda _: Contention(2.0, 0.4, p))
    timeline = executed(queue=lambda _: 0.01).timeline(tmp_path)
    assert [each.name for each in runtime_saturated.detect(timeline)] == found


def test_workers_that_load_in_turns_for_want_of_workers_come_before_the_adapters_that_they_load_from():
    """Six workers share a core pair: each seldom computes, and loads are long because others interrupt them."""
    drawn = draw(882113, 173)
    assert names(simulated(drawn.case, drawn.strength, drawn.seed, drawn.profile))[0] == "runtime-saturated"


@pytest.mark.parametrize(("queued", "sure"), [(0.3, True), (0.1, False)])
def test_waits_that_only_long_loads_suggest_are_hardly_a_full_runtime(queued, sure, tmp_path, monkeypatch):
    waits = Saturation(waiting=0.6, moving=0.2, computing=0.7, covered=1.0, workers=4, most=4, queued=queued)
    monkeypatch.setattr(runtime_saturated, "saturation", lambda _: waits)
    (found,) = runtime_saturated.detect(executed().timeline(tmp_path))
    assert (found.confidence > 0.9) is sure
    assert (found.confidence < 0.3) is not sure


def test_a_lack_of_cores_is_named_where_only_long_loads_suggest_that_executions_waited():
    """32 workers on 8 cores."""
    drawn = draw(660086, 238)
    timeline = simulated(drawn.case, drawn.strength, drawn.seed, drawn.profile)
    found = saturation(timeline)
    assert found.waiting > 0.2
    assert not found.measured
    (finding,) = runtime_saturated.detect(timeline)
    assert (finding.title[:22], finding.confidence) == ("The runtime lacks CPU:", 0.93)
