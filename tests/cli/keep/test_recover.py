"""``pipeswarm recover``: spools into a run folder, with its report, and clear refusals."""

import json
import tempfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from harness.cli import main
from harness.model import Outcome, Plan, Submission
from harness.model.errors import ExitCode
from harness.store import RunFolder
from harness.store.folder import encode
from harness.store.spools import Origin, Spool, spool_path
from tests.support.servers import Served

TEST, T0 = "0123abcd", 1_700_000_000_000_000_000


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = RunFolder.create(tmp_path, "r")
    folder.write_plan(Plan("kfp", "h", {"name": "burst"}, 4, 7, simulated=True, id=TEST, started_at=T0))
    folder.write_schedule([0.0] * 4)
    return folder


def spooled(worker: int, *seqs: int, test: str = TEST) -> Path:
    spool = Spool(spool_path(test, worker), Origin(test, "r", worker))
    for seq in seqs:
        row = Submission(seq, "s", f"{seq}-s", T0, T0 + 1, T0 + 2, Outcome.ACCEPTED, f"r{seq}", worker, 200, None)
        spool.append(encode(row))
    spool.close()
    return spool.path


def test_the_spools_on_this_machine_are_added_and_deleted(
    folder: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    found, other = [spooled(0, 0, 2), spooled(1, 1, 3)], spooled(0, 0, test="ffff")
    assert main(["recover", str(folder.path)]) == ExitCode.OK
    assert sorted(row.seq for row in folder.records(Submission)) == [0, 1, 2, 3]
    assert [path.exists() for path in (*found, other)] == [False, False, True]
    said = capsys.readouterr().out
    assert said.count("2 arrivals recovered (2 records; 0 known already)") == 2
    assert "INVALID" in said
    report = json.loads((folder.path / "report.json").read_text())
    assert report["ledger"]["unaccounted"] == 0
    for name in ("report.html", "report.md"):
        text = (folder.path / name).read_text()
        assert text.count("Recovered: 2 arrivals of worker") == 2


def test_named_spools_are_added_once_and_kept(folder: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    spool = spooled(0, 0, 2)
    counts = []
    for _ in range(2):
        assert main(["recover", str(folder.path), str(spool), "--json"]) == ExitCode.OK
        counts.append(json.loads(capsys.readouterr().out)["spools"][0]["recovered"])
    assert [(count["arrivals"], count["known"]) for count in counts] == [(2, 0), (0, 2)]
    assert len(folder.records(Submission)) == 2
    assert spool.exists()


def test_refusals_name_the_file_and_change_nothing(folder: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    foreign, text = spooled(0, 0, test="ffff"), folder.path.parent / "x.txt"
    text.write_text("hello\n")
    for given, said in (
        ([str(foreign)], f"{foreign} holds records of another test"),
        ([str(text)], f"{text} is not a spool"),
        ([str(folder.path / "none")], "No such file or directory"),
        ([], "there is no spool of"),
    ):
        assert main(["recover", str(folder.path), *given]) == ExitCode.BAD_CONFIG
        assert said in capsys.readouterr().err
    assert folder.records(Submission) == []


def test_the_platform_is_asked_for_runs_that_no_observer_saw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stamp = datetime.fromtimestamp(T0 / 1e9 + 1, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    listed = [
        {"run_id": f"run-{name}", "display_name": name, "state": "RUNNING", "created_at": stamp}
        for name in ("b-two", "a-one", "z-foreign")
    ]
    asked: list[str] = []
    monkeypatch.setenv("PIPESWARM_TOKEN", "secret")
    with Served(lambda path, _: asked.append(path) or (200, {"runs": listed})) as server:  # type: ignore[func-returns-value]
        folder = RunFolder.create(tmp_path, "killed")
        options = {"experiment_id": "e", "pipeline_id": "p", "version_id": "v"}
        folder.write_plan(
            Plan(
                "kfp",
                server.url,
                {"name": "burst"},
                2,
                7,
                simulated=False,
                id=TEST,
                started_at=T0,
                target_options=options,
            )
        )
        folder.write_schedule([0.0, 0.5])
        folder.replace("scenarios.csv", b"id,scenario_name\na,one\nb,two\n")
        with folder.recorder() as recorder:
            recorder.write(Submission(0, "a", "a-one", T0, T0, T0, Outcome.ACCEPTED, "run-a-one", 0, 200, None))
        assert main(["recover", str(folder.path), "--host", "http://127.0.0.1:1"]) == ExitCode.BAD_CONFIG
        assert "the token is not sent" in capsys.readouterr().err
        assert asked == []
        assert main(["recover", str(folder.path), "--host", server.url]) == ExitCode.OK
    assert [(row.seq, row.run) for row in folder.records(Submission)] == [(0, "run-a-one"), (1, "run-b-two")]
    assert "1 run that the load had not recorded: found on the platform" in capsys.readouterr().out


@pytest.mark.fault("none that the platform lists")
@pytest.mark.parametrize(("api", "prefix"), [("kubernetes", ""), ("server", "listOptions.")])
def test_workflows_that_no_observer_saw_are_found_page_by_page(
    api: str, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def workflow(name: str, created_s: float) -> dict[str, object]:
        stamp = datetime.fromtimestamp(T0 / 1e9 + created_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        annotations = {"pipeswarm.io/run-name": name}
        return {"metadata": {"name": f"w-{name}", "creationTimestamp": stamp, "annotations": annotations}}

    pages = {"": [workflow("a-one", -99), workflow("a-one", 1)], "next": [workflow("b-two", 1)]}
    asked: list[str] = []

    def answer(path: str, query: dict[str, str]) -> tuple[int, dict[str, object]]:
        asked.append(path)
        assert query[f"{prefix}labelSelector"].endswith(f"={TEST}"), "only the test's own are asked for"
        page = query.get(f"{prefix}continue", "")
        return 200, {"items": pages[page], "metadata": {"continue": "" if page else "next"}}

    with Served(answer) as server:
        folder = RunFolder.create(tmp_path, "killed")
        options = {"api": api, "namespace": "n", "workflow": "{}"}
        plan = Plan("argo", server.url, {"name": "burst"}, 2, 7, simulated=False, id=TEST, started_at=T0)
        folder.write_plan(replace(plan, target_options=options))
        folder.write_schedule([0.0, 0.5])
        folder.replace("scenarios.csv", b"id,scenario_name\na,one\nb,two\n")
        assert main(["recover", str(folder.path), "--host", server.url]) == ExitCode.OK
    assert len(asked) == 2
    assert {row.seq: row.run for row in folder.records(Submission)} == {0: "w-a-one", 1: "w-b-two"}


def test_a_platform_that_lists_no_runs_is_not_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = RunFolder.create(tmp_path, "killed")
    folder.write_plan(Plan("hetida", "http://127.0.0.1:1", {"name": "burst"}, 2, 7, simulated=False, id=TEST))
    assert main(["recover", str(folder.path), "--host", "http://127.0.0.1:1"]) == ExitCode.BAD_CONFIG
    assert "hetida lists no runs" in capsys.readouterr().err
