from dataclasses import replace

import numpy as np
import pytest

from harness.analysis.capacity.answer import Question, answer
from harness.analysis.capacity.bounds import bounds
from harness.analysis.capacity.caps import Cap, caps, widest
from harness.analysis.capacity.fit import fit
from harness.analysis.capacity.recorded import recorded
from harness.model.phases import COMPUTING, REPLICA_WORKERS, RUNNING, STORE_AVAILABLE_BYTES, STORE_CAPACITY_BYTES
from harness.planning.simulated_burst import burst, package, with_nodes
from harness.simulator.profile.file import load_profile
from tests.support.injected.control_plane import api_throttled
from tests.support.injection.case import Case, simulated
from tests.support.timelines import GIB, Story

QUOTA = 'pods "x" is forbidden: exceeded quota: tight, requested: pods=1, used: pods=4, limited: pods=4'


def limited(runs=60, at_once=4, *, seconds=10.0):
    """A burst of runs with one pod each, of which `at_once` are active, on ten nodes with room for all."""
    story = Story(intended=runs)
    for k in range(10):
        story.node(f"n{k}", -600, -590)
    for seq in range(runs):
        run = story.submit(seq, lag=0.0)
        start = 0.5 + seconds * (seq // at_once)
        story.pod(run, "train", f"n{seq % 10}", (RUNNING, start, start + seconds))
        story.run(run, 0.0, start + seconds)
    return story


def asked(timeline, question):
    found = recorded(timeline)
    return answer(fit(found.observations, np.random.default_rng(1), caps=found.caps), question)


def test_a_plateau_of_active_runs_is_a_cap_on_parallelism(tmp_path):
    (cap,) = caps(limited().timeline(tmp_path))
    assert (cap.part, cap.name) == ("parallelism", "the parallelism of 4")
    assert cap.per_hour == pytest.approx(4 * 360)
    assert cap.how == "4 runs at once for 100% of the time, 10 s each"


def test_runs_that_all_start_at_once_show_no_cap(tmp_path):
    assert caps(limited(runs=40, at_once=40).timeline(tmp_path)) == ()


def test_full_nodes_are_no_cap_on_parallelism(tmp_path):
    story = limited()
    story.event(1.0, "Pod", "run-0050-train", "FailedScheduling", "0/10 nodes are available: 10 Insufficient cpu.",
                run="run-0050")  # fmt: skip
    assert caps(story.timeline(tmp_path)) == ()


def test_a_quota_on_pods_caps_by_the_pod_seconds_of_a_run(tmp_path):
    story = limited(at_once=60)
    story.event(1.0, "Task", "run-0003-train", "PENDING", QUOTA, run="run-0003")
    (cap,) = caps(story.timeline(tmp_path))
    assert (cap.name, cap.per_hour) == ("the quota tight of 4 pods", pytest.approx(4 * 360))
    assert cap.how == "at most 4 pods at once, and the pods of a run take 10 s"


@pytest.mark.parametrize("limits", [(4, 9), (9, 4)])
def test_a_quota_that_was_changed_counts_with_its_greatest_limit(limits, tmp_path):
    story = limited(at_once=60)
    for at_s, limit in zip((1.0, 2.0), limits, strict=True):
        story.event(at_s, "Task", "run-0003-train", "PENDING", QUOTA.replace("=4", f"={limit}"), run="run-0003")
    (cap,) = caps(story.timeline(tmp_path))
    assert (cap.name, cap.per_hour) == ("the quota tight of 9 pods", pytest.approx(9 * 360))


def test_a_rate_that_was_reached_is_a_cap_with_its_measurements(tmp_path):
    timeline = api_throttled().timeline(tmp_path)
    (bound,) = (each for each in bounds(timeline) if each.part == "API server")
    (cap,) = (each for each in caps(timeline) if each.part == "API server")
    assert (cap.name, cap.per_hour, cap.nodes, cap.how) == ("the API server", bound.per_hour, np.inf, bound.how)
    assert cap.how.endswith("consecutive responses while submissions queued")


def test_a_cap_bounds_every_answer_and_is_named_with_the_size_from_which_it_binds(tmp_path):
    timeline = limited().timeline(tmp_path)
    took = asked(timeline, Question(runs=4000, nodes=400))
    assert took.value >= 10_000, "4,000 runs of 10 s, four at once"
    assert took.binding == "parallelism"
    assert any("400 nodes the parallelism of 4 binds: 4 runs at once" in warning for warning in took.warnings)
    most = asked(timeline, Question(within_s=3600, nodes=400))
    assert most.value == pytest.approx(1440, abs=1)
    none = asked(timeline, Question(runs=4000, within_s=600))
    assert (none.value, none.binding) == (None, "parallelism")


def test_a_cap_that_binds_leaves_an_interval_since_one_test_showed_it(tmp_path):
    found = asked(limited().timeline(tmp_path), Question(runs=4000, nodes=400))
    assert found.low < 0.9 * found.value < 1.1 * found.value < found.high


def test_nodes_beyond_the_autoscalers_maximum_can_not_be_had(tmp_path):
    story = limited(runs=40, at_once=40)
    story.event(1.0, "Pod", "run-0001-train", "TriggeredScaleUp", "pod triggered scale-up: [{train 3->10 (max: 12)}]",
                run="run-0001")  # fmt: skip
    found = asked(story.timeline(tmp_path), Question(runs=400, nodes=20))
    assert any("20 nodes aren't available: the autoscaler's maximum of 12 nodes" in each for each in found.warnings)
    found = asked(story.timeline(tmp_path / "b"), Question(runs=400, nodes=12))
    assert not any("aren't available" in each for each in found.warnings)


def test_the_maxima_of_several_groups_add_up(tmp_path):
    story = limited(runs=40, at_once=40)
    for group, limit in (("train", 12), ("spot", 3)):
        message = f"pod triggered scale-up: [{{{group} 1->2 (max: {limit})}}]"
        story.event(1.0, "Pod", f"run-0001-{group}", "TriggeredScaleUp", message, run="run-0001")
    (cap,) = caps(story.timeline(tmp_path))
    assert (cap.nodes, cap.how) == (15.0, "spot 3, train 12")


def writing(claim, *, runs=40, free=(20.0, 16.0), **labels):
    story = limited(runs, at_once=40)
    for at_s, left in zip((0.0, 12.0), free, strict=True):
        story.sample(at_s, STORE_CAPACITY_BYTES, 50.0 * GIB, volume=claim, namespace="kubeflow", **labels)
        story.sample(at_s, STORE_AVAILABLE_BYTES, left * GIB, volume=claim, namespace="kubeflow", **labels)
    return story


@pytest.mark.parametrize(("claim", "labels"), [("minio-pvc", {}), ("data-0", {"mounted_by": "mysql"})])
def test_the_room_on_a_volume_that_runs_fill_is_a_cap_on_their_number(tmp_path, claim, labels):
    timeline = writing(claim, **labels).timeline(tmp_path)
    (cap,) = caps(timeline)
    assert (cap.part, cap.runs) == (f"volume {claim}", 150), "15 GiB above the reserve of 2 %, 0.1 GiB a run"
    assert cap.how == "15.0 GiB were left at the end, and a run writes 102.4 MiB"
    found = asked(timeline, Question(runs=400, nodes=10))
    assert any(f"above 150 runs the volume {claim} is full" in warning for warning in found.warnings)


@pytest.mark.parametrize(
    ("claim", "more"),
    [("katib-mysql", {}), ("prometheus-data", {}), ("minio-pvc", {"free": (20.0, 20.0)}), ("minio-pvc", {"runs": 8})],
)
def test_a_volume_that_runs_are_not_known_to_fill_is_no_cap(tmp_path, claim, more):
    assert caps(writing(claim, **more).timeline(tmp_path)) == ()


def test_of_several_tests_the_widest_cap_counts():
    narrow, wide = (Cap("quota", "q", rate, np.inf, "") for rate in (5.0, 7.0))
    other = Cap("controller", "c", 1.0, np.inf, "")
    assert set(widest([narrow, other, wide])) == {wide, other}
    assert widest([wide, narrow]) == (wide,)


def test_loads_are_no_cap_and_a_doubt_only_where_workers_seldom_compute():
    """On eight replicas instead of three the executions are over in less than half the time."""
    profile = load_profile("hetida-pattern-1")
    service = package(None, profile)
    few, many = (burst(with_nodes(profile, replicas, service), service, 300, 1).duration_s for replicas in (3, 8))
    assert many < few / 2
    named = replace(
        profile, hetida=replace(profile.hetida, runtime=replace(profile.hetida.runtime, names_replicas=True))
    )
    for faults, doubted in (((), False), (("adapter-slow@0s",), True)):
        case = Case(faults, runs=300, over_s=0.1, profile=profile.name, schedule="burst", drain_s=4000.0)
        found = recorded(simulated(case, 1.0, seed=1, profile=named))
        assert found.caps == ()
        assert found.unit == "replica"
        assert any("a test on another number of replicas tells" in each for each in found.warnings) is doubted


def on_two_replicas(*, named=True):
    """Forty executions at once, one a second on each of two replicas."""
    story = Story(intended=40, target="hetida")
    for seq in range(40):
        run = story.submit(seq, lag=0.0)
        node = f"runtime-{seq % 2}" if named else None
        story.pod(run, "", node, (COMPUTING, float(seq // 2), seq // 2 + 1.0))
        story.run(run, 0.0, seq // 2 + 1.0)
    return story


@pytest.mark.parametrize("named", [True, False])
def test_replicas_are_counted_as_kubernetes_shows_them_with_their_workers(named, tmp_path):
    """Of five replicas, two answered, or none is named."""
    story = on_two_replicas(named=named)
    for k in range(5):
        story.sample(0.0, REPLICA_WORKERS, 4, pod=f"pod-{k}")
    found = recorded(story.timeline(tmp_path))
    assert (found.unit, found.workers_each, [test.nodes for test in found.observations]) == ("replica", 4, [5])


def test_a_service_is_answered_in_replicas(tmp_path):
    found = recorded(on_two_replicas().timeline(tmp_path))
    assert (found.unit, found.workers_each) == ("replica", 0)
    assert (found.unit, [test.nodes for test in found.observations]) == ("replica", [2])
    model = fit(found.observations, np.random.default_rng(1), unit=found.unit)
    assert answer(model, Question(runs=40, within_s=11.0)).unit == "replica"
