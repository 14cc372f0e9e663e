"""Memoized templates: their outputs are kept in ConfigMaps, and found there again, as recorded from a real Argo."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from harness.simulator.argo.memos import Memo, MemoError, Memos
from harness.simulator.engine.distributions import fixed
from harness.simulator.profile import Step
from tests.support.argo_platform import BEGUN_AT, FAILS, POD, WORK, ArgoPlatform, dag, nodes_of, recorded, task

LABEL = {"workflows.argoproj.io/configmap-type": "Cache"}
OUTPUTS = {"parameters": [{"name": "o", "valueFrom": {"path": "/tmp/o", "default": "d"}}]}
NOW = datetime.fromtimestamp(BEGUN_AT // 10**9, UTC)


def memoized(key="k1", **more):
    memo = {"key": key, "cache": {"configMap": {"name": "memo-cache"}}}
    return {**POD, "outputs": OUTPUTS, "memoize": {**memo, **more.pop("memo", {})}, **more}


def spec(template):
    return {"entrypoint": "w", "templates": [template]}


def run(template, *names, cache=None, labels=LABEL, steps=(FAILS,)):
    """The platform, and each workflow with this template after the one before has ended."""
    platform = ArgoPlatform(*steps)
    if cache is not None:
        platform.create("ConfigMap", "memo-cache", data=cache, metadata={"labels": labels})
    for k, name in enumerate(names):
        platform.create("Workflow", name, spec=spec(template))
        platform.run(100.0 * (k + 1))
    return platform, [platform.get(name) for name in names]


def entry(age_s=0.0, **more):
    made = (NOW - timedelta(seconds=age_s)).isoformat()
    kept = {"nodeID": "old", "outputs": {"parameters": [{"name": "o", "value": "d"}], "exitCode": "0"}}
    return json.dumps({**kept, "creationTimestamp": made, "lastHitTimestamp": made, **more})


def test_a_kept_output_ends_its_workflow_as_recorded():
    real = recorded("plain-memo-2")
    platform = ArgoPlatform()
    platform.create("ConfigMap", "memo-cache", data={"k1": entry()}, metadata={"labels": LABEL})
    platform.create("Workflow", "plain-memo-2", spec=real["spec"])
    platform.run(5.0)
    ours = platform.get("plain-memo-2")
    assert nodes_of(ours) == nodes_of(real)
    (node,), (wanted,) = ours["status"]["nodes"].values(), real["status"]["nodes"].values()
    assert (
        node["memoizationStatus"]
        == wanted["memoizationStatus"]
        == {"cacheName": "memo-cache", "hit": True, "key": "k1"}
    )
    values = [(each["name"], each["value"]) for each in wanted["outputs"]["parameters"]]
    assert [(each["name"], each["value"]) for each in node["outputs"]["parameters"]] == values
    assert not [name for name in platform.names("Pod") if name.startswith("plain-memo")]
    assert (ours["status"]["phase"], ours["status"]["progress"]) == (
        real["status"]["phase"],
        real["status"]["progress"],
    )


def test_the_first_run_keeps_its_outputs_and_the_second_finds_them():
    platform, (first, second) = run(memoized(), "one", "two")
    (made,), (found,) = first["status"]["nodes"].values(), second["status"]["nodes"].values()
    assert (made["memoizationStatus"]["hit"], found["memoizationStatus"]["hit"]) == (False, True)
    assert found["startedAt"] == found["finishedAt"]
    kept = platform.get("memo-cache", "ConfigMap")
    assert kept["metadata"]["labels"] == LABEL
    content = json.loads(kept["data"]["k1"])
    assert content["nodeID"] == "one"
    assert content["outputs"] == {"parameters": [{"name": "o", "value": "d"}], "exitCode": "0"}
    assert content["lastHitTimestamp"] > content["creationTimestamp"]


def test_what_failed_is_not_kept():
    always = Step(duration=fixed(1.0), failing=1.0, **WORK)
    platform, (workflow,) = run(memoized(), "one", steps=(always,))
    assert workflow["status"]["phase"] == "Failed"
    assert platform.get("memo-cache", "ConfigMap") == {}


def test_the_key_follows_the_parameters():
    template = memoized("n-{{inputs.parameters.n}}")
    platform = ArgoPlatform()
    tasks = [task(f"t{n}", arguments={"parameters": [{"name": "n", "value": f"{n}"}]}) for n in (1, 2)]
    document = dag(*tasks)
    document["templates"][1] = template
    platform.create("Workflow", "wf", spec=document)
    platform.run(60.0)
    assert platform.get("memo-cache", "ConfigMap")["data"].keys() == {"n-1", "n-2"}


def test_a_repeated_template_that_is_kept_has_no_attempts():
    template = memoized(retryStrategy={"limit": 2})
    _, (first, second) = run(template, "one", "two")
    assert [each["type"] for each in first["status"]["nodes"].values()] == ["Retry", "Pod"]
    assert [each["type"] for each in second["status"]["nodes"].values()] == ["Retry"]


def test_a_workflow_that_waited_for_the_lock_finds_what_the_other_one_made():
    platform = ArgoPlatform()
    for name in ("one", "two"):
        template = memoized(synchronization={"mutexes": [{"name": "once"}]})
        platform.create("Workflow", name, spec=spec(template))
    platform.run(60.0)
    hits = [platform.get(name)["status"]["nodes"][name]["memoizationStatus"]["hit"] for name in ("one", "two")]
    assert hits == [False, True]


def test_a_whole_dag_is_kept():
    platform = ArgoPlatform()
    document = dag(task("a"))
    document["templates"][0]["memoize"] = {"key": "all", "cache": {"configMap": {"name": "c"}}}
    for name in ("one", "two"):
        platform.create("Workflow", name, spec=document)
        platform.run(50.0 if name == "one" else 100.0)
    assert list(nodes_of(platform.get("two"))) == ["two"]
    assert platform.get("two")["status"]["nodes"]["two"]["type"] == "DAG"


@pytest.mark.parametrize(
    ("template", "cache", "labels", "message"),
    [
        (memoized("a_b"), {}, LABEL, "invalid cache key: a_b"),
        (memoized(memo={"maxAge": "soon"}), {}, LABEL, "invalid maxAge"),
        (memoized(), {}, {}, "doesn't have workflows.argoproj.io/configmap-type label"),
        (memoized(), {}, {"workflows.argoproj.io/configmap-type": "Parameter"}, "doesn't have label"),
        (memoized(), {"k1": "{"}, LABEL, "malformed cache entry"),
        (memoized(), {"k1": "[" * 100_000}, LABEL, "malformed cache entry"),
        (memoized(), {"k1": "7"}, LABEL, "malformed cache entry"),
        (memoized(retryStrategy={"limit": 1}, synchronization={"mutexes": [{"name": "m"}]}, memo={"maxAge": "x"}), {},
         LABEL, "invalid maxAge"),
    ],
)  # fmt: skip
def test_a_cache_that_can_not_be_used_is_an_error_of_the_node(template, cache, labels, message):
    _, (workflow,) = run(template, "wf", cache=cache, labels=labels)
    assert workflow["status"]["phase"] == "Error"
    assert message in workflow["status"]["message"]


@pytest.mark.parametrize(("age_s", "found"), [(59.0, True), (61.0, False)])
def test_an_entry_counts_for_its_time_and_no_longer(age_s, found):
    maps = {"c": (LABEL, {"k": entry(age_s)})}
    memos = Memos(lambda _, name: maps.get(name), lambda *_: None, lambda: NOW)
    memo = Memo.of({"key": "k", "maxAge": "60s", "cache": {"configMap": {"name": "c"}}})
    assert memos.load("ns", memo) == ({"o": "d"} if found else None)


def test_a_cache_that_is_full_is_an_error_as_of_the_api_server():
    maps = {"c": (LABEL, {"other": "x" * 2**20})}
    memos = Memos(lambda _, name: maps.get(name), lambda *_: None, lambda: NOW)
    with pytest.raises(MemoError, match="may not be more than 1048576 bytes"):
        memos.save("ns", Memo("c", "k", None), "node", {})


def test_an_entry_without_a_node_is_none():
    maps = {"c": (LABEL, {"k": entry(nodeID="")})}
    memos = Memos(lambda _, name: maps.get(name), lambda *_: None, lambda: NOW)
    assert memos.load("ns", Memo("c", "k", None)) is None
