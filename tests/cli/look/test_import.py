import base64
import gzip
import json
from pathlib import Path

import pytest

from harness.cli import main
from tests.support.dumps import LISTING, NODE, RANGE
from tests.support.kube_stories import DONE, STORY

EVENTS = [{"kind": "Event", **each} for each in STORY if "reason" in each]


def test_dumps_become_a_run_with_a_report(tmp_path, capsys):
    (tmp_path / "objects.json").write_text(
        json.dumps({"kind": "List", "items": [*EVENTS, {"kind": "Pod", **DONE}, NODE]})
    )
    ended = {**LISTING, "runs": LISTING["runs"][:1]}
    (tmp_path / "runs.json").write_text(json.dumps(ended))
    (tmp_path / "argo.json").write_text(json.dumps(RANGE))
    files = [str(tmp_path / name) for name in ("objects.json", "runs.json", "argo.json")]
    code = main(
        [
            "import",
            *files,
            "--runs-dir",
            str(tmp_path / "runs"),
            "--run-name",
            "nightly",
            "--slo",
            "max(run.duration) < 1m",
            "--json",
        ]
    )
    said = capsys.readouterr()
    assert code == 0
    report = json.loads(said.out)
    assert report["ledger"]["succeeded"] == 1
    assert report["slos"][0]["met"]
    assert "1 × Node" in said.err
    assert "1 × Run" in said.err
    assert (tmp_path / "runs/nightly/report.html").is_file()


@pytest.mark.parametrize("dump", [{}, {"runs": 5}, {"kind": "List", "items": [NODE]}, RANGE])
def test_dumps_without_a_run_are_refused(tmp_path, capsys, dump):
    (tmp_path / "x.json").write_text(json.dumps(dump))
    assert main(["import", str(tmp_path / "x.json"), "--runs-dir", str(tmp_path / "runs")]) == 2
    said = capsys.readouterr().err
    assert "no run is listed" in said
    assert "GET /apis/v2beta1/runs" in said
    assert not (tmp_path / "runs").exists()


def test_no_folder_is_left_when_a_file_is_invalid(tmp_path, capsys):
    (tmp_path / "x.json").write_text("[]")
    assert main(["import", str(tmp_path / "x.json"), "--runs-dir", str(tmp_path / "runs")]) == 2
    assert "x.json" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_no_folder_is_left_after_a_value_that_no_record_can_have(tmp_path, capsys):
    status = NODE["status"] | {"allocatable": NODE["status"]["allocatable"] | {"pods": str(2**63)}}
    (tmp_path / "nodes.json").write_text(json.dumps({"kind": "List", "items": [NODE | {"status": status}]}))
    (tmp_path / "runs.json").write_text(json.dumps(LISTING))
    files = [str(tmp_path / name) for name in ("nodes.json", "runs.json")]
    assert main(["import", *files, "--runs-dir", str(tmp_path / "runs"), "--run-name", "x"]) == 2
    assert (
        "the files hold a value that can't be recorded: nodes.jsonl: 'pods' is out of range" in capsys.readouterr().err
    )
    assert not [*(tmp_path / "runs").iterdir()]


def test_no_folder_is_left_after_a_damaged_listing(tmp_path, capsys):
    (tmp_path / "x.json").write_text('{"runs": [{"state": "SUCCEEDED"}]}')
    assert main(["import", str(tmp_path / "x.json"), "--runs-dir", str(tmp_path / "runs")]) == 2
    assert "'run_id' is missing" in capsys.readouterr().err
    assert not list((tmp_path / "runs").iterdir())


def test_an_invalid_objective_is_refused_before_anything_is_created(tmp_path, capsys):
    (tmp_path / "x.json").write_text("{}")
    assert main(["import", str(tmp_path / "x.json"), "--runs-dir", str(tmp_path / "runs"), "--slo", "quick"]) == 2
    assert "'quick'" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


ARGO = Path(__file__).parents[2] / "data" / "real" / "argo"


def imported_workflows(tmp_path, capsys, *workflows):
    (tmp_path / "wf.json").write_text(
        json.dumps({"kind": "List", "items": [{"kind": "Workflow", **w} for w in workflows]})
    )
    options = ["--target", "argo", "--runs-dir", str(tmp_path / "runs"), "--run-name", "past", "--json"]
    code = main(["import", str(tmp_path / "wf.json"), *options])
    return code, capsys.readouterr()


def test_workflows_that_a_real_argo_ran_become_a_run_folder_with_their_tasks(tmp_path, capsys):
    names = ("plain-steps", "plain-dag", "one-pod")
    real = [json.loads((ARGO / f"{name}.json").read_text()) for name in names]
    nodes = json.dumps(real[0]["status"].pop("nodes")).encode()
    real[0]["status"]["compressedNodes"] = base64.b64encode(gzip.compress(nodes)).decode()
    code, said = imported_workflows(tmp_path, capsys, *real)
    assert code == 0
    assert "3 × Run" in said.err
    assert "warning" not in said.err
    assert json.loads(said.out)["ledger"]["succeeded"] == 3
    assert (tmp_path / "runs/past/report.html").is_file()


def test_a_memoized_node_of_an_imported_workflow_came_from_the_cache(tmp_path, capsys):
    _, said = imported_workflows(tmp_path, capsys, json.loads((ARGO / "plain-memo-2.json").read_text()))
    assert (
        "1 runs came from the cache, in whole or in part: their cost is unknown"
        in json.loads(said.out)["validity"]["reasons"]
    )


def test_workflows_whose_nodes_are_in_argos_database_are_said(tmp_path, capsys):
    real = json.loads((ARGO / "plain-steps.json").read_text())
    del real["status"]["nodes"]
    real["status"]["offloadNodeStatusVersion"] = "fnv:1"
    code, said = imported_workflows(tmp_path, capsys, real)
    assert code == 0
    assert "warning: 1 workflows without their nodes" in said.err
    assert "nodeStatusOffLoad" in said.err
