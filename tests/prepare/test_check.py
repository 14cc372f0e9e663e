import pytest

from harness.prepare.changes import prepared
from harness.prepare.check import check
from harness.prepare.settings import Resources, Retry, Settings, placement_of
from harness.prepare.steps import container_of, tasks_of
from tests.support.compiled import CURRENT, OLDER, documents


def kinds(found, kind):
    return [each.task for each in found if each.kind == kind]


def test_what_the_sdk_writes_by_default_is_found_in_every_dag():
    found = check(documents(OLDER))
    assert [(each.kind, each.task) for each in found] == [
        ("caching", "prepare"),
        ("no-requests", "prepare"),
        ("pip-install", "prepare"),
        ("caching", "train"),
        ("no-requests", "train"),
        ("pip-install", "train"),
        ("mutable-image", "train"),
    ]


def alone(**changes):
    """A pipeline of one step with the changes to its container, and its findings."""
    found = documents(OLDER)
    container = found[0]["deploymentSpec"]["executors"]["exec-prepare"]["container"]
    container.update(changes)
    tasks = found[0]["root"]["dag"]["tasks"]
    found[0]["root"]["dag"]["tasks"] = {"prepare": tasks["prepare"]}
    del found[0]["components"]["comp-condition-1"]
    del tasks["prepare"]["retryPolicy"]
    return found


@pytest.mark.parametrize(
    ("image", "says"),
    [
        ("python", "image python has no tag"),
        ("registry.example:5000/a/python", "image registry.example:5000/a/python has no tag"),
        ("python:latest", "image python:latest has the moving tag latest"),
        ("python:main", "image python:main has the moving tag main"),
        ("python:3.11-slim", None),
        ("python:latest@sha256:" + "0" * 64, None),
        ("{{$.inputs.parameters['image']}}", None),
    ],
)
def test_an_image_that_can_change_is_found(image, says):
    found = [each for each in check(alone(image=image)) if each.kind == "mutable-image"]
    assert [each.found for each in found] == ([says] if says else [])


@pytest.mark.parametrize(
    ("resources", "says"),
    [
        ({}, "no request for CPU and memory"),
        ({"cpuLimit": 1.0, "resourceCpuRequest": "1"}, "no request for memory"),
        ({"memoryRequest": 1.0}, "no request for CPU"),
        ({"cpuRequest": 1.0, "resourceMemoryRequest": "1Gi"}, None),
    ],
)
def test_missing_requests_are_named(resources, says):
    found = [each for each in check(alone(resources=resources)) if each.kind == "no-requests"]
    assert [each.found for each in found] == ([says] if says else [])


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (
            ["sh", "-c", "python3 -m pip install --quiet 'numpy==2.0.0' 'kfp==2.4.0' && \"$0\""],
            "numpy==2.0.0, kfp==2.4.0",
        ),
        (["sh", "-c", "pip3  install -r requirements.txt"], "runs pip install"),
        (["sh", "-c", "pip list; echo install"], None),
    ],
)
def test_packages_installed_at_start_are_named(command, says):
    found = [each for each in check(alone(command=command, args=[])) if each.kind == "pip-install"]
    assert len(found) == bool(says)
    assert all(says in each.found for each in found)


@pytest.mark.parametrize("spot", ["aks", "gke", "eks", "karpenter"])
@pytest.mark.parametrize("form", ["nodeSelector", "tolerations", "nodeAffinity"])
def test_spot_without_retries_is_found_however_it_is_said(spot, form):
    placed = prepared(alone(), Settings(placement=placement_of([], [], [], spot)))
    platform = placed[1]["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    platform["exec-prepare"] = {form: platform["exec-prepare"][form]}
    assert kinds(check(placed), "no-retries-on-spot") == ["prepare"]
    assert kinds(check(prepared(placed, Settings(retry=Retry(1)))), "no-retries-on-spot") == []


def test_a_toleration_of_any_value_lets_pods_on_spot_nodes():
    placed = prepared(alone(), Settings(placement=placement_of([], ["cloud.google.com/gke-spot"], [], "")))
    assert kinds(check(placed), "no-retries-on-spot") == ["prepare"]


def test_the_users_own_label_can_mean_spot():
    placed = prepared(alone(), Settings(placement=placement_of(["pool=cheap"], [], [], "")))
    assert kinds(check(placed), "no-retries-on-spot") == []
    assert kinds(check(placed, ("pool", "cheap")), "no-retries-on-spot") == ["prepare"]


def test_steps_off_spot_need_no_retries():
    placed = prepared(alone(), Settings(placement=placement_of(["pool=a"], ["sku"], ["zone=a", "!gpu"], "")))
    assert kinds(check(placed), "no-retries-on-spot") == []


@pytest.mark.parametrize(
    ("changes", "mounts", "asked"),
    [
        ({"image": "mysql:8.4"}, False, "its image says 'mysql'"),
        ({"image": "x/model-server:1"}, False, "its image says 'server'"),
        ({"image": "x/observer:1"}, False, None),
        ({"image": "x/preserve:1"}, False, None),
        ({}, True, "mounts the volume at /data"),
        ({}, False, None),
    ],
)
def test_steps_that_keep_state_or_serve_are_asked_about(changes, mounts, asked):
    placed = prepared(alone(**changes), Settings(placement=placement_of([], [], [], "aks")))
    if mounts:
        executors = placed[1]["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
        executors["exec-prepare"]["pvcMount"] = [{"mountPath": "/data", "constant": "claim"}]
    found = [each for each in check(placed) if each.kind == "unfit-for-spot"]
    assert [each.found.partition(", and ")[2] for each in found] == ([asked] if asked else [])
    assert all(each.remedy.startswith("does it keep state or serve requests?") for each in found)


def test_a_pipeline_without_inputs_makes_every_run_identical():
    found = alone()
    del found[0]["root"]["inputDefinitions"]
    assert kinds(check(found), "identical-runs") == [""]
    assert kinds(check(alone()), "identical-runs") == []


def test_an_input_that_no_step_reads_is_named():
    found = alone()
    found[0]["root"]["inputDefinitions"]["parameters"]["row"] = {"parameterType": "STRING"}
    assert [each.found for each in check(found) if each.kind == "unused-input"] == ["no step reads row"]


def test_an_input_that_only_chooses_the_nodes_is_read():
    found = alone()
    found[0]["root"]["inputDefinitions"]["parameters"]["pool"] = {"parameterType": "STRUCT"}
    executors = found[1]["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    executors["exec-prepare"] = {"nodeSelector": {"nodeSelectorJson": {"componentInputParameter": "pool"}}}
    assert kinds(check(found), "unused-input") == []


@pytest.mark.parametrize("path", [CURRENT, OLDER])
def test_the_remedies_remedy(path):
    placement = placement_of([], [], [], "aks")
    bare = prepared(documents(path), Settings(placement=placement) if path == OLDER else Settings())
    assert check(bare)
    wanted = Settings(
        retry=Retry(5, 300.0, 1.0),
        resources=Resources(cpu_request="500m", memory_request="1Gi"),
        images=(("registry.example/train:latest", "registry.example/train:1.2"),),
    )
    left = check(prepared(bare, wanted))
    assert {each.kind for each in left} == {"pip-install"}
    after = prepared(bare, wanted)
    assert all(container_of(after[0], task) for task in tasks_of(after[0]) if task.name == left[0].task)
