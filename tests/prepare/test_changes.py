from copy import deepcopy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.errors import ConfigError
from harness.prepare.changes import platform_of, prepared
from harness.prepare.settings import Placement, Resources, Retry, Settings, placement_of
from harness.prepare.steps import container_of, tasks_of
from tests.support.compiled import CURRENT, OLDER, documents

NOTHING = Settings(caching=True)


def steps(found):
    """Containers by the DAG and name of their task."""
    return {
        task.key: container for task in tasks_of(found[0]) if (container := container_of(found[0], task)) is not None
    }


def on_platform(found):
    """Kubernetes settings by the DAG and name of their task."""
    platform = platform_of(found[1]) if len(found) > 1 else {}
    return {task.key: platform.get(task.label, {}) for task in tasks_of(found[0]) if task.label}


def by_name(found, name):
    return {each for key, each in found.items() if key[1] == name}


@pytest.mark.parametrize("path", [CURRENT, OLDER])
def test_caching_goes_in_every_dag(path):
    before = list(tasks_of(documents(path)[0]))
    assert {task.dag for task in before if task.spec.get("cachingOptions")} > {""}
    after = prepared(documents(path), Settings())
    assert all(not task.spec.get("cachingOptions") for task in tasks_of(after[0]))


def test_caching_stays_where_the_pattern_does_not_match():
    after = prepared(documents(), Settings(tasks=("train*",)))
    cached = {task.name for task in tasks_of(after[0]) if task.spec.get("cachingOptions")}
    assert "prepare" in cached
    assert cached.isdisjoint({"train", "train-2"})


@pytest.mark.parametrize("path", [CURRENT, OLDER])
def test_nothing_to_set_changes_nothing(path):
    assert prepared(documents(path), NOTHING) == documents(path)


def test_the_given_documents_stay_as_they_are():
    given_, before = documents(), documents()
    prepared(given_, Settings(placement=placement_of([], [], [], "aks"), tasks=("train*",)))
    assert given_ == before


def test_retries_are_the_tasks_own_and_spare_nested_pipelines():
    after = prepared(documents(), Settings(caching=True, retry=Retry(5, 300.0, 1.0, 3600.0)))
    policy = {"maxRetryCount": 5, "backoffDuration": "300s", "backoffFactor": 1.0, "backoffMaxDuration": "3600s"}
    for task in tasks_of(after[0]):
        runs = container_of(after[0], task) is not None
        assert task.spec.get("retryPolicy") == (policy if runs else None), task.key


def test_no_retries_remove_the_policy():
    after = prepared(documents(OLDER), Settings(caching=True, retry=Retry(0)))
    assert all("retryPolicy" not in task.spec for task in tasks_of(after[0]))


def test_a_fraction_of_a_second_and_a_long_back_off_are_written_out():
    after = prepared(documents(OLDER), Settings(caching=True, retry=Retry(1, 0.5, 2.0, 1e7)))
    policy = after[0]["root"]["dag"]["tasks"]["prepare"]["retryPolicy"]
    assert (policy["backoffDuration"], policy["backoffMaxDuration"]) == ("0.5s", "10000000s")


def test_resources_are_written_as_the_sdk_does():
    wanted = Resources(cpu_request="250m", memory_request="1Gi", memory_limit="4Gi", gpus=2)
    after = steps(prepared(documents(OLDER), Settings(resources=wanted)))
    found = after["", "prepare"]["resources"]
    assert (found["resourceCpuRequest"], found["cpuRequest"]) == ("250m", 0.25)
    assert (found["resourceMemoryRequest"], found["memoryRequest"]) == ("1Gi", 1.073741824)
    assert (found["resourceMemoryLimit"], found["memoryLimit"]) == ("4Gi", 4.294967296)
    gpu = {"count": "2", "resourceCount": "2", "resourceType": "nvidia.com/gpu", "type": "nvidia.com/gpu"}
    assert found["accelerator"] == gpu
    assert "resourceCpuLimit" not in found


def test_no_gpus_take_the_accelerator_away():
    before = steps(documents(OLDER))
    assert any("accelerator" in each.get("resources", {}) for each in before.values())
    after = steps(prepared(documents(OLDER), Settings(resources=Resources(gpus=0))))
    assert not any("accelerator" in each.get("resources", {}) for each in after.values())


def test_resources_of_single_steps_come_last():
    settings_ = Settings(resources=Resources(cpu_request="1"), by_step={"train": Resources(cpu_request="3")})
    after = steps(prepared(documents(OLDER), settings_))
    found = {key[1]: each["resources"]["resourceCpuRequest"] for key, each in after.items()}
    assert found == {"prepare": "1", "train": "3"}


def test_advice_for_no_step_of_the_pipeline_is_refused():
    with pytest.raises(ConfigError, match="no step is called other"):
        prepared(documents(), Settings(by_step={"other": Resources(cpu_request="1")}))


@pytest.mark.parametrize("path", [CURRENT, OLDER])
def test_a_request_above_the_limit_that_the_step_has_is_refused(path):
    with pytest.raises(ConfigError, match=r"step prepare: its memory request of 8e.09 is above its limit"):
        prepared(documents(path), Settings(resources=Resources(memory_request="8G")))


def test_a_pipeline_without_platform_settings_gets_them():
    one = documents(OLDER)[:1]
    after = prepared(one, Settings(pull_policy="Always", labels=(("test", "a"),), timeout_s=90))
    assert len(after) == 2
    expected = {"imagePullPolicy": "Always", "podMetadata": {"labels": {"test": "a"}}, "activeDeadlineSeconds": "90"}
    assert set(map(str, on_platform(after).values())) == {str(expected)}


def test_labels_join_those_that_pods_have():
    after = on_platform(prepared(documents(), Settings(tasks=("train",), labels=(("test", "a"),))))
    labels = [each["podMetadata"]["labels"] for key, each in after.items() if key[1] == "train"]
    assert {"team": "a", "test": "a"} in labels
    assert all(each["test"] == "a" for each in labels)


def sharing():
    """Two tasks on one component."""
    found = documents(OLDER)
    tasks = found[0]["root"]["dag"]["tasks"]
    tasks["again"] = deepcopy(tasks["prepare"])
    return found


def test_a_chosen_task_is_told_apart_from_another_on_its_component():
    after = prepared(sharing(), Settings(tasks=("again",), caching=True, pull_policy="Always"))
    found = on_platform(after)
    assert found["", "again"] == {"imagePullPolicy": "Always", "nodeSelector": {"labels": {"agentpool": "cpu"}}}
    assert found["", "prepare"] == {"nodeSelector": {"labels": {"agentpool": "cpu"}}}
    assert steps(after)["", "again"] == steps(after)["", "prepare"]


def test_tasks_that_are_all_chosen_keep_their_component():
    after = prepared(sharing(), Settings(caching=True, pull_policy="Always"))
    assert after[0] == sharing()[0]


def test_places_that_yaml_aliases_join_are_told_apart():
    before = documents(OLDER)
    tasks = before[0]["root"]["dag"]["tasks"]
    executors = before[0]["deploymentSpec"]["executors"]
    executors["exec-train"]["container"] = executors["exec-prepare"]["container"]
    assert "prepare" in tasks
    after = steps(prepared(before, Settings(tasks=("train",), images=(("python", "mirror/python"),))))
    assert {key[1]: each["image"] for key, each in after.items()} == {
        "prepare": "python:3.9",
        "train": "mirror/python:3.9",
    }


def test_a_pattern_of_no_step_names_the_nearest():
    with pytest.raises(ConfigError, match=r"--task: 'trian' matches no step(.|\n)*did you mean 'train'"):
        prepared(documents(), Settings(tasks=("train*", "trian")))


def test_a_pattern_of_a_nested_pipeline_is_refused():
    with pytest.raises(ConfigError, match="'inner' matches no step"):
        prepared(documents(), Settings(tasks=("inner",)))


@pytest.mark.parametrize(
    ("mapped", "image"),
    [
        (("registry.example/", "mirror/"), "mirror/train:latest"),
        (("registry.example", "mirror/r"), "mirror/r/train:latest"),
        (("registry.example/train", "mirror/t"), "mirror/t:latest"),
        (("", "mirror/"), "mirror/registry.example/train:latest"),
        (("registry.example/", "registry.example/copy/"), "registry.example/copy/train:latest"),
    ],
)
def test_images_come_from_the_mirror(mapped, image):
    once = prepared(documents(OLDER), Settings(images=(mapped,)))
    assert steps(once)["comp-condition-1", "train"]["image"] == image
    assert prepared(once, Settings(images=(mapped,))) == once


@pytest.mark.parametrize("before", ["registry.example/tra", "ghcr.io/"])
def test_an_image_map_that_fits_no_image_is_refused(before):
    with pytest.raises(ConfigError, match=f"no image begins with '{before}'"):
        prepared(documents(), Settings(images=((before, "mirror/"),)))


def test_volume_claims_and_their_tasks_stay_alone():
    everything = Settings(retry=Retry(3), resources=Resources(cpu_request="1"), pull_policy="Never")
    after = prepared(documents(), everything)
    executors = after[0]["deploymentSpec"]["executors"]
    assert executors["exec-createpvc"] == documents()[0]["deploymentSpec"]["executors"]["exec-createpvc"]
    assert "exec-createpvc" not in platform_of(after[1])


SOME = st.builds(
    Settings,
    tasks=st.sampled_from([(), ("train*",), ("train", "report")]),
    caching=st.booleans(),
    placement=st.sampled_from([Placement(), placement_of([], ["a=b:NoSchedule"], ["zone=a", "!x", "disk@3"], "")]),
    retry=st.sampled_from([None, Retry(0), Retry(5, 300.0, 1.0)]),
    resources=st.sampled_from([Resources(), Resources(cpu_limit="4", gpus=1), Resources(memory_request="1Gi")]),
    pull_policy=st.sampled_from(["", "Always"]),
    labels=st.sampled_from([(), (("test", "a"),)]),
    timeout_s=st.sampled_from([0, 60]),
)


@settings(max_examples=6, deadline=None)
@given(SOME)
def test_once_is_enough_and_what_is_not_chosen_stays_equal(wanted):
    before = documents()
    once = prepared(before, wanted)
    assert prepared(once, wanted) == once
    chosen = {task.key for task in tasks_of(once[0]) if not wanted.tasks or task.name in ("train", "train-2")}
    chosen |= {task.key for task in tasks_of(once[0]) if task.name in wanted.tasks}
    tasks, old_tasks = ({task.key: task.spec for task in tasks_of(each[0])} for each in (once, before))
    for key in tasks.keys() - chosen:
        assert tasks[key] == old_tasks[key]
        assert steps(once).get(key) == steps(before).get(key)
        assert on_platform(once).get(key) == on_platform(before).get(key)
    of_load = {"cachingOptions", "retryPolicy", "componentRef"}
    for key, task in tasks.items():
        assert {k: v for k, v in task.items() if k not in of_load} == {
            k: v for k, v in old_tasks[key].items() if k not in of_load
        }
    for key, container in steps(once).items():
        old = steps(before)[key]
        assert {**container, "resources": None} == {**old, "resources": None}
    assert once[0]["root"]["inputDefinitions"] == before[0]["root"]["inputDefinitions"]
