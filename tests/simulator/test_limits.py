"""What a platform refuses or shares: quotas, the database, the cache, memory."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.simulator.cluster import Change, Pod, Shape
from harness.simulator.cluster.quota import Quota
from harness.simulator.engine.distributions import fixed
from harness.simulator.kfp.errors import RpcError
from harness.simulator.kfp.records import SUCCEEDED, Run
from harness.simulator.platform import Platform
from harness.simulator.profile import ArtifactStore, Database, Profile, Step
from harness.simulator.profile import Quota as Limits
from tests.support.platforms import GI, TRAINING, UNCACHED, Journal, profile, submit, upload


def finished(its_profile: Profile, count: int, package: bytes = UNCACHED) -> tuple[Platform, Journal, list[Run]]:
    journal = Journal()
    platform = Platform(its_profile, 1, journal)
    version = upload(platform, package)
    runs = submit(platform, version, count)
    platform.loop.run(2000)
    return platform, journal, runs


# --- quota ------------------------------------------------------------------------------------------------------


def most_at_once(journal: Journal) -> int:
    """Of the pods, by their own stamps."""
    pods = journal.saw(Change.OVER)
    changes = sorted([(pod.created, 1) for pod in pods] + [(pod.finished or 0.0, -1) for pod in pods])
    level = most = 0
    for _, change in changes:
        level += change
        most = max(most, level)
    return most


def test_a_quota_bounds_the_pods_at_once_and_every_run_still_ends() -> None:
    _, free, _ = finished(profile(), 20)
    platform, journal, runs = finished(profile(quota=Limits(pods=5)), 20)
    assert most_at_once(free) > 5
    assert most_at_once(journal) == 5
    assert {run.state for run in runs} == {SUCCEEDED}
    assert platform.controller.quotas.shared.used["pods"] == "0"


def test_a_refusal_is_worded_as_kube_apiserver_words_it() -> None:
    quota = Quota(Limits(cpu=2.5, memory=1.0 * GI, pods=100))
    first, second = (Pod(name, "kubeflow", Shape(1500, 600 * 2**20), ()) for name in ("one", "two"))
    assert quota.refusal(first) == ""
    quota.take(first)
    assert quota.refusal(second) == (
        'pods "two" is forbidden: exceeded quota: workflows, requested: requests.cpu=1500m,requests.memory=600Mi, '
        "used: requests.cpu=1500m,requests.memory=600Mi, limited: requests.cpu=2500m,requests.memory=1Gi"
    )
    quota.give_back(first)
    assert quota.refusal(second) == ""


@given(
    st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 2**31)), max_size=30), st.integers(1, 8), st.integers(1, 9)
)
def test_admitted_pods_never_exceed_the_quota(wants: list[tuple[int, int]], cpu: int, pods: int) -> None:
    quota, inside = Quota(Limits(cpu=float(cpu), pods=pods)), []
    for number, (cores, memory) in enumerate(wants):
        pod = Pod(str(number), "", Shape(cores, memory), ())
        if not quota.refusal(pod):
            quota.take(pod)
            inside.append(pod)
    assert len(inside) <= pods
    assert sum(pod.shape.cpu for pod in inside) <= cpu * 1000


def test_a_refused_pod_is_an_event_and_no_pod() -> None:
    _, journal, _ = finished(profile(quota=Limits(pods=2)), 5)
    refused = journal.saw(Change.REFUSED)
    assert refused
    details = [detail for _, change, detail in journal.pods if change is Change.REFUSED]
    assert all("is forbidden: exceeded quota: workflows, requested: pods=1" in detail for detail in details)
    assert len(details) == len({pod.name for pod in refused})  # said once, asked for often


# --- the database -----------------------------------------------------------------------------------------------


def answers(its_profile: Profile, count: int) -> list[Run | RpcError]:
    platform, said = Platform(its_profile), []
    version = upload(platform)
    for number in range(count):
        platform.server.start_run(
            platform.server.prepare_run(f"r{number}", "", version, {}, by_reference=True), said.append
        )
    platform.loop.run(100)
    return said


def test_calls_beyond_the_databases_connections_are_refused() -> None:
    slow = replace(profile().api, latency=fixed(1.0))
    said = answers(profile(api=slow, database=Database(connections=7)), 10)
    refused = [each.message for each in said if isinstance(each, RpcError)]
    assert len(refused) == 3
    assert all(message.endswith("Error 1040: Too many connections") for message in refused)


def test_calls_beyond_the_databases_parallelism_take_longer() -> None:
    platform = Platform(profile(api=replace(profile().api, latency=fixed(1.0)), database=Database(parallel=10)))
    version, ends = upload(platform), []
    for number in range(40):
        run = platform.server.prepare_run(f"r{number}", "", version, {}, by_reference=True)
        platform.server.start_run(run, lambda _: ends.append(platform.loop.now))
    platform.loop.run(100)
    assert ends == pytest.approx([max(1.0, number / 10) for number in range(1, 41)])


def test_a_list_holds_a_connection_and_is_refused_without_one() -> None:
    platform, listed = Platform(profile(database=Database(connections=1))), []
    platform.server.database.row_s = 0.5
    submit(platform, upload(platform), 1)
    platform.loop.run(10)
    platform.server.after_listing((), lambda: listed.append(platform.loop.now))
    with pytest.raises(RpcError, match="Failed to list runs: Error 1040"):
        platform.server.after_listing((), lambda: None)
    platform.loop.run(20)
    assert listed == [pytest.approx(10.505, abs=1e-4)]
    assert (platform.server.database.held, platform.server.database.refused) == (0, 1)


def test_a_full_database_refuses_new_runs() -> None:
    said = answers(
        profile(database=Database(capacity=100.0, used=0.0, spec_bytes=30.0, step_bytes=0.0, node_bytes=0.0)), 5
    )
    assert sum(isinstance(each, Run) for each in said) == 3
    assert {each.code.http for each in said if isinstance(each, RpcError)} == {500}


def test_a_deleted_run_makes_room() -> None:
    platform = Platform(
        profile(database=Database(capacity=30.0, used=0.0, spec_bytes=30.0, step_bytes=0.0, node_bytes=0.0))
    )
    (run,) = submit(platform, upload(platform))
    platform.loop.run(100)
    platform.server.delete_run(run.id)
    assert platform.server.database.used == 0


# --- caching and memory -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("caching", "executors"), [(True, 3), (False, 6)])
def test_the_server_decides_whether_a_second_equal_run_is_answered_from_the_cache(
    caching: bool, executors: int
) -> None:
    journal = Journal()
    platform = Platform(profile(caching=caching), 1, journal)
    version = upload(platform, TRAINING)
    for _ in range(2):
        submit(platform, version)
        platform.loop.run(platform.loop.now + 100)
    assert sum(pod.role == "executor" for pod in journal.saw(Change.OVER)) == executors


def test_outputs_shared_in_memory_are_copied_at_memory_speed_and_need_no_volume() -> None:
    step = Step(duration=fixed(1.0), output=fixed(10.0 * GI), cpu=fixed(0.01), memory=fixed(1.0))
    store = ArtifactStore(capacity=1.0, request_s=0.25, bytes_per_s=1.0, memory_bytes_per_s=5.0 * GI)
    platform, journal, (run,) = finished(profile(step=step, store=store), 1)
    executors = [pod for pod in journal.saw(Change.OVER) if pod.role == "executor"]
    assert run.state == SUCCEEDED
    assert platform.store.used == 0
    for pod in executors:
        assert pod.launch.uploaded - pod.launch.uploading == pytest.approx(2.0)
    train = next(pod for pod in executors if pod.task == "train")
    assert train.launch.uploading - train.started == pytest.approx(1.25)  # a read, whatever its size


def test_a_run_can_be_deleted_while_its_pods_wait_for_the_quota() -> None:
    platform = Platform(profile(quota=Limits(pods=1)))
    runs = submit(platform, upload(platform), 4)
    platform.loop.run(0.5)
    for run in runs:
        platform.server.delete_run(run.id)
    platform.loop.run(500)
    assert not platform.controller.workflows
    assert platform.controller.quotas.shared.used["pods"] == "0"
