"""A pod's life from manifests and events as real clusters show them."""

from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.collectors.kubernetes.pod.life import PodLife, label_of, run_of, task_of
from harness.collectors.kubernetes.timestamps import Stamp, settled
from harness.model import Span
from harness.model.phases import PULLING, RUNNING, SCHEDULING, SERVING, STARTING, STORING, UNSCHEDULABLE
from harness.targets.dask_tenants import DaskTenants
from harness.targets.kfp import KfpTarget
from tests.support.kube_stories import DONE, NODE, PULLED, SCHEDULED, STORY, UNFIT
from tests.support.manifests import RUN, WF, at, condition, ended, event, pod, running, waiting


def life_of(*seen: dict[str, Any], now: float = 100.0) -> PodLife:
    life = PodLife.of(next(each for each in seen if "status" in each))
    for each in seen:
        if "status" in each:
            life.see(each, at(now))
        else:
            life.see_event(each)
    return life


def phases(life: PodLife) -> list[tuple[str, float, float | None]]:
    """(phase, start, end) in seconds of the scene, without empty phases."""
    spans = life.spans()
    found = [
        (s.phase, (s.started_at - at(0)) / 1e9, None if s.ended_at is None else (s.ended_at - at(0)) / 1e9)
        for s in spans
    ]
    return [each for each in found if each[1] != each[2]]


class TestPhases:
    def test_a_life_with_queueing_two_pulls_and_outputs_is_complete(self) -> None:
        told = phases(life_of(*STORY))
        assert [(name, pytest.approx(a, abs=1e-4), pytest.approx(b, abs=1e-4)) for name, a, b in told] == [
            (SCHEDULING, 0.2562, 0.5123),  # created between 0 s and 0.5123 s
            (UNSCHEDULABLE, 0.5123, 4.9123),
            (STARTING, 4.9123, 4.9562),
            (PULLING, 4.9562, 5.8062),  # 850 ms
            (STARTING, 5.8062, 8.25),
            (PULLING, 8.25, 10.75),  # 2.5 s
            (STARTING, 10.75, 11.5),
            (RUNNING, 11.5, 30.5),
            (STORING, 30.5, 31.5),
        ]

    def test_each_boundary_keeps_its_resolution(self) -> None:
        by_phase = {span.phase: span for span in life_of(*STORY).spans()}
        assert by_phase[UNSCHEDULABLE].resolution_s == 1e-6
        assert by_phase[SCHEDULING].resolution_s == by_phase[RUNNING].resolution_s == 1.0

    def test_spans_name_run_task_pod_and_node(self) -> None:
        span = life_of(*STORY).spans()[-1]
        assert (span.run, span.task, span.step, span.node, span.source) == (
            RUN,
            "train",
            f"{WF}-system-container-impl-1",
            NODE,
            "kubernetes",
        )

    def test_without_events_conditions_suffice(self) -> None:
        told = phases(life_of(pod(conditions=[UNFIT]), DONE))
        assert [name for name, _, _ in told] == [UNSCHEDULABLE, STARTING, RUNNING, STORING]
        assert told[0] == (UNSCHEDULABLE, 0.5, 4.5)

    def test_an_ongoing_phase_has_no_end(self) -> None:
        assert phases(life_of(pod(), now=3)) == [(SCHEDULING, 0.5, None)]
        assert phases(life_of(*STORY[:1])) == [(UNSCHEDULABLE, 0.5, None)]
        assert phases(life_of(*STORY[2:5]))[-1][::2] == (PULLING, None)
        assert phases(life_of(*STORY[:11]))[-1] == (RUNNING, 11.5, None)

    def test_a_contradiction_beyond_the_resolution_stays_visible(self) -> None:
        late = event("Scheduled", "Successfully assigned", 14, micro_at=14.5)
        spans = life_of(pod(node=NODE), late, DONE).spans()
        assert any(span.ended_at is not None and span.ended_at < span.started_at for span in spans)

    @given(st.permutations(STORY[:-1]))
    def test_the_order_of_observations_does_not_matter(self, seen: list[dict[str, Any]]) -> None:
        assert _shown(life_of(*seen, DONE)) == _shown(life_of(*STORY))

    @given(st.lists(st.sampled_from(STORY), min_size=1, max_size=30))
    def test_repeated_observations_change_nothing(self, more: list[dict[str, Any]]) -> None:
        assert _shown(life_of(*STORY, *[each for each in more if "status" not in each], DONE)) == _shown(
            life_of(*STORY)
        )

    @given(st.sets(st.integers(0, len(STORY) - 1)).map(sorted))
    def test_phases_are_contiguous_from_creation_on_whatever_was_missed(self, kept: list[int]) -> None:
        seen = [STORY[k] for k in kept] + [DONE]
        spans = life_of(*seen).spans()
        assert 0 <= spans[0].started_at - at(0) <= 10**9
        assert 0 <= (spans[-1].ended_at or 0) - at(31) <= 10**9
        assert all(one.ended_at == other.started_at for one, other in pairwise(spans))


def _shown(life: PodLife) -> list[Span]:
    return [span for span in life.spans() if span.started_at != span.ended_at]


class TestCreation:
    def test_creation_is_dated_by_the_watch_within_the_stamped_second(self) -> None:
        life = life_of(*STORY)
        life.appeared(at(0.4))
        assert phases(life)[0] == (SCHEDULING, pytest.approx(0.375), pytest.approx(0.5123, abs=1e-4))

    def test_creation_is_never_after_scheduling(self) -> None:
        life = life_of(*STORY)
        life.appeared(at(0.9))
        assert phases(life)[0] == (SCHEDULING, pytest.approx(0.4873, abs=1e-4), pytest.approx(0.5123, abs=1e-4))

    @pytest.mark.parametrize("told", [-0.2, 1.3, 500])
    def test_a_late_watch_does_not_date_the_creation(self, told: float) -> None:
        life = life_of(pod())
        life.appeared(at(told))
        assert phases(life) == [(SCHEDULING, 0.5, None)]


class TestSettled:
    STAMPS = st.lists(st.tuples(st.floats(0, 5), st.sampled_from([1.0, 1e-6])), min_size=1, max_size=8)

    @given(STAMPS)
    def test_instants_are_exact_to_the_resolution_and_in_order(self, happened: list[tuple[float, float]]) -> None:
        true = sorted(at(seconds) for seconds, _ in happened)
        stamps = [Stamp(t // round(r * 1e9) * round(r * 1e9), r) for t, (_, r) in zip(true, happened, strict=True)]
        found = settled(stamps)
        assert all(
            abs(one - other) <= stamp.resolution_s * 1e9 for one, other, stamp in zip(found, true, stamps, strict=True)
        )
        assert found == sorted(found)

    def test_intervals_from_coarse_to_fine_stamps_are_unbiased(self) -> None:
        random = Random(7)
        error = 0.0
        for _ in range(4000):
            created, wait = random.uniform(0, 60), random.expovariate(1 / 3.0)
            stamps = [Stamp(at(created) // 10**9 * 10**9, 1.0), Stamp(at(created + wait), 1e-6)]
            one, other = settled(stamps)
            error += (other - one) / 1e9 - wait
        assert abs(error / 4000) < 0.05  # 0.5 as the stamps are


class TestEnds:
    def test_an_evicted_pod_ends_when_it_stopped_being_ready(self) -> None:
        evicted = pod(
            node=NODE, phase="Failed", reason="Evicted", message="The node was low on resource: memory.",
            conditions=[SCHEDULED, condition("Ready", "False", 20.7)],
        )  # fmt: skip
        life = life_of(STORY[10], evicted)
        assert phases(life)[-1] == (RUNNING, 11.5, 20.5)
        (failure,) = life.failures()
        assert (failure.kind, failure.reason, failure.run, failure.at) == ("Pod", "Evicted", RUN, at(20))
        assert "low on resource" in failure.message

    def test_a_deleted_pod_ends_at_its_deletion(self) -> None:
        life = life_of(STORY[10])
        life.see_deleted({"metadata": {"name": "x"}}, at(25.5))
        assert phases(life)[-1] == (RUNNING, 11.5, 25.0)
        life.see_deleted({"metadata": {"name": "x"}}, at(99))
        assert phases(life)[-1] == (RUNNING, 11.5, 25.0)

    def test_deleting_an_ended_pod_does_not_change_its_end(self) -> None:
        life = life_of(*STORY)
        life.see_deleted(DONE, at(3600))
        assert phases(life)[-1] == (STORING, 30.5, 31.5)

    def test_a_failure_in_an_init_container_never_runs(self) -> None:
        failed = pod(
            node=NODE, phase="Failed", conditions=[SCHEDULED], initContainerStatuses=[ended("init", 6, 9, 64, reason="Error")],
            containerStatuses=[waiting("wait", "PodInitializing"), waiting("main", "PodInitializing")],
        )  # fmt: skip
        life = life_of(failed)
        assert phases(life)[-1] == (STARTING, 4.5, 9.5)
        assert [event.message for event in life.failures()] == ["container init ended with exit code 64"]

    def test_out_of_memory_is_recorded_as_such(self) -> None:
        failed = pod(
            node=NODE,
            phase="Failed",
            conditions=[SCHEDULED],
            containerStatuses=[ended("main", 5, 8, 137, reason="OOMKilled"), ended("wait", 5, 9)],
        )
        assert [(event.reason, event.at) for event in life_of(failed).failures()] == [("OOMKilled", at(8))]

    def test_the_termination_message_is_kept(self) -> None:
        said = (
            "failed to save outputs: unable to write outputs to s3://mlpipeline/x: timed out waiting for the condition"
        )
        failed = pod(
            node=NODE,
            phase="Failed",
            conditions=[SCHEDULED],
            containerStatuses=[ended("main", 5, 8, 1, message=said), ended("wait", 5, 9, 1)],
        )
        assert [event.message for event in life_of(failed, failed).failures()] == [
            said,
            "container wait ended with exit code 1",
        ]

    def test_a_failed_image_pull_is_recorded_once_per_reason(self) -> None:
        def stuck(reason: str) -> dict[str, Any]:
            return pod(
                node=NODE, conditions=[SCHEDULED], containerStatuses=[waiting("main", reason, "Back-off pulling image")]
            )

        life = life_of(stuck("ErrImagePull"), stuck("ImagePullBackOff"), stuck("ErrImagePull"))
        assert [event.reason for event in life.failures()] == ["ErrImagePull", "ImagePullBackOff"]

    def test_a_retried_pull_lasts_until_it_succeeds(self) -> None:
        life = life_of(
            pod(node=NODE, conditions=[SCHEDULED]),
            event("Pulling", 'Pulling image "python:3.11"', 5, count=3, last=40, uid="p"),
            event("Pulled", PULLED, 43),
            pod(node=NODE, phase="Running", conditions=[SCHEDULED], containerStatuses=[running("main", 44)]),
        )
        assert phases(life)[2] == (PULLING, 5.5, 43.5)


@pytest.mark.parametrize(
    ("path", "task"),
    [
        ("root-driver", "root-driver"),
        ("root.train-driver", "train-driver"),
        ("root.train.executor", "train"),
        ("root.train.executor(1)", "train"),
        ('root.for-loop-1.iteration-item(3:{"a":1.5}).train.executor(0)', "train"),
        ("root.outer.inner.executor", "inner"),
    ],
)
def test_the_task_is_read_from_argos_node_name(path: str, task: str) -> None:
    assert task_of(pod(path=path)) == task


def test_a_plain_argo_workflow_names_its_steps_too() -> None:
    manifest = pod()
    manifest["metadata"]["labels"] = {"workflows.argoproj.io/workflow": "w"}
    manifest["metadata"]["annotations"] = {"workflows.argoproj.io/node-name": "w[0].sift(2:b)"}
    assert (run_of(manifest), task_of(manifest)) == ("w", "sift")


def test_pods_of_the_platform_work_for_no_run_and_have_no_spans() -> None:
    manifest = {**DONE, "metadata": {"name": "mysql-0", "uid": "u", "creationTimestamp": "2026-11-21T10:00:00Z"}}
    assert life_of(manifest).spans() == []


def of_dask(component: str, **more: Any) -> dict[str, Any]:
    """A pod of the Dask operator's, as of its release 2025.7."""
    found = pod(f"mine-{component}-6d4-x7k2p", **more)
    labels = {"dask.org/cluster-name": "mine", "dask.org/component": component, "sidecar.istio.io/inject": "false"}
    found["metadata"] |= {"labels": labels, "annotations": {}}
    found["spec"]["containers"] = [{"name": component}]
    return found


@pytest.mark.parametrize(("component", "phase"), [("scheduler", SERVING), ("worker", SERVING), ("stage", RUNNING)])
def test_the_pods_of_a_dask_cluster_work_for_its_run_and_only_the_stage_computes(component: str, phase: str) -> None:
    scheduled = condition("PodScheduled", "True", 2.0)
    seen = of_dask(
        component, phase="Running", node=NODE, conditions=[scheduled], containerStatuses=[running(component, 5.0)]
    )
    assert (run_of(seen), task_of(seen)) == ("mine", component)
    assert phases(life_of(seen))[-1][0] == phase


def test_the_label_of_the_pods_depends_on_the_target() -> None:
    assert label_of(DaskTenants(1.0)) == "dask.org/cluster-name"
    assert label_of(KfpTarget({})) == "workflows.argoproj.io/workflow"
