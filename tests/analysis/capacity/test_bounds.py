import pytest

from harness.analysis.capacity.bounds import bounds
from harness.analysis.services.saturation import saturation
from harness.model.phases import RUNNING, STORING, UNSCHEDULABLE, UPLOAD_SECONDS
from tests.support.injected.control_plane import api_throttled
from tests.support.injected.loads import steady
from tests.support.injection.case import Case, simulated
from tests.support.injection.cases import CASES
from tests.support.injection.installations import draw
from tests.support.timelines import Story, burst


def test_pods_waiting_for_nodes_show_the_nodes_bound(tmp_path):
    (nodes,) = bounds(burst(200).timeline(tmp_path))
    assert nodes.part == "nodes"
    assert nodes.servers == 16
    # By hand: the driver's 0.4 s and three steps of 0.3 + 0.2 + 3.0 s on a node; the lanes are empty in between.
    assert nodes.demand_s == pytest.approx(0.4 + 3 * 3.5)
    assert nodes.per_hour == pytest.approx(3600 * 16 / 10.9)
    assert 0.75 < nodes.utilisation < 1
    assert nodes.how == "at most 16 pods ran at once, and the pods of a run take 11 s in total"


def queueing(place, *, takes_s):
    """Eight runs with one pod each, all made at once, one after the other on a node with room for one."""
    story = Story(intended=8)
    for seq in range(8):
        run, begun = story.submit(seq, lag=0.0), takes_s * seq
        story.pod(run, "step", None, (UNSCHEDULABLE, 0.0, begun))
        story.pod(run, "step", "n", (RUNNING, begun, begun + takes_s))
        story.run(run, 0.0, begun + takes_s)
    return story.timeline(place)


def test_short_pods_are_bounded_by_nodes_too(tmp_path):
    (nodes,) = bounds(queueing(tmp_path, takes_s=0.5))
    assert (nodes.part, nodes.servers) == ("nodes", 1)
    assert nodes.per_hour == pytest.approx(3600 / 0.5)


def test_pods_that_take_no_time_need_no_nodes(tmp_path):
    assert bounds(queueing(tmp_path, takes_s=0.0)) == ()


def test_a_token_bucket_shows_the_apis_bound(tmp_path):
    found = {bound.part: bound for bound in bounds(api_throttled().timeline(tmp_path))}
    assert found["API server"].per_hour == pytest.approx(5 * 3600, rel=0.02)
    assert found["API server"].demand_s == pytest.approx(0.2, rel=0.02)
    assert found["API server"].how.endswith(" consecutive responses while submissions queued")


@pytest.mark.parametrize(
    ("fault", "part", "per_hour", "how"),
    [
        ("store-slow", "artifact store", None, "concurrent requests on average"),
        ("api-throttled", "API server", 5 * 3600, "consecutive responses"),  # the injected rate
        ("controller-backlog", "controller", None, "while others waited"),
        ("adapter-slow", "adapters", None, "concurrent requests on average"),
    ],
)
def test_the_resource_that_an_injected_fault_slows_is_the_bottleneck(fault, part, per_hour, how):
    timeline = simulated(CASES[fault], 1.0, seed=1)
    first = bounds(timeline)[0]
    assert first.part == part
    assert first.utilisation > (0.85 if per_hour is None else 0.5)
    assert how in first.how
    assert first.servers == 1
    assert first.per_hour == pytest.approx(3600 / first.demand_s)
    if per_hour is not None:
        assert first.per_hour == pytest.approx(per_hour, rel=0.02)


def paced(place, *, first_s, count=40):
    """Two pods of 1 s for each of the runs of a burst at 100 s; the controller makes one pod each second from 102 s on.

    First pods at once, `first_s` later, if that is given.
    """
    story = Story(intended=count)
    for seq in range(count):
        run = story.submit(seq, due=100.0, lag=0.0)
        first = 100.0 + first_s if first_s else 102.0 + seq
        second = 102.0 + seq + (0 if first_s else count)
        story.pod(run, "first", "n", (RUNNING, first, first + 1.0))
        story.pod(run, "second", "n", (RUNNING, second, second + 1.0))
        story.run(run, 100.0, second + 1.0)
    return story.timeline(place)


def test_a_controller_that_makes_a_pod_each_second_has_that_bound(tmp_path):
    (controller,) = bounds(paced(tmp_path, first_s=0.0))
    assert controller.part == "controller"
    assert controller.per_hour == pytest.approx(3600 / 2, rel=0.03)  # two pods a run
    assert controller.how == "runs got their next pod at 1.0/s while others waited, and a run waits 2.0 times"


def test_where_first_pods_come_at_once_the_controller_is_not_at_its_limit(tmp_path):
    """The others wait for its next look at their run."""
    assert bounds(paced(tmp_path, first_s=0.5)) == ()


def test_no_bound_is_below_the_measured_throughput():
    for fault in ("slow-worker", "parallelism-cap", "nodes-exhausted", "image-pull"):
        timeline = simulated(CASES[fault], 1.0, seed=1)
        assert all(bound.utilisation < 1.05 for bound in bounds(timeline)), fault
        assert "adapters" not in {bound.part for bound in bounds(timeline)}


def test_workers_that_compute_while_others_load_show_no_limit_of_the_adapters():
    """Six workers share a core pair: loads are long because of them, as the finding `runtime-saturated` says."""
    drawn = draw(882113, 173)
    timeline = simulated(drawn.case, drawn.strength, drawn.seed, drawn.profile)
    assert saturation(timeline).moving < saturation(timeline).waiting
    assert "adapters" not in {bound.part for bound in bounds(timeline)}


def test_a_resource_with_a_bound_below_the_throughput_is_left_out():
    """A quota lets pods be made as others end: that is an even pace, and not the controller's."""
    case = Case(("quota",), runs=150, over_s=0.1, profile="aks-20-nodes", schedule="burst", drain_s=4000.0)
    timeline = simulated(case, 1.0, seed=7)
    assert "controller" not in {bound.part for bound in bounds(timeline)}


@pytest.mark.parametrize(("takes_s", "shown"), [(10.0, "10.0 s"), (0.5, "0.5 s")])
def test_a_closed_test_is_bounded_by_its_runs_in_flight(takes_s, shown, tmp_path):
    """By hand: four users, each run takes 10 s: X <= N / D = 4 / 10 s."""
    story = Story(intended=40, schedule={"name": "concurrency", "model": "closed"})
    for seq in range(40):
        begun = takes_s * (seq // 4)
        run = story.submit(seq, due=begun, lag=0.0)
        story.run(run, begun, begun + takes_s)
    (bound,) = bounds(story.timeline(tmp_path))
    assert (bound.part, bound.servers) == ("runs in flight", 4.0)
    assert bound.per_hour == pytest.approx(3600 * 4 / takes_s)
    assert bound.utilisation == pytest.approx(1.0, rel=0.01)
    assert bound.how == f"at most 4 runs were in flight, and a fast one (p5) took {shown}"


def storing(place, *, logs, count=20, over=True):
    """Runs at once, whose pods work for a second and then store for four: to be seen in all of them, or in some.

    With `over` false, no run ends in the test.
    """
    story = Story(intended=count)
    for seq in range(count):
        run = story.submit(seq, lag=0.0)
        if logs and seq >= logs:
            story.pod(run, "train", "n", (RUNNING, 0.0, 5.0))
        else:
            pod = story.pod(run, "train", "n", (RUNNING, 0.0, 1.0), (STORING, 1.0, 5.0))
        if seq < logs:
            story.sample(5.0, UPLOAD_SECONDS, 4.0, pod=pod)
        story.run(run, 0.0, 5.0 if over else None)
    return story.timeline(place)


@pytest.mark.parametrize("logs", [0, 2])
def test_a_store_that_is_busy_with_many_pods_at_once_has_a_bound(logs, tmp_path):
    """By hand: 20 runs keep it busy for 4 s, whether all pods show it or the logs of two."""
    (store,) = bounds(storing(tmp_path, logs=logs))
    assert (store.part, store.servers) == ("artifact store", 1.0)
    assert store.per_hour == pytest.approx(3600 * 20 / 4)
    assert store.demand_s == pytest.approx(4 / 20)
    assert store.how == "busy for 4 s, with 20.0 concurrent requests on average"


@pytest.mark.parametrize("logs", [0, 2])
def test_a_store_that_few_use_at_once_has_none(logs, tmp_path):
    assert bounds(storing(tmp_path, logs=logs, count=2)) == ()


@pytest.mark.parametrize("logs", [0, 2])
def test_a_store_has_no_bound_before_a_run_is_over(logs, tmp_path):
    assert bounds(storing(tmp_path, logs=logs, over=False)) == ()


def test_resources_that_never_reached_their_limit_have_no_bound(tmp_path):
    assert bounds(steady(40).timeline(tmp_path)) == ()
