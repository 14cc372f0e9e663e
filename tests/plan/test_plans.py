import argparse
import json
from dataclasses import replace

import pytest

from harness.collectors.collector import ObserverSettings
from harness.model import ConfigError
from harness.model.plan import Limits, ObserverPlan, Plan
from harness.plan.options import settings
from harness.plan.plans import plan_arrivals, plan_load, plan_observation
from harness.plan.validate import check
from harness.store import RunFolder
from harness.targets import kfp
from harness.targets.credentials import Credentials

OBSERVER = ObserverPlan(
    ("a", "b"), "prod", 5.0, "http://p:9090", ("argo",), (("kfp", "http://k/metrics"),), "s3://mlpipeline/probe"
)


def checked(**given):
    return check(settings(argparse.Namespace(**given), "", kfp), "kfp", kfp)


def planned(**given):
    found = checked(**given)
    plan = plan_load(found, "http://x", simulated=True, command=("locust", "--prometheus=http://me:pw@p"), started_at=7)
    return plan_arrivals(found, plan, found.prepared.inputs)


def test_the_observers_part_of_a_plan_travels_in_the_manifest(tmp_path):
    folder = RunFolder.create(tmp_path, "run")
    plan = replace(plan_observation("kfp", "http://x", {}, 0), redact=("url",), verify_tls=False, observer=OBSERVER)
    folder.write_plan(plan)
    assert folder.read_plan() == plan
    found = ObserverSettings.of(
        folder.read_plan(), Credentials("token"), {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
    )
    assert (found.host, found.credentials, found.verify_platform, found.redact) == (
        "http://x",
        Credentials("token"),
        False,
        ("url",),
    )
    assert (found.metrics, found.metric_profiles, found.kube_requests_per_s) == (OBSERVER.metrics, ("argo",), 5.0)
    assert found.bucket is not None
    assert found.bucket.name == "mlpipeline"
    assert "secret" not in (folder.path / "manifest.json").read_text()


@pytest.mark.parametrize("left_out", ["observer", "limits", "redact"])
def test_a_manifest_of_an_older_version_has_defaults(tmp_path, left_out):
    folder = RunFolder.create(tmp_path, "run")
    folder.write_plan(Plan("kfp", "http://x", {}, 3, 7, False, slos=("throughput > 1/h",)))
    raw = json.loads((folder.path / "manifest.json").read_bytes())
    del raw[left_out]
    folder.replace("manifest.json", json.dumps({**raw, "of_a_newer_version": 1}).encode())
    plan = folder.read_plan()
    assert (plan.observer, plan.limits, plan.redact) == (ObserverPlan(), Limits(), ())
    assert plan.slos == ("throughput > 1/h",)


@pytest.mark.parametrize("content", [b"[]", b"7", b'{"target": "kfp"}', b'{"observer": []}', b"{"])
def test_a_damaged_manifest_is_a_configuration_error(tmp_path, content):
    folder = RunFolder.create(tmp_path, "run")
    folder.replace("manifest.json", content)
    with pytest.raises(ConfigError, match=r"manifest\.json"):
        folder.read_plan()


def test_a_planned_test_has_its_arrivals_and_scenarios():
    test = planned(schedule="burst", runs="4", run_name="x")
    assert list(test.offsets) == [0.0] * 4
    assert (test.plan.intended, test.plan.schedule["name"], len(test.scenarios)) == (4, "burst", 4)
    assert test.run_name == "19700101T000000Z-kfp-burst-4"
    assert test.plan.command[1] == "--prometheus=http://***@p"


def test_a_closed_test_has_no_due_times_in_advance():
    test = planned(schedule="concurrency", num_users=3, **{"for": "1m"})
    assert (list(test.offsets), test.plan.intended) == ([], 0)
    assert test.run_name.endswith("-concurrency-3")


def test_values_of_redacted_parameters_and_their_defaults_are_hidden(tmp_path):
    table = tmp_path / "s.csv"
    table.write_text("id,scenario_name,data_multiplier\n1,a,4000\n2,b,9000\n")
    test = planned(scenarios=str(table), redact="data_multiplier")
    assert {"4000", "9000"} <= set(test.hidden)
    assert test.table == table.read_bytes()
    assert test.plan.intended == 2, "one run per scenario"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"schedule": "constant", "rate": "1/h", "for": "1s"}, "the schedule has no arrivals"),
        ({"redact": "passwort"}, "--redact passwort: there is no such parameter"),
    ],
)
def test_an_impossible_test_is_refused(given, message):
    with pytest.raises(ConfigError, match=message):
        planned(**given)


def replayed(folder, **given):
    return planned(**{"schedule": "replay", "schedule_file": str(folder), **given})


def test_the_replay_of_a_run_sends_its_scenarios_again(tmp_path):
    """Also of a replay that named its scenarios, whose order is then not that of their file."""
    table = b'id,scenario_name,url\n"a, b",x,5\n2,y,6\n'
    folder = RunFolder.create(tmp_path, "first")
    folder.write_plan(Plan("kfp", "http://x", {}, 3, 7, False))
    folder.write_schedule([0.0, 1.0, 2.0])
    folder.keep("scenarios.csv", table)
    test = replayed(folder.path)
    assert [(each.id, each.name, each.values["url"]) for each in test.scenarios] == [
        ("a, b", "x", "5"), ("2", "y", "6"), ("a, b", "x-2", "5"),
    ]  # fmt: skip
    assert test.table == table

    second = RunFolder.create(tmp_path, "second")
    second.write_plan(Plan("kfp", "http://x", {}, 3, 7, False))
    second.write_schedule([0.0, 0.5, 1.0], ("2", "a, b", "a, b"))
    second.keep("scenarios.csv", table)
    assert [each.id for each in replayed(second.path).scenarios] == ["2", "a, b", "a, b"]
    assert second.read_schedule() == [0.0, 0.5, 1.0]


def test_a_replay_sends_each_arrival_for_the_tenant_that_the_schedule_names(tmp_path):
    folder = RunFolder.create(tmp_path, "first")
    folder.write_plan(Plan("kfp", "http://x", {}, 3, 7, False))
    folder.write_schedule([0.0, 1.0, 2.0], tenants=("alpha", "beta", "alpha"))
    folder.keep("scenarios.csv", b"id,scenario_name,url\n1,x,5\n2,y,6\n")
    again = replayed(folder.path).scenarios
    assert [(each.id, each.name, each.tenant) for each in again] == [
        ("1", "x", "alpha"), ("2", "y", "beta"), ("1", "x-2", "alpha"),
    ]  # fmt: skip

    schedule = tmp_path / "day.csv"
    schedule.write_text("seq,due_s,tenant,scenario_id\n0,0.0,alpha,2\n1,0.5,beta,2\n")
    (tmp_path / "s.csv").write_text("id,scenario_name,url\n1,x,5\n2,y,6\n")
    named = planned(schedule="replay", schedule_file=str(schedule), scenarios=str(tmp_path / "s.csv")).scenarios
    assert [(each.id, each.tenant) for each in named] == [("2", "alpha"), ("2", "beta")]


def test_tenants_of_scenarios_are_kept_unless_they_are_to_be_hidden(tmp_path):
    (tmp_path / "s.csv").write_text("id,scenario_name,url,tenant\n1,x,5,alpha\n2,y,6,beta\n")
    given = {"scenarios": str(tmp_path / "s.csv")}
    assert [each.tenant for each in planned(**given).scenarios] == ["alpha", "beta"]
    assert {each.tenant for each in planned(**given, redact="tenant").scenarios} == {""}


def test_equal_due_times_are_one_schedule_whichever_scenarios_they_name(tmp_path):
    folder = RunFolder.create(tmp_path, "run")
    assert folder.write_schedule([0.0, 1.0], ("a", "b")) == folder.write_schedule([0.0, 1.0])


def test_hidden_scenarios_can_not_be_replayed(tmp_path):
    folder = RunFolder.create(tmp_path, "run")
    folder.write_plan(Plan("kfp", "http://x", {}, 1, 7, False, redacted=("scenarios.csv",)))
    folder.write_schedule([0.0])
    folder.keep("scenarios.csv", b"id,scenario_name,rows\n1,a,***\n")
    with pytest.raises(ConfigError, match="values in them are hidden"):
        replayed(folder.path)
