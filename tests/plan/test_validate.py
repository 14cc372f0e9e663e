import json
from argparse import Namespace

import pytest

from harness.model import ConfigError, Scenario
from harness.plan.options import settings
from harness.plan.validate import check, demand_known_tenants, in_order
from harness.store.folder import RunFolder
from harness.targets.discovery import find

SCENARIOS = [Scenario(id_, "s", {}, {}) for id_ in ("a", "b", "c")]


def test_arrivals_get_the_scenarios_named_by_the_schedule():
    ordered = in_order(SCENARIOS, ["c", "a", "c", "c"], "day.csv")
    assert [scenario.run_name for scenario in ordered] == ["c-s", "a-s", "c-s-2", "c-s-3"]


def test_an_unknown_scenario_names_file_and_row():
    with pytest.raises(ConfigError, match=r"day\.csv, row 3, column scenario_id: there is no scenario 'z'"):
        in_order(SCENARIOS, ["a", "z"], "day.csv")


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_name_in_use_is_refused_before_anything_is_done_unless_it_is_to_be_overwritten(tmp_path, overwrite):
    (RunFolder.create(tmp_path, "nightly").path / "manifest.json").write_text("{}")
    given = Namespace(runs_dir=str(tmp_path), run_name="nightly", overwrite=overwrite)
    platform = find("kfp")
    if overwrite:
        check(settings(given, "", platform), "kfp", platform)
    else:
        with pytest.raises(ConfigError, match="nightly exists"):
            check(settings(given, "", platform), "kfp", platform)
    assert (tmp_path / "nightly" / "manifest.json").exists()


def test_a_pipeline_with_an_unknown_type_is_named_by_the_users_own_file(tmp_path):
    root = {"dag": {"tasks": {}}, "inputDefinitions": {"parameters": {"x": {"parameterType": None}}}}
    (tmp_path / "mine.yaml").write_text(json.dumps({"pipelineInfo": {"name": "p"}, "root": root}))
    platform = find("kfp")
    with pytest.raises(ConfigError, match=rf"{tmp_path}/mine.yaml: the pipeline's input 'x' has the unknown type"):
        check(settings(Namespace(pipeline=str(tmp_path / "mine.yaml")), "", platform), "kfp", platform)


@pytest.mark.parametrize(("tenant", "known", "message"), [
    ("alpha", ("alpha", "beta"), ""),
    ("gamma", (), ""),
    ("", (), ""),
    ("gamma", ("alpha", "beta"), "the scenario 7 is of the tenant 'gamma', who has no namespace\n  → .*alpha, beta"),
    ("", ("alpha",), "the scenario 7 has no tenant"),
])  # fmt: skip
def test_a_scenario_of_a_tenant_without_a_place_is_refused(tenant, known, message):
    scenarios = [Scenario("7", "s", {}, {}, tenant)]
    if not message:
        demand_known_tenants(scenarios, known)
        return
    with pytest.raises(ConfigError, match=message):
        demand_known_tenants(scenarios, known)


@pytest.mark.parametrize(
    ("host", "option", "in_manifest", "namespace"),
    [
        ("https://argo.example", "", "", "team"), ("https://argo.example", "mine", "", "mine"),
        ("https://argo.example", "", "its", "its"), ("", "", "", ""),
    ],
)  # fmt: skip
def test_the_namespace_of_argos_own_command_counts_where_nothing_else_names_one(
    tmp_path, monkeypatch, host, option, in_manifest, namespace
):
    monkeypatch.setenv("ARGO_NAMESPACE", "team")
    manifest = tmp_path / "wf.yaml"
    place = f"  namespace: {in_manifest}\n" if in_manifest else ""
    manifest.write_text(
        f"apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata:\n  name: w\n{place}"
        "spec:\n  entrypoint: a\n  templates:\n  - name: a\n    container: {image: a}\n"
    )
    argo = find("argo")
    given = Namespace(workflow=str(manifest), namespace=option, runs_dir=str(tmp_path))
    assert check(settings(given, host, argo), "argo", argo).prepared.options["namespace"] == namespace


def test_rows_of_ones_own_are_read_before_the_test_and_a_wrong_one_is_refused(tmp_path):
    own, platform = tmp_path / "own.yaml", find("kfp")
    own.write_text(
        "reasons:\n- {name: x, source: gossip, cause: c, layer: store, effect: fails, fix: f, show: s, link: l}\n"
    )
    given = Namespace(runs_dir=str(tmp_path), reasons=str(own))
    with pytest.raises(ConfigError, match=r"own\.yaml:2: reasons\[0\] \(x\) has 'gossip', which is no source"):
        check(settings(given, "", platform), "kfp", platform)
    own.write_text(own.read_text().replace("gossip", "workflow, pattern: p"))
    assert check(settings(given, "", platform), "kfp", platform).reasons == own.read_bytes()
