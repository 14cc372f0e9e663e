"""``pipeswarm simulate corpus``: every document of a folder is tried, and none ends the command."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.cli import main
from harness.cli.platform import corpus, served
from harness.cli.platform.tried import BUG, Tried
from harness.model.errors import ExitCode
from harness.simulator.profile.file import load_profile
from tests.support.hostile import API, HOSTILE, JUNK, PIPELINE, POD, TEMPLATE, WORKFLOW, spots

REFERS = {**API, "kind": "Workflow", "metadata": {"name": "r"}, "spec": {"workflowTemplateRef": {"name": "shared"}}}
NEEDS_MORE = {
    **API,
    "kind": "Workflow",
    "metadata": {"name": "m"},
    "spec": {"entrypoint": "w", "unheard": 1, "templates": [POD]},
}


def tried(
    folder: Path, capsys: pytest.CaptureFixture[str], *options: str, code: int = ExitCode.OK
) -> dict[str, dict[str, Any]]:
    assert main(["simulate", "corpus", str(folder), "--json", *options]) == code
    return {each["file"]: each for each in json.loads(capsys.readouterr().out)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "below").mkdir()
    (tmp_path / "template.yaml").write_text(yaml.safe_dump(TEMPLATE))
    (tmp_path / "below" / "refers.json").write_text(json.dumps(REFERS))
    (tmp_path / "more.yml").write_text(yaml.safe_dump(NEEDS_MORE))
    (tmp_path / "pipeline.yaml").write_text(yaml.safe_dump(PIPELINE))
    (tmp_path / "service.yaml").write_text("kind: Service\n")
    (tmp_path / "broken.yaml").write_text("a: [\n")
    return tmp_path


def test_every_workflow_and_pipeline_is_tried_with_the_templates_beside_it(folder, capsys):
    found = tried(folder, capsys)
    assert {name: (each["kind"], each["run"], each["pods"]) for name, each in found.items()} == {
        "template.yaml": ("argo", "ran", 1), "below/refers.json": ("argo", "ran", 1), "more.yml": ("argo", "refused", 0),
        "pipeline.yaml": ("kfp", "ran", 3),
    }  # fmt: skip
    assert "spec.unheard" in found["more.yml"]["note"]
    assert "--ignore unheard" in found["more.yml"]["note"]


def test_what_the_user_wants_ignored_is_named_and_the_workflow_runs(folder, capsys):
    found = tried(folder, capsys, "--ignore", "unheard")
    assert (found["more.yml"]["run"], found["more.yml"]["note"]) == ("ran", "ignored: spec.unheard")


def test_the_table_ends_with_how_many_ran(folder, capsys):
    assert main(["simulate", "corpus", str(folder)]) == ExitCode.OK
    shown = capsys.readouterr()
    assert "argo: 2 of 3 come to an end (67%): 2 ran, 1 refused" in shown.out
    assert "broken.yaml" in shown.err


def test_a_fault_is_injected(tmp_path, capsys):
    (tmp_path / "pipeline.yaml").write_text(yaml.safe_dump(PIPELINE))
    (usual,) = tried(tmp_path, capsys).values()
    (found,) = tried(tmp_path, capsys, "--fault", "image-pull").values()
    assert found["seconds"] > usual["seconds"]


@pytest.mark.parametrize("option", [("--fault", "store-full"), ("--result", "steps.a=1"), ("--ignore", "unheard")])
def test_what_locust_has_no_option_for_is_refused_with_a_load(folder, capsys, option):
    assert main(["simulate", "corpus", str(folder), "--served", *option]) == ExitCode.BAD_CONFIG
    assert "give --profile FILE" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("counts", "run", "note"),
    [
        ({"succeeded": 2}, "ran", "known"),
        ({"succeeded": 1, "failed": 1}, "failed", "ran in simulated time; known"),
        ({"canceled": 1, "in_flight": 1}, "waits", "ran in simulated time; known"),
        ({"succeeded": 1, "rejected": 1}, "refused", "ran in simulated time; known"),
        ({"missed": 2}, "bug", "ran in simulated time; known"),
    ],
)
def test_a_load_is_as_good_as_the_worst_of_its_runs(counts, run, note):
    ledger = dict.fromkeys(("succeeded", "failed", "canceled", "in_flight", "rejected"), 0) | counts
    report = {"ledger": ledger, "latencies": {"duration_s": None}, "errors": [], "validity": {"reasons": []}}
    found = served._judged(Tried("f", "kfp", "ran", note="known"), report, [])
    assert (found.run, found.note, found.seconds) == (run, note, 0)


@pytest.mark.parametrize("text", [None, "", "a: 1"])
def test_a_folder_without_pipelines_is_refused(tmp_path, text):
    folder = tmp_path / "f"
    if text is not None:
        folder.mkdir()
        (folder / "a.yaml").write_text(text)
    assert main(["simulate", "corpus", str(folder)]) == ExitCode.BAD_CONFIG


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_document_is_refused_in_one_sentence(name, tmp_path, capsys):
    document, says = HOSTILE[name]
    (tmp_path / name).write_text(json.dumps(document))
    (found,) = tried(tmp_path, capsys).values()
    assert found["run"] == "refused"
    assert says in found["note"]
    option = "--pipeline" if name.startswith("kfp") else "--workflow"
    place = tmp_path / "runs"
    arguments = [option, str(tmp_path / name), "--runs", "2", "--runs-dir", str(place), "--quiet"]
    assert main(["simulate", "run", "--schedule", "burst", *arguments]) == ExitCode.BAD_CONFIG
    assert capsys.readouterr().err.startswith("error: ")
    assert not place.exists() or not [*place.iterdir()]


@settings(max_examples=75, deadline=None)
@given(
    st.sampled_from([WORKFLOW, TEMPLATE, PIPELINE]),
    st.lists(st.tuples(st.integers(0, 10**6), JUNK), min_size=1, max_size=2),
)
def test_a_damaged_document_is_refused_or_runs(document, changes):
    damaged = copy.deepcopy(document)
    for at, junk in changes:
        if places := spots(damaged):
            holder, key = places[at % len(places)]
            holder[key] = copy.deepcopy(junk)
    kind = corpus._kind(damaged) or "argo"
    found = corpus._try("f", kind, damaged, [(Path("f"), damaged)], [], load_profile("demo"))
    assert found.run != BUG, found.note
