"""What the next versions of KFP change: where drivers run, and where the state of tasks is kept."""

from collections import Counter
from dataclasses import replace
from datetime import datetime

import pytest

from harness.simulator.cluster import Change
from harness.simulator.engine.calendar import Calendar
from harness.simulator.engine.distributions import fixed
from harness.simulator.kube_objects.view import KubernetesView
from harness.simulator.platform import Platform
from harness.simulator.profile import Api, Database, Kfp, Profile
from tests.support.platforms import TRAINING, UNCACHED, Journal, profile, submit, upload

INSIDE = Kfp(drivers="init-containers")


def pods(of: Profile, package: bytes = UNCACHED, runs: int = 1) -> tuple[Platform, Counter[str], list[float]]:
    """The pods by role, and when each run was over, one run after the other."""
    journal = Journal()
    platform = Platform(of, listener=journal)
    version = upload(platform, package)
    over = []
    for _ in range(runs):
        (run,) = submit(platform, version)
        platform.loop.run(platform.loop.now + 100)
        assert run.state == "SUCCEEDED"
        over.append((run.finished or 0.0) - run.created)
    return platform, Counter(pod.role for pod in journal.saw(Change.CREATED)), over


def test_a_driver_in_an_init_container_needs_no_pod_but_its_time() -> None:
    slow = replace(profile().controller, driver=fixed(2.0))
    _, today, (today_s,) = pods(profile(controller=slow))
    _, inside, (inside_s,) = pods(profile(controller=slow, kfp=INSIDE))
    assert today == {"dag-driver": 1, "container-driver": 3, "executor": 3}
    assert inside == {"dag-driver": 1, "executor": 3}
    assert (today_s, inside_s) == (pytest.approx(4 * 2 + 3), pytest.approx(4 * 2 + 3))


def test_a_driver_in_an_init_container_is_in_the_pod_s_manifest() -> None:
    slow = replace(profile().controller, driver=fixed(2.0))
    view = KubernetesView(Calendar(0))
    platform = Platform(profile(controller=slow, kfp=INSIDE), listener=view)
    view.follow(platform)
    submit(platform, upload(platform))
    platform.loop.run(100)
    (pods,) = (each for each in view.store.resources if each.plural == "pods" and each.listing is None)
    manifests = [pods.render(each.snapshot) for each in view.store.objects(pods)]
    executors = [each for each in manifests if "-impl-" in each["metadata"]["name"]]
    assert len(executors) == 3
    for each in executors:
        names = ["init", "kfp-launcher", "kfp-driver"]
        assert [container["name"] for container in each["spec"]["initContainers"]] == names
        assert each["spec"]["initContainers"][-1]["image"] == "ghcr.io/kubeflow/kfp-driver:2.17.0"
        states = [status["state"]["terminated"] for status in each["status"]["initContainerStatuses"]]
        took = datetime.fromisoformat(states[-1]["finishedAt"]) - datetime.fromisoformat(states[-1]["startedAt"])
        assert took.total_seconds() == 2.0
        assert states[0]["finishedAt"] == states[-1]["startedAt"]


def test_with_drivers_in_init_containers_a_cached_task_has_a_pod_that_ends_at_once() -> None:
    platform, made, (first_s, cached_s) = pods(profile(kfp=INSIDE), TRAINING, runs=2)
    assert made["executor"] == 6
    assert (first_s, cached_s) == (pytest.approx(3.0), pytest.approx(0.0))
    states = [step.state for run in platform.server.runs.values() if run.workflow for _, step in run.workflow.made()]
    assert states.count("Skipped") == 3


def test_state_kept_by_the_api_server_costs_calls_and_time() -> None:
    api = Api(qps=1e6, burst=10**6, latency=fixed(0.1), tokens_per_report=0)
    platform, _, (takes_s,) = pods(profile(api=api, kfp=Kfp(task_state="api-server", task_calls=2)))
    assert platform.task_calls.answered == 7 * 2
    assert takes_s == pytest.approx(0.1 + 3.0 + 7 * 2 * 0.1)


def test_a_refused_call_is_made_again() -> None:
    api = Api(qps=1e6, burst=10**6, latency=fixed(0.1), tokens_per_report=0)
    of = profile(api=api, kfp=Kfp(task_state="api-server"), database=Database(connections=1, parallel=0))
    platform = Platform(of)
    version = upload(platform)
    (first,) = submit(platform, version)
    platform.loop.run(1.5)  # the first computes: nobody holds the only connection
    (second,) = submit(platform, version)
    platform.loop.run(200)
    assert platform.server.database.refused > 0
    assert (first.state, second.state) == ("SUCCEEDED", "SUCCEEDED")
    assert platform.server.database.held == 0
